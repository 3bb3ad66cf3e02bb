"""Objects as files below one directory.

If the operator gives the directory a mode that admits its group (2770, for example), the store is shared with the
group. API and worker can then be two users. All other directories are closed to other users.
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
from app.vault.store import check_name, draw_name

_GROUP_OF_DIRECTORY, _GROUP_OF_FILE = 0o2070, 0o060
_WRITEBACK_BYTES = 8 << 20
_CACHED_BYTES = 64 << 20


class LocalStore:
    """Files below ``root``.

    The root is created at once, if that is allowed, and its folders at the first write. If the root disappears later
    (an unmounted disk), the store is unavailable and not empty.
    """

    def __init__(self, root: Path) -> None:
        self.url = root.absolute().as_uri()
        self._root = root
        self._objects = root / "objects"
        self._unfinished = root / "unfinished"
        self._notes = root / "notes"
        with suppress(OSError):  # a process with read access alone can still start
            root.mkdir(mode=0o700, parents=True, exist_ok=True)

    def create(self, name: str | None = None) -> "LocalWriter":
        name = draw_name() if name is None else name
        return self._create_writer(name, self._unfinished / name, self._path(name))

    def open(self, name: str) -> BinaryIO:
        with _raise_unavailable():
            try:
                return self._path(name).open("rb")
            except FileNotFoundError:
                raise ObjectMissing from None

    def delete(self, name: str) -> None:
        path = self._path(name)
        with _raise_unavailable(), suppress(FileNotFoundError):
            (self._unfinished / name).unlink(missing_ok=True)
            path.unlink()
            sync_directory(path.parent)

    def scratch(self) -> BinaryIO:
        with _raise_unavailable():
            self._make_folders(self._unfinished)
            return cast(BinaryIO, tempfile.TemporaryFile(dir=self._unfinished))

    def leave(self, name: str, content: bytes) -> None:
        with self._create_writer(name, self._unfinished / draw_name(), self._note(name)) as target:
            target.write(content)
            target.publish(durable=False)

    def note(self, name: str) -> bytes:
        with _raise_unavailable():
            try:
                return self._note(name).read_bytes()
            except FileNotFoundError:
                raise ObjectMissing from None

    def delete_note(self, name: str) -> None:
        with _raise_unavailable():
            self._note(name).unlink(missing_ok=True)

    def delete_unfinished(self, idle_seconds: float) -> None:
        horizon = time.time() - idle_seconds
        with _raise_unavailable():
            for folder in (self._unfinished, self._notes):
                for path in folder.iterdir() if folder.exists() else ():
                    with suppress(FileNotFoundError):
                        if path.stat().st_mtime < horizon:
                            path.unlink()

    def _create_writer(self, name: str, temporary: Path, target: Path) -> "LocalWriter":
        with _raise_unavailable():
            group = self._make_folders(temporary.parent, target.parent)
        return LocalWriter(name, temporary, target, 0o600 | group & _GROUP_OF_FILE)

    def _make_folders(self, *folders: Path) -> int:
        """Create the folders with the root's permissions for its group; returns these permission bits."""
        group = self._root.stat().st_mode & _GROUP_OF_DIRECTORY
        for folder in folders:
            for path in (folder.parent, folder):
                if not path.exists():
                    with suppress(FileExistsError):
                        path.mkdir(mode=0o700)
                        path.chmod(0o700 | group)
        return group

    def _path(self, name: str) -> Path:
        return self._objects / name[:2] / check_name(name)

    def _note(self, name: str) -> Path:
        return self._notes / check_name(name)


class LocalWriter:
    """Writes a file outside the objects, and moves it there at the end."""

    def __init__(self, name: str, temporary: Path, target: Path, mode: int) -> None:
        self.name = name
        self._temporary = temporary
        self._target = target
        with _raise_unavailable():
            handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
            os.fchmod(handle, mode)
        self._file = os.fdopen(handle, "wb", buffering=0)
        self._size = self._written_back = 0

    def write(self, data: bytes) -> int:
        rest = memoryview(data)
        with _raise_unavailable():
            while rest:
                rest = rest[self._file.write(rest) :]
            self._size += len(data)
            if self._size - self._written_back >= _WRITEBACK_BYTES:
                self._start_writeback()
        return len(data)

    def _start_writeback(self) -> None:
        """Start the write-back of new pages, and free old pages of the cache.

        So :meth:`publish` waits for the last pages of a large object only. The freed pages are used again: a fault on
        a new page costs more than the copy into it, above all on virtual machines. On Linux, POSIX_FADV_DONTNEED
        starts to write dirty pages and frees clean ones. It neither waits nor makes anything durable.
        """
        handle = self._file.fileno()
        os.posix_fadvise(handle, self._written_back, self._size - self._written_back, os.POSIX_FADV_DONTNEED)
        self._written_back = self._size
        if self._written_back > _CACHED_BYTES:
            os.posix_fadvise(handle, 0, self._written_back - _CACHED_BYTES, os.POSIX_FADV_DONTNEED)

    def publish(self, *, durable: bool = True) -> str:
        with _raise_unavailable():
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
        with _raise_unavailable():
            self._temporary.unlink(missing_ok=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.discard()


@contextmanager
def _raise_unavailable() -> Iterator[None]:
    """Raise DependencyUnavailable for errors of the disk, without the message of the system."""
    try:
        yield
    except OSError:
        raise DependencyUnavailable from None


def sync_directory(directory: Path) -> None:
    """Make the entries of a directory durable."""
    handle = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
