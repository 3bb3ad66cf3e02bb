"""Storage of high-water marks, outside of the database.

Restoring the database from a backup does not change the marks, so an old database can be detected. A mark is written
once and never changed. Its name contains the account and the mark's place in the global order of checkpoints. Therefore
a slow writer cannot overwrite a newer mark, and a bucket may use object lock. After a mark is written, the older marks
of the same account are removed if the storage allows it.
"""

import os
import re
import secrets
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol
from urllib.parse import parse_qs, unquote, urlsplit

from app.errors import DependencyUnavailable
from app.vault.errors import ObjectMissing, VaultError
from app.vault.local_store import sync_directory

_NAME = re.compile(r"(?P<account>[0-9a-z_]{1,64})\.(?P<sequence>[0-9]{12})\.(?P<digest>[0-9a-f]{64})")
_EXPECTED = "The mark's URL must have the form file:///absolute/folder or s3://bucket/prefix?endpoint=…&region=…"


@dataclass(frozen=True, slots=True)
class MarkName:
    """The name of a mark: its account, the place of its checkpoint, and the checkpoint's hash."""

    account: str
    sequence: int
    digest: str

    def __str__(self) -> str:
        return f"{self.account}.{self.sequence:012}.{self.digest}"


class Marks(Protocol):
    """A store of marks; every call raises DependencyUnavailable if it cannot be reached."""

    def names(self) -> frozenset[MarkName]:
        """Return the names of all marks; other files are ignored."""

    def read(self, name: MarkName) -> bytes:
        """Read a mark.

        Raises:
            ObjectMissing: there is no such mark; it may just have been replaced.
        """

    def put(self, name: MarkName, content: bytes) -> None:
        """Write a mark durably, and then remove the marks that it replaces."""


class LocalMarks:
    """Marks as files in a folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def names(self) -> frozenset[MarkName]:
        with _unavailable():
            return _parse_names(path.name for path in self._folder.iterdir()) if self._folder.is_dir() else frozenset()

    def read(self, name: MarkName) -> bytes:
        with _unavailable():
            try:
                return (self._folder / str(name)).read_bytes()
            except FileNotFoundError:
                raise ObjectMissing from None

    def put(self, name: MarkName, content: bytes) -> None:
        with _unavailable():
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            temporary = self._folder / f".{secrets.token_hex(8)}"
            handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o640)
            try:
                with os.fdopen(handle, "wb") as file:
                    file.write(content)
                    file.flush()
                    os.fsync(file.fileno())
                temporary.rename(self._folder / str(name))
            finally:
                temporary.unlink(missing_ok=True)
            sync_directory(self._folder)
            for older in find_replaced(name, self.names()):
                with suppress(OSError):
                    (self._folder / str(older)).unlink()


class S3Marks:
    """Marks as objects below a prefix of a bucket.

    Older marks that the bucket locks are not removed, which is harmless.
    """

    def __init__(self, bucket: str, prefix: str, endpoint: str | None, region: str | None) -> None:
        from app.vault.s3_keys import Place, S3Keys  # noqa: PLC0415  (a large library that only S3 needs)

        self._keys = S3Keys(Place(bucket, prefix, endpoint, region))

    def names(self) -> frozenset[MarkName]:
        return _parse_names(key.rpartition("/")[2] for key, _ in self._keys.below("marks"))

    def read(self, name: MarkName) -> bytes:
        return self._keys.read(f"marks/{name}")

    def put(self, name: MarkName, content: bytes) -> None:
        self._keys.put(f"marks/{name}", content)
        for older in find_replaced(name, self.names()):
            with suppress(DependencyUnavailable):
                self._keys.remove(f"marks/{older}")


def open_marks(url: str) -> Marks:
    """Make the store of marks for ``url``, without any request.

    Raises:
        VaultError: the URL is not supported. The message does not contain it.
    """
    parts = urlsplit(url)
    path = unquote(parts.path)
    if parts.scheme == "file" and parts.netloc in {"", "localhost"} and path.startswith("/") and not parts.query:
        return LocalMarks(Path(path))
    query = parse_qs(parts.query, keep_blank_values=True)
    if parts.scheme == "s3" and parts.netloc and "@" not in parts.netloc and set(query) <= {"endpoint", "region"}:
        endpoint, region = (query.get(name, [None])[0] for name in ("endpoint", "region"))
        return S3Marks(parts.netloc, path.strip("/"), endpoint, region)
    raise VaultError(_EXPECTED)


def find_newest(names: frozenset[MarkName]) -> MarkName | None:
    """Return the last mark in the global order; None if there are no marks."""
    return max(names, key=lambda name: name.sequence, default=None)


def find_newest_each(names: frozenset[MarkName]) -> list[MarkName]:
    """Return the last mark of each account, ordered by account."""
    last: dict[str, MarkName] = {}
    for name in sorted(names, key=lambda name: name.sequence):
        last[name.account] = name
    return [last[account] for account in sorted(last)]


def find_replaced(by: MarkName, names: frozenset[MarkName]) -> list[MarkName]:
    """Return the marks that ``by`` replaces: the older ones of the same account."""
    return [name for name in names if name.account == by.account and name.sequence < by.sequence]


def _parse_names(names: Iterable[str]) -> frozenset[MarkName]:
    matches = filter(None, map(_NAME.fullmatch, names))
    return frozenset(MarkName(each["account"], int(each["sequence"]), each["digest"]) for each in matches)


@contextmanager
def _unavailable() -> Iterator[None]:
    try:
        yield
    except OSError:
        raise DependencyUnavailable from None
