"""The allocator of a process through which long bodies stream."""

import ctypes

_TRIM_THRESHOLD, _MMAP_THRESHOLD, _ARENA_MAX = -1, -3, -8  # of glibc's mallopt
_MMAP_BYTES, _KEPT_BYTES, _ARENAS = 32 << 20, 64 << 20, 2


def keep_what_is_freed() -> None:
    """Let buffers of a megabyte be used again, instead of being mapped, zeroed and unmapped for every piece of a body.

    Twice the speed of an upload, for a few MiB. Where the C library is another than glibc, this does nothing.
    """
    adjust = getattr(ctypes.CDLL(None), "mallopt", None)
    if adjust is not None:
        adjust(_MMAP_THRESHOLD, _MMAP_BYTES)
        adjust(_TRIM_THRESHOLD, _KEPT_BYTES)
        adjust(_ARENA_MAX, _ARENAS)
