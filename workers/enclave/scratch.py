"""Sealed pieces on disk while an upload is parsed: in a file without a name, under a key that is nowhere else."""

from collections import defaultdict
from collections.abc import Iterator
from types import TracebackType
from typing import BinaryIO, NamedTuple, Self

from app.errors import DependencyUnavailable
from app.vault.envelope import new_key, open_chunk, seal_chunk

_NAME = "scratch"


class _Piece(NamedTuple):
    number: int
    offset: int
    length: int


class Scratch:
    """Piles of pieces: put in any order, read pile by pile in the order of putting. Nothing outlives the process.

    Args:
        file: an empty file that can be read and written; closed with this.
    """

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._key = new_key()
        self._count = 0
        self._size = 0
        self._piles: defaultdict[int, list[_Piece]] = defaultdict(list)

    def put(self, pile: int, data: bytes) -> None:
        """Raises DependencyUnavailable when the disk is full or broken."""
        sealed = seal_chunk(self._key, _NAME, self._count, data, last=False)
        try:
            self._file.seek(self._size)
            self._file.write(sealed)
        except OSError:
            raise DependencyUnavailable from None
        self._piles[pile].append(_Piece(self._count, self._size, len(sealed)))
        self._count += 1
        self._size += len(sealed)

    def pieces(self, pile: int) -> Iterator[bytes]:
        """What was put on ``pile``; raises DependencyUnavailable, or VaultError for bytes that were altered."""
        for number, offset, length in self._piles[pile]:
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
