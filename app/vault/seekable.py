"""What readers of stored bytes have in common: a size that is known, and a position that moves freely."""

import io


class SeekableReader(io.RawIOBase):
    """A readable, seekable file of ``size`` bytes; subclasses implement ``readinto`` from ``self._position`` on."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self.size = size
        self._position = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._position

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Move anywhere from the beginning on, also past the end."""
        base = {io.SEEK_SET: 0, io.SEEK_CUR: self._position, io.SEEK_END: self.size}[whence]
        if base + offset < 0:
            raise ValueError("a position is not negative")
        self._position = base + offset
        return self._position
