"""Keys of an S3-compatible server, through the Arrow library.

Each call either succeeds or raises DependencyUnavailable, unless it documents another error.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

import pyarrow as pa
from pyarrow.fs import AwsStandardS3RetryStrategy, FileSelector, FileType, S3FileSystem

from app.errors import DependencyUnavailable
from app.vault.errors import ObjectMissing

CONNECT_SECONDS: Final = 2.0
REQUEST_SECONDS: Final = 10.0
ATTEMPTS: Final = 3


@dataclass(frozen=True, slots=True)
class Place:
    """A prefix in a bucket of an S3 server."""

    bucket: str
    prefix: str = ""
    endpoint: str | None = None
    region: str | None = None

    @property
    def root(self) -> str:
        return "/".join(part for part in (self.bucket, self.prefix.strip("/")) if part)


class Range:
    """An open key; any range of its content can be read."""

    def __init__(self, file: Any) -> None:
        self._file = file
        self.size = int(file.size())

    def read(self, offset: int, length: int) -> bytes:
        """Read ``length`` bytes from ``offset``.

        Raises:
            DependencyUnavailable: the server fails, or the key ends before the range does.
        """
        with translate_faults():
            data = bytes(self._file.read_at(length, offset))
        if len(data) != length:
            raise DependencyUnavailable
        return data


class S3Keys:
    """The keys below one prefix of an existing bucket.

    The AWS libraries look for credentials in environment variables, files and the machine's role.
    """

    def __init__(self, place: Place) -> None:
        self._root = place.root
        with translate_faults():
            self._server = S3FileSystem(
                endpoint_override=place.endpoint,
                region=place.region or ("us-east-1" if place.endpoint else None),
                connect_timeout=CONNECT_SECONDS,
                request_timeout=REQUEST_SECONDS,
                retry_strategy=AwsStandardS3RetryStrategy(max_attempts=ATTEMPTS),
                background_writes=False,
                allow_delayed_open=True,  # a small key takes one atomic request
            )

    def put(self, key: str, content: bytes) -> None:
        """Set or replace the key's content; up to 10 MB take one request."""
        with translate_faults(), self._server.open_output_stream(self._path(key)) as target:
            target.write(content)

    def open(self, key: str) -> Range:
        """Open the key.

        Raises:
            ObjectMissing: there is no such key.
        """
        with translate_faults():
            try:
                return Range(self._server.open_input_file(self._path(key)))
            except FileNotFoundError:
                raise ObjectMissing from None

    def read(self, key: str) -> bytes:
        """Read the key's content.

        Raises:
            ObjectMissing: there is no such key.
        """
        opened = self.open(key)
        return opened.read(0, opened.size)

    def remove(self, key: str) -> bool:
        """Remove the key; return whether it existed."""
        with translate_faults():
            try:
                self._server.delete_file(self._path(key))
            except FileNotFoundError:
                return False
            except OSError:  # perhaps only of the library's step after the deletion: see _is_gone
                if not self._is_gone(key):
                    raise
        return True

    def remove_below(self, key: str) -> None:
        """Remove all keys below ``key``; harmless if there are none."""
        with translate_faults():
            try:
                self._server.delete_dir(self._path(key))
            except FileNotFoundError:
                return
            except OSError:
                if not self._is_gone(key):
                    raise

    def below(self, key: str) -> list[tuple[str, datetime]]:
        """Return each key below ``key``, and when it was last set."""
        with translate_faults():
            listing = self._server.get_file_info(FileSelector(self._path(key), recursive=True, allow_not_found=True))
        skipped = len(self._root) + 1
        return [(each.path[skipped:], each.mtime) for each in listing if each.type is FileType.File]

    def _is_gone(self, key: str) -> bool:
        """Whether no key exists at ``key`` or below it.

        After a deletion, the library writes an empty key for the folder. Users with the right to delete only may not do
        that, so the deletion succeeds but the call fails.
        """
        return bool(self._server.get_file_info(self._path(key)).type is FileType.NotFound)

    def _path(self, key: str) -> str:
        return f"{self._root}/{key}"


@contextmanager
def translate_faults() -> Iterator[None]:
    """Raise DependencyUnavailable for each error of the library, without its message.

    The server may be unreachable or full, or it may deny access.
    """
    try:
        yield
    except (OSError, pa.ArrowException):
        raise DependencyUnavailable from None
