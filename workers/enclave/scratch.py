"""Sealed pieces on disk during ingestion.

They are in a file without a name, under a key that exists only in this process.
"""

from collections import defaultdict
from collections.abc import Iterator
from types import TracebackType
from typing import BinaryIO, NamedTuple, Self

from app.errors import DependencyUnavailable
from app.vault.envelope import generate_key, open_chunk, seal_chunk

_NAME = "scratch"


class _Piece(NamedTuple):
    number: int
    offset: int
    length: int


class Scratch:
    """Buckets of pieces: put in any order, read bucket by bucket in the order of putting.

    No piece outlives the process.

    Args:
        file: an empty file that can be read and written; closed with this object.
    """

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._key = generate_key()
        self._count = 0
        self._size = 0
        self._buckets: defaultdict[int, list[_Piece]] = defaultdict(list)

    def put(self, bucket: int, data: bytes) -> None:
        """Seal a piece and write it.

        Raises:
            DependencyUnavailable: the disk is full or broken.
        """
        sealed = seal_chunk(self._key, _NAME, self._count, data, last=False)
        try:
            self._file.seek(self._size)
            self._file.write(sealed)
        except OSError:
            raise DependencyUnavailable from None
        self._buckets[bucket].append(_Piece(self._count, self._size, len(sealed)))
        self._count += 1
        self._size += len(sealed)

    def pieces(self, bucket: int) -> Iterator[bytes]:
        """Read and open the pieces of ``bucket``.

        Raises:
            DependencyUnavailable: the disk is broken.
            VaultError: a piece was altered.
        """
        for number, offset, length in self._buckets[bucket]:
            try:
                self._file.seek(offset)
                sealed = self._file.read(length)
            except OSError:
                raise DependencyUnavailable from None
            yield open_chunk(self._key, _NAME, number, sealed, last=False)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._file.close()
