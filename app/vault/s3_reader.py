"""An object on an S3 server as a seekable file with read-ahead.

The read-ahead covers the ranges that the caller expects. Without them it doubles as long as the file is read in order.
"""

from collections.abc import Callable, Sequence

from app.vault.s3_keys import Range
from app.vault.seekable import SeekableReader

LEAST_AHEAD, MOST_AHEAD = 256 << 10, 8 << 20


class PiecewiseReader(SeekableReader):
    """Reads an object from its pieces; buffers at most ``MOST_AHEAD`` bytes.

    Args:
        piece: opens piece ``i``.
        size: bytes of the whole object.
        piece_bytes: bytes of every piece except the last.
    """

    def __init__(self, piece: Callable[[int], Range], size: int, piece_bytes: int) -> None:
        super().__init__(size)
        self._piece = piece
        self._piece_bytes = piece_bytes
        self._opened: tuple[int, Range] | None = None
        self._start, self._buffer = 0, b""
        self._ahead = LEAST_AHEAD
        self._expected: list[tuple[int, int]] = []

    def expect(self, ranges: Sequence[tuple[int, int]]) -> None:
        """Expect reads of these ranges (begin, end) until the next call; each range takes one request."""
        merged: list[tuple[int, int]] = []
        for begin, end in sorted(ranges):
            if merged and begin - merged[-1][1] <= LEAST_AHEAD // 4:
                merged[-1] = merged[-1][0], max(end, merged[-1][1])
            else:
                merged.append((begin, end))
        self._expected = merged

    def readinto(self, buffer: bytearray | memoryview) -> int:  # type: ignore[override]  # typeshed accepts any buffer; this one must be writable
        """Fill the whole buffer, unless the object ends first.

        Raises:
            DependencyUnavailable: the server does not deliver the bytes.
            ObjectMissing: the object was deleted after it was opened.
        """
        target = memoryview(buffer).cast("B")
        filled = 0
        while filled < len(target) and self._position < self.size:
            if not self._start <= self._position < self._start + len(self._buffer):
                self._fetch(len(target) - filled)
            begin = self._position - self._start
            part = memoryview(self._buffer)[begin : begin + len(target) - filled]
            target[filled : filled + len(part)] = part
            filled += len(part)
            self._position += len(part)
        return filled

    def close(self) -> None:
        self._opened, self._buffer = None, b""
        super().close()

    def _fetch(self, wanted: int) -> None:
        """Fill the buffer from the position on: ``wanted`` bytes, or more with read-ahead."""
        ahead = self._count_ahead()
        index, offset = divmod(self._position, self._piece_bytes)
        if self._opened is None or self._opened[0] != index:
            self._opened = (index, self._piece(index))
        length = min(max(wanted, ahead), MOST_AHEAD, self._piece_bytes - offset, self.size - self._position)
        self._buffer = b""  # frees the old buffer before the new one is filled
        self._buffer = self._opened[1].read(offset, length)
        self._start = self._position

    def _count_ahead(self) -> int:
        """Count the bytes from the position on that are likely to be read."""
        for begin, end in self._expected:
            if begin <= self._position < end:
                return end - self._position
        in_order = self._position == self._start + len(self._buffer)
        self._ahead = min(2 * self._ahead, MOST_AHEAD) if in_order else LEAST_AHEAD
        return self._ahead
