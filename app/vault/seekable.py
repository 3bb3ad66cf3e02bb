"""Base class of seekable readers of stored bytes."""

import io


class SeekableReader(io.RawIOBase):
    """A readable, seekable file of ``size`` bytes.

    Subclasses implement ``readinto``, which reads from ``self._position``.
    """

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
        """Move to any position that is not negative; it may be past the end."""
        base = {io.SEEK_SET: 0, io.SEEK_CUR: self._position, io.SEEK_END: self.size}[whence]
        if base + offset < 0:
            raise ValueError("the position must not be negative")
        self._position = base + offset
        return self._position
