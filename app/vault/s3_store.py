"""Objects in a bucket of an S3-compatible server.

A small object is one key. A larger object consists of numbered pieces and a list of them. The list is put last, and the
object exists from then on. So an object is never published in part, and its size has no limit. If a writer dies, a
listing finds its keys. (Parts of an unfinished multipart upload would be in no listing.) Keys below the prefix::

    objects/<name>          a whole object
    pieces/<name>/<index>   a piece; the list has the length of all pieces except the last
    lists/<name>            the length of an object in pieces
    notes/<name>            a note
"""

import json
import tempfile
from collections import defaultdict
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import TracebackType
from typing import BinaryIO, Final, Self, cast

from app.errors import DependencyUnavailable
from app.vault.errors import ObjectMissing, VaultError
from app.vault.s3_keys import S3Keys
from app.vault.s3_reader import PiecewiseReader
from app.vault.store import check_name, draw_name

PIECE_BYTES: Final = 8 << 20


class S3Store:
    """Objects below one prefix.

    Args:
        keys: the prefix.
        url: the URL by which other processes open the store.
        scratch: the folder for unnamed files.
        piece_bytes: size of a piece; larger objects are stored in pieces. Readers use the size in the list.
    """

    def __init__(self, keys: S3Keys, url: str, scratch: Path, piece_bytes: int = PIECE_BYTES) -> None:
        self.url = url
        self._keys = keys
        self._scratch = scratch
        self._piece_bytes = piece_bytes

    def create(self, name: str | None = None) -> "S3Writer":
        return S3Writer(self._keys, draw_name() if name is None else check_name(name), self._piece_bytes)

    def open(self, name: str) -> BinaryIO:
        with suppress(ObjectMissing):
            whole = self._keys.open(f"objects/{check_name(name)}")
            return cast(BinaryIO, PiecewiseReader(lambda _: whole, whole.size, max(1, whole.size)))
        try:
            layout = json.loads(self._keys.read(f"lists/{check_name(name)}"))
            size, piece_bytes = int(layout["bytes"]), int(layout["piece_bytes"])
        except (ValueError, TypeError, KeyError):
            raise VaultError from None
        return cast(
            BinaryIO, PiecewiseReader(lambda index: self._keys.open(_piece(name, index)), size, max(1, piece_bytes))
        )

    def delete(self, name: str) -> None:
        if self._keys.remove(f"objects/{check_name(name)}"):
            return
        self._keys.remove(f"lists/{name}")
        self._keys.remove_below(f"pieces/{name}")

    def scratch(self) -> BinaryIO:
        try:
            self._scratch.mkdir(mode=0o700, parents=True, exist_ok=True)
            return cast(BinaryIO, tempfile.TemporaryFile(dir=self._scratch))
        except OSError:
            raise DependencyUnavailable from None

    def leave(self, name: str, content: bytes) -> None:
        self._keys.put(f"notes/{check_name(name)}", content)

    def note(self, name: str) -> bytes:
        return self._keys.read(f"notes/{check_name(name)}")

    def delete_note(self, name: str) -> None:
        self._keys.remove(f"notes/{check_name(name)}")

    def delete_unfinished(self, idle_seconds: float) -> None:
        horizon = datetime.now(UTC) - timedelta(seconds=idle_seconds)
        for key, modified_at in self._keys.below("notes"):
            if modified_at < horizon:
                self._keys.remove(key)
        for name, modified_at in self._find_pieces().items():
            if modified_at < horizon and not self._is_listed(name):
                self._keys.remove_below(f"pieces/{name}")

    def _find_pieces(self) -> dict[str, datetime]:
        """Find the names that have pieces, each with the time of its newest piece."""
        newest: defaultdict[str, datetime] = defaultdict(lambda: datetime.min.replace(tzinfo=UTC))
        for key, modified_at in self._keys.below("pieces"):
            name = key.split("/")[1]
            newest[name] = max(newest[name], modified_at)
        return newest

    def _is_listed(self, name: str) -> bool:
        try:
            self._keys.open(f"lists/{name}")
        except ObjectMissing:
            return False
        return True


class S3Writer:
    """Collects a piece in memory, and puts it when it is full."""

    def __init__(self, keys: S3Keys, name: str, piece_bytes: int) -> None:
        self.name = name
        self._keys = keys
        self._piece_bytes = piece_bytes
        self._pending = bytearray()
        self._pieces = 0
        self._size = 0
        self._open = True

    def write(self, data: bytes) -> int:
        rest = memoryview(data)
        while rest:
            if len(self._pending) == self._piece_bytes:  # more bytes follow, so the object has several pieces
                self._put_piece()
            room = self._piece_bytes - len(self._pending)
            self._pending += rest[:room]
            rest = rest[room:]
        self._size += len(data)
        return len(data)

    def publish(self) -> str:
        if self._pieces:
            self._put_piece()
            layout = {"bytes": self._size, "piece_bytes": self._piece_bytes}
            self._keys.put(f"lists/{self.name}", json.dumps(layout).encode())
        else:
            self._keys.put(f"objects/{self.name}", bytes(self._pending))
        self._pending.clear()
        self._open = False
        return self.name

    def discard(self) -> None:
        self._pending.clear()
        if self._open and self._pieces:
            self._keys.remove_below(f"pieces/{self.name}")
        self._open = False

    def _put_piece(self) -> None:
        self._keys.put(_piece(self.name, self._pieces), bytes(self._pending))
        self._pieces += 1
        self._pending.clear()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.discard()


def _piece(name: str, index: int) -> str:
    return f"pieces/{name}/{index:06}"
