"""Keys of an S3-compatible server, by the Arrow library: each call either does it or says that the server is away."""

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
    """Where in which bucket of which server."""

    bucket: str
    prefix: str = ""
    endpoint: str | None = None
    region: str | None = None

    @property
    def root(self) -> str:
        return "/".join(part for part in (self.bucket, self.prefix.strip("/")) if part)


class Range:
    """An open key, of which any range can be read."""

    def __init__(self, file: Any) -> None:
        self._file = file
        self.size = int(file.size())

    def read(self, offset: int, length: int) -> bytes:
        """Raises DependencyUnavailable, also where the key ends before the range does."""
        with faults_as_unavailable():
            data = bytes(self._file.read_at(length, offset))
        if len(data) != length:
            raise DependencyUnavailable
        return data


class S3Keys:
    """The keys below one prefix. The bucket exists already.

    Credentials are found as the AWS libraries find them: variables, files, the role of the machine.
    """

    def __init__(self, place: Place) -> None:
        self._root = place.root
        with faults_as_unavailable():
            self._server = S3FileSystem(
                endpoint_override=place.endpoint,
                region=place.region or ("us-east-1" if place.endpoint else None),
                connect_timeout=CONNECT_SECONDS,
                request_timeout=REQUEST_SECONDS,
                retry_strategy=AwsStandardS3RetryStrategy(max_attempts=ATTEMPTS),
                background_writes=False,
                allow_delayed_open=True,  # a small key takes one request, and is there whole or not at all
            )

    def put(self, key: str, content: bytes) -> None:
        """Set the key, in place of what it may hold; one request for up to 10 MB."""
        with faults_as_unavailable(), self._server.open_output_stream(self._path(key)) as target:
            target.write(content)

    def open(self, key: str) -> Range:
        """Raises ObjectMissing."""
        with faults_as_unavailable():
            try:
                return Range(self._server.open_input_file(self._path(key)))
            except FileNotFoundError:
                raise ObjectMissing from None

    def read(self, key: str) -> bytes:
        """All that the key holds. Raises ObjectMissing."""
        opened = self.open(key)
        return opened.read(0, opened.size)

    def remove(self, key: str) -> bool:
        """Whether there was such a key."""
        with faults_as_unavailable():
            try:
                self._server.delete_file(self._path(key))
            except FileNotFoundError:
                return False
            except OSError:  # also of what comes after: see _is_gone
                if not self._is_gone(key):
                    raise
        return True

    def remove_below(self, key: str) -> None:
        """Remove all keys below ``key``; harmless if there are none."""
        with faults_as_unavailable():
            try:
                self._server.delete_dir(self._path(key))
            except FileNotFoundError:
                return
            except OSError:
                if not self._is_gone(key):
                    raise

    def below(self, key: str) -> list[tuple[str, datetime]]:
        """Each key below ``key``, and when it was last set."""
        with faults_as_unavailable():
            found = self._server.get_file_info(FileSelector(self._path(key), recursive=True, allow_not_found=True))
        skipped = len(self._root) + 1
        return [(each.path[skipped:], each.mtime) for each in found if each.type is FileType.File]

    def _is_gone(self, key: str) -> bool:
        """Whether nothing is there, at ``key`` or below it.

        The library marks the folder of what it has removed by an empty key, which those may not put who only delete.
        """
        return bool(self._server.get_file_info(self._path(key)).type is FileType.NotFound)

    def _path(self, key: str) -> str:
        return f"{self._root}/{key}"


@contextmanager
def faults_as_unavailable() -> Iterator[None]:
    """A server that is away, full, or denies access is a dependency that is away; what the library says stays here."""
    try:
        yield
    except (OSError, pa.ArrowException):
        raise DependencyUnavailable from None
