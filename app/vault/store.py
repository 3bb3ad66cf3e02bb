"""Objects in a store: written once under a name that reveals nothing, published whole or not at all."""

import os
import re
import secrets
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import BinaryIO, Protocol, Self, cast
from urllib.parse import unquote, urlsplit

from app.errors import DependencyUnavailable
from app.vault.errors import ObjectMissing, VaultError

_NAME = re.compile(r"[0-9a-f]{32}")


class ObjectWriter(Protocol):
    """An object in the making. Leaving its ``with`` block without :meth:`publish` discards it."""

    name: str

    def write(self, data: bytes) -> int:
        """Append; raises DependencyUnavailable when the store is full or away."""

    def publish(self) -> str:
        """Make the object durable and visible; returns its name."""

    def discard(self) -> None:
        """Leave nothing behind; harmless after publishing."""

    def __enter__(self) -> Self: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...


class ObjectStore(Protocol):
    """Where sealed uploads, encrypted tables and rendered releases lie."""

    url: str

    def create(self, name: str | None = None) -> ObjectWriter:
        """A writer for a new object (of a name from :func:`new_name`, where the caller must know it beforehand)."""

    def open(self, name: str) -> BinaryIO:
        """The published object, seekable. Raises ObjectMissing."""

    def delete(self, name: str) -> None:
        """Remove the object, published or not; harmless if there is none."""

    def scratch(self) -> BinaryIO:
        """An empty file for sealed bytes, without a name: it ends when it is closed, or with its process."""

    def leave(self, name: str, content: bytes) -> None:
        """Put up a note in place of the last one of that name: small, soon deleted, and lost with the machine."""

    def note(self, name: str) -> bytes:
        """The note of that name. Raises ObjectMissing."""

    def delete_note(self, name: str) -> None:
        """Remove the note; harmless if there is none."""

    def delete_unfinished(self, idle_seconds: float) -> None:
        """Remove what was never published and has not grown for so long (its writer has died), and notes as old."""


def new_name() -> str:
    """128 random bits."""
    return secrets.token_hex(16)


def open_store(url: str) -> "LocalStore":
    """The store that a storage URL names.

    Raises:
        VaultError: for a scheme that is not supported.
    """
    parts = urlsplit(url)
    path = unquote(parts.path)
    if parts.scheme != "file" or parts.netloc not in {"", "localhost"} or not path.startswith("/"):
        raise VaultError("The storage URL must read file:///absolute/path; no other scheme is supported.")
    return LocalStore(Path(path))


class LocalStore:
    """Files below one directory: 0700 directories, 0600 files."""

    def __init__(self, root: Path) -> None:
        self.url = root.absolute().as_uri()
        self._objects = root / "objects"
        self._unfinished = root / "unfinished"
        self._notes = root / "notes"
        with _faults_as_unavailable():
            for directory in (root, self._objects, self._unfinished, self._notes):
                directory.mkdir(mode=0o700, parents=True, exist_ok=True)

    def create(self, name: str | None = None) -> "LocalWriter":
        chosen = new_name() if name is None else name
        return LocalWriter(chosen, self._unfinished / chosen, self._path(chosen))

    def open(self, name: str) -> BinaryIO:
        with _faults_as_unavailable():
            try:
                return self._path(name).open("rb")
            except FileNotFoundError:
                raise ObjectMissing from None

    def delete(self, name: str) -> None:
        path = self._path(name)
        with _faults_as_unavailable(), suppress(FileNotFoundError):
            (self._unfinished / name).unlink(missing_ok=True)
            path.unlink()
            sync_directory(path.parent)

    def scratch(self) -> BinaryIO:
        with _faults_as_unavailable():
            return cast(BinaryIO, tempfile.TemporaryFile(dir=self._unfinished))

    def leave(self, name: str, content: bytes) -> None:
        with LocalWriter(name, self._unfinished / new_name(), self._note(name)) as target:
            target.write(content)
            target.publish(durable=False)

    def note(self, name: str) -> bytes:
        with _faults_as_unavailable():
            try:
                return self._note(name).read_bytes()
            except FileNotFoundError:
                raise ObjectMissing from None

    def delete_note(self, name: str) -> None:
        with _faults_as_unavailable():
            self._note(name).unlink(missing_ok=True)

    def delete_unfinished(self, idle_seconds: float) -> None:
        horizon = time.time() - idle_seconds
        with _faults_as_unavailable():
            for path in (*self._unfinished.iterdir(), *self._notes.iterdir()):
                with suppress(FileNotFoundError):
                    if path.stat().st_mtime < horizon:
                        path.unlink()

    def _path(self, name: str) -> Path:
        return self._objects / name[:2] / _checked(name)

    def _note(self, name: str) -> Path:
        return self._notes / _checked(name)


def _checked(name: str) -> str:
    if _NAME.fullmatch(name) is None:
        raise ObjectMissing
    return name


class LocalWriter:
    """Writes beside the objects and moves the finished file among them."""

    def __init__(self, name: str, temporary: Path, target: Path) -> None:
        self.name = name
        self._temporary = temporary
        self._target = target
        with _faults_as_unavailable():
            handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        self._file = os.fdopen(handle, "wb", buffering=0)

    def write(self, data: bytes) -> int:
        rest = memoryview(data)
        with _faults_as_unavailable():
            while rest:
                rest = rest[self._file.write(rest) :]
        return len(data)

    def publish(self, *, durable: bool = True) -> str:
        with _faults_as_unavailable():
            if durable:
                os.fsync(self._file.fileno())
            self._file.close()
            self._target.parent.mkdir(mode=0o700, exist_ok=True)
            self._temporary.rename(self._target)
            if not durable:
                return self.name
            sync_directory(self._target.parent)
            sync_directory(self._target.parent.parent)
        return self.name

    def discard(self) -> None:
        self._file.close()
        with _faults_as_unavailable():
            self._temporary.unlink(missing_ok=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.discard()


@contextmanager
def _faults_as_unavailable() -> Iterator[None]:
    """A full or broken disk is a dependency that is away; the system's message stays here."""
    try:
        yield
    except OSError:
        raise DependencyUnavailable from None


def sync_directory(directory: Path) -> None:
    """Make the entries of ``directory`` durable."""
    handle = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
