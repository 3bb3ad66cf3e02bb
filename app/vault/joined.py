"""Reader of several sealed parts as one file; only the enclave may import this."""

from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Callable, Sequence
from itertools import accumulate

from app.vault.errors import VaultError
from app.vault.reader import SealedReader
from app.vault.seekable import SeekableReader

OPEN_PARTS = 4


class JoinedReader(SeekableReader):
    """A file of the plaintext of all parts in order; at most ``OPEN_PARTS`` are open at a time.

    Args:
        sizes: bytes of plaintext in each part.
        open_part: opens the part with that number.

    Raises:
        VaultError: while reading, if a part cannot be authenticated or has another size.
    """

    def __init__(self, sizes: Sequence[int], open_part: Callable[[int], SealedReader]) -> None:
        self._starts = [0, *accumulate(sizes)]
        super().__init__(self._starts[-1])
        self._sizes = sizes
        self._open_part = open_part
        self._open: OrderedDict[int, SealedReader] = OrderedDict()

    def readinto(self, buffer: bytearray | memoryview) -> int:  # type: ignore[override]  # the stub allows read-only buffers
        """Fill the whole buffer, unless the plaintext ends first."""
        target = memoryview(buffer).cast("B")
        filled = 0
        while filled < len(target) and self._position < self.size:
            number = bisect_right(self._starts, self._position) - 1
            part = self._part(number)
            part.seek(self._position - self._starts[number])
            read = part.readinto(target[filled : filled + self._starts[number + 1] - self._position])
            filled += read
            self._position += read
        return filled

    def close(self) -> None:
        for part in self._open.values():
            part.close()
        self._open.clear()
        super().close()

    def _part(self, number: int) -> SealedReader:
        if number not in self._open:
            if len(self._open) == OPEN_PARTS:
                self._open.popitem(last=False)[1].close()
            opened = self._open_part(number)
            if opened.size != self._sizes[number]:
                opened.close()
                raise VaultError
            self._open[number] = opened
        self._open.move_to_end(number)
        return self._open[number]
