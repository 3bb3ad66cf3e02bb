"""What a reader leaves of a file in the system's cache: nothing, where the file would crowd it."""

import os
from contextlib import suppress
from typing import BinaryIO

_SHARE_OF_MEMORY = 2
_LARGEST_PIECE = 8 << 20
"""At least what the system caches in one piece, which goes once all of it is named."""


class Wake:
    """Lets go of what was read of a file of more than half of the machine's memory.

    The system caches a file in memory that is not in use. Little of a large one is still there when it is read again
    from its beginning, and that memory may have to be fetched: a virtual machine gives what it does not use back to
    its host, and getting it again, page by page, took longer than reading and decoding together. Where the cache lets
    go, the same few pages serve for the whole file. Any other file stays, for the next query about it.

    Whether it stays follows from its size alone, and what lies in the cache is ciphertext either way.

    Args:
        source: the file; one that is none of the system's is in none of its caches.
    """

    def __init__(self, source: BinaryIO) -> None:
        self._handle: int | None = None
        with suppress(OSError):  # a file in memory, or one on a server
            handle = source.fileno()
            if os.fstat(handle).st_size > memory_bytes() // _SHARE_OF_MEMORY:
                self._handle = handle

    def pass_over(self, begin: int, end: int) -> None:
        """The bytes from ``begin`` to ``end`` were read, and those before them too, or not at all."""
        if self._handle is not None:
            first = max(0, begin - _LARGEST_PIECE)
            with suppress(OSError):  # advice, which nothing depends on
                os.posix_fadvise(self._handle, first, end - first, os.POSIX_FADV_DONTNEED)


def memory_bytes() -> int:
    """Of the machine."""
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
