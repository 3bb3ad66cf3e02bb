"""Objects as files below one directory.

A directory that lets its group in (say mode 2770, made by the operator) is shared with it: API and worker can then be
two users. Any other is closed to everybody else.
"""

import os
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import BinaryIO, Self, cast

from app.errors import DependencyUnavailable
from app.vault.errors import ObjectMissing
from app.vault.store import check_name, new_name

_GROUP_OF_DIRECTORY, _GROUP_OF_FILE = 0o2070, 0o060
_AHEAD_BYTES = 8 << 20
_KEPT_BYTES = 64 << 20


class LocalStore:
    """Files below ``root``, which is made at once where that is allowed; its folders once something is written.

    A root that is gone later (a disk that was unmounted) is a store that is away, not one that is empty.
    """

    def __init__(self, root: Path) -> None:
        self.url = root.absolute().as_uri()
        self._root = root
        self._objects = root / "objects"
        self._unfinished = root / "unfinished"
        self._notes = root / "notes"
        with suppress(OSError):  # whoever may only read still starts
            root.mkdir(mode=0o700, parents=True, exist_ok=True)

    def create(self, name: str | None = None) -> "LocalWriter":
        chosen = new_name() if name is None else name
        return self._writer(chosen, self._unfinished / chosen, self._path(chosen))

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
            self._make(self._unfinished)
            return cast(BinaryIO, tempfile.TemporaryFile(dir=self._unfinished))

    def leave(self, name: str, content: bytes) -> None:
        with self._writer(name, self._unfinished / new_name(), self._note(name)) as target:
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
            for folder in (self._unfinished, self._notes):
                for path in folder.iterdir() if folder.exists() else ():
                    with suppress(FileNotFoundError):
                        if path.stat().st_mtime < horizon:
                            path.unlink()

    def _writer(self, name: str, temporary: Path, target: Path) -> "LocalWriter":
        with _faults_as_unavailable():
            group = self._make(temporary.parent, target.parent)
        return LocalWriter(name, temporary, target, 0o600 | group & _GROUP_OF_FILE)

    def _make(self, *folders: Path) -> int:
        """Make the folders, open to the group as far as the root is; the root's bits for its group."""
        group = self._root.stat().st_mode & _GROUP_OF_DIRECTORY
        for folder in folders:
            for each in (folder.parent, folder):
                if not each.exists():
                    with suppress(FileExistsError):
                        each.mkdir(mode=0o700)
                        each.chmod(0o700 | group)
        return group

    def _path(self, name: str) -> Path:
        return self._objects / name[:2] / check_name(name)

    def _note(self, name: str) -> Path:
        return self._notes / check_name(name)


class LocalWriter:
    """Writes beside the objects and moves the finished file among them."""

    def __init__(self, name: str, temporary: Path, target: Path, mode: int) -> None:
        self.name = name
        self._temporary = temporary
        self._target = target
        with _faults_as_unavailable():
            handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
            os.fchmod(handle, mode)
        self._file = os.fdopen(handle, "wb", buffering=0)
        self._size = self._begun = 0

    def write(self, data: bytes) -> int:
        rest = memoryview(data)
        with _faults_as_unavailable():
            while rest:
                rest = rest[self._file.write(rest) :]
            self._size += len(data)
            if self._size - self._begun >= _AHEAD_BYTES:
                self._begin_storing()
        return len(data)

    def _begin_storing(self) -> None:
        """Have the disk begin with what is written, and let go of what is long since on it.

        So little of a large object waits for the end, and its pages in memory are taken again and again: touching new
        ones costs more than copying into them, the more on a virtual machine. On Linux this advice starts writing dirty
        pages, frees clean ones, and neither waits nor promises anything, which :meth:`publish` does.
        """
        handle = self._file.fileno()
        os.posix_fadvise(handle, self._begun, self._size - self._begun, os.POSIX_FADV_DONTNEED)
        self._begun = self._size
        if self._begun > _KEPT_BYTES:
            os.posix_fadvise(handle, 0, self._begun - _KEPT_BYTES, os.POSIX_FADV_DONTNEED)

    def publish(self, *, durable: bool = True) -> str:
        with _faults_as_unavailable():
            if durable:
                os.fsync(self._file.fileno())
            self._file.close()
            self._temporary.rename(self._target)
            if durable:
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
