"""An object on an S3 server as a seekable file that reads ahead: as it is told to, else more the longer it goes on."""

from collections.abc import Callable, Sequence

from app.vault.s3_keys import Range
from app.vault.seekable import SeekableReader

LEAST_AHEAD, MOST_AHEAD = 256 << 10, 8 << 20


class PiecewiseReader(SeekableReader):
    """The pieces of an object, one after the other; at most ``MOST_AHEAD`` bytes are held.

    Args:
        piece: opens piece ``i``.
        size: of the whole object.
        piece_bytes: of every piece but the last.
    """

    def __init__(self, piece: Callable[[int], Range], size: int, piece_bytes: int) -> None:
        super().__init__(size)
        self._piece = piece
        self._piece_bytes = piece_bytes
        self._opened: tuple[int, Range] | None = None
        self._start, self._held = 0, b""
        self._ahead = LEAST_AHEAD
        self._expected: list[tuple[int, int]] = []

    def expect(self, ranges: Sequence[tuple[int, int]]) -> None:
        """Until told otherwise, these ranges (begin, end) are read, each as a whole: one request each, and no more."""
        merged: list[tuple[int, int]] = []
        for begin, end in sorted(ranges):
            if merged and begin - merged[-1][1] <= LEAST_AHEAD // 4:
                merged[-1] = merged[-1][0], max(end, merged[-1][1])
            else:
                merged.append((begin, end))
        self._expected = merged

    def readinto(self, buffer: bytearray | memoryview) -> int:  # type: ignore[override]  # the stub takes any buffer; ours are written to
        """Fills the whole buffer unless the object ends first.

        Raises:
            DependencyUnavailable: the server does not deliver.
            ObjectMissing: the object was deleted meanwhile.
        """
        target = memoryview(buffer).cast("B")
        filled = 0
        while filled < len(target) and self._position < self.size:
            if not self._start <= self._position < self._start + len(self._held):
                self._fetch(len(target) - filled)
            begin = self._position - self._start
            part = memoryview(self._held)[begin : begin + len(target) - filled]
            target[filled : filled + len(part)] = part
            filled += len(part)
            self._position += len(part)
        return filled

    def close(self) -> None:
        self._opened, self._held = None, b""
        super().close()

    def _fetch(self, wanted: int) -> None:
        """Hold what lies at the position: as much as is wanted, or more where the file is read in order."""
        ahead = self._foreseen()
        index, offset = divmod(self._position, self._piece_bytes)
        if self._opened is None or self._opened[0] != index:
            self._opened = (index, self._piece(index))
        length = min(max(wanted, ahead), MOST_AHEAD, self._piece_bytes - offset, self.size - self._position)
        self._held = b""  # two windows are never held
        self._held = self._opened[1].read(offset, length)
        self._start = self._position

    def _foreseen(self) -> int:
        """How many bytes from the position on are likely to be read."""
        for begin, end in self._expected:
            if begin <= self._position < end:
                return end - self._position
        in_order = self._position == self._start + len(self._held)
        self._ahead = min(2 * self._ahead, MOST_AHEAD) if in_order else LEAST_AHEAD
        return self._ahead
