"""Drops the pages of large files from the page cache after reading."""

import os
from contextlib import suppress
from typing import BinaryIO

_SHARE_OF_MEMORY = 2
_LARGEST_PIECE = 8 << 20
"""At least the largest folio of the page cache, which is dropped only if all of it is named."""


class DropBehind:
    """Drops the pages already read of a large file from the page cache.

    A file is large if it is larger than half of the machine's memory. The system caches files in unused memory. Most of
    a large file is evicted before it is read again from its beginning, so its cached pages are useless. They may also
    be expensive: a virtual machine returns unused memory to its host, and getting it back, page by page, took longer
    than reading and decoding together. If pages are dropped, the same few pages serve for the whole file. Smaller files
    stay in the cache for the next query.

    The decision follows from the size of the file alone, and the cache holds only ciphertext.

    Args:
        source: the file; a file in memory or on a server is ignored.
    """

    def __init__(self, source: BinaryIO) -> None:
        self._handle: int | None = None
        with suppress(OSError):  # a file in memory, or one on a server
            handle = source.fileno()
            if os.fstat(handle).st_size > read_memory_bytes() // _SHARE_OF_MEMORY:
                self._handle = handle

    def drop(self, begin: int, end: int) -> None:
        """Drop the pages of the bytes from ``begin`` to ``end``.

        Up to 8 MiB before them are dropped as well; they must have been read already, or not be needed.
        """
        if self._handle is not None:
            first = max(0, begin - _LARGEST_PIECE)
            with suppress(OSError):  # this is advice only; no result depends on it
                os.posix_fadvise(self._handle, first, end - first, os.POSIX_FADV_DONTNEED)


def read_memory_bytes() -> int:
    """Return the size of the machine's memory."""
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
