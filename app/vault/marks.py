"""Small documents in a place of their own that a restore of the database does not reach.

A document is written once under a name that says which account it is about and where in the global order it stands, and
is never changed: whoever writes last cannot undo what others wrote, and a bucket may lock what is in it. What a newer
one of the same account has replaced is removed where that is allowed.
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
_EXPECTED = "A mark's URL reads file:///absolute/folder or s3://bucket/prefix?endpoint=…&region=…"


@dataclass(frozen=True, slots=True)
class MarkName:
    """Which account, where in the global order, and the hash that stands there."""

    account: str
    sequence: int
    digest: str

    def __str__(self) -> str:
        return f"{self.account}.{self.sequence:012}.{self.digest}"


class Marks(Protocol):
    """A place for marks. Every call raises DependencyUnavailable where it cannot be reached."""

    def names(self) -> frozenset[MarkName]:
        """What lies there; other files are passed over."""

    def read(self, name: MarkName) -> bytes:
        """Raises ObjectMissing, also for one that has just been replaced."""

    def put(self, name: MarkName, content: bytes) -> None:
        """Durable once this returns; then whatever it replaces is removed."""


class LocalMarks:
    """Files in a folder."""

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
    """Keys below a prefix of a bucket. Keys that the bucket locks stay; they do no harm."""

    def __init__(self, bucket: str, prefix: str, endpoint: str | None, region: str | None) -> None:
        from app.vault.s3_keys import Place, S3Keys  # noqa: PLC0415  (a large library, and only for who asks for it)

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
    """The place that ``url`` names; nothing is asked of it yet.

    Raises:
        VaultError: for another kind of URL. Nothing of it is repeated.
    """
    parts = urlsplit(url)
    path = unquote(parts.path)
    if parts.scheme == "file" and parts.netloc in {"", "localhost"} and path.startswith("/") and not parts.query:
        return LocalMarks(Path(path))
    given = parse_qs(parts.query, keep_blank_values=True)
    if parts.scheme == "s3" and parts.netloc and "@" not in parts.netloc and set(given) <= {"endpoint", "region"}:
        endpoint, region = (given.get(name, [None])[0] for name in ("endpoint", "region"))
        return S3Marks(parts.netloc, path.strip("/"), endpoint, region)
    raise VaultError(_EXPECTED)


def newest(names: frozenset[MarkName]) -> MarkName | None:
    """The one that stands last in the global order."""
    return max(names, key=lambda name: name.sequence, default=None)


def newest_each(names: frozenset[MarkName]) -> list[MarkName]:
    """The last one of each account, in the accounts' order."""
    last: dict[str, MarkName] = {}
    for name in sorted(names, key=lambda name: name.sequence):
        last[name.account] = name
    return [last[account] for account in sorted(last)]


def find_replaced(by: MarkName, names: frozenset[MarkName]) -> list[MarkName]:
    """Older ones of the same account."""
    return [name for name in names if name.account == by.account and name.sequence < by.sequence]


def _parse_names(found: Iterable[str]) -> frozenset[MarkName]:
    matches = filter(None, map(_NAME.fullmatch, found))
    return frozenset(MarkName(each["account"], int(each["sequence"]), each["digest"]) for each in matches)


@contextmanager
def _unavailable() -> Iterator[None]:
    try:
        yield
    except OSError:
        raise DependencyUnavailable from None
