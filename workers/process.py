"""What a worker process owes to the machine: no core dumps, no orphans, and word of a stop."""

import ctypes
import mmap
import os
import resource
import signal

PR_SET_PDEATHSIG = 1
PR_SET_DUMPABLE = 4


class StopSign:
    """Put up by a worker's first process, seen at once by all that were forked from it."""

    def __init__(self) -> None:
        self._page = mmap.mmap(-1, 1)

    def put_up(self) -> None:
        self._page[0] = 1

    def is_up(self) -> bool:
        return self._page[0] == 1


def forbid_core_dumps() -> None:
    """Rows in memory must never reach a disk: no core file, and no other process of this user may attach."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    _prctl(PR_SET_DUMPABLE, 0)


def die_with_parent(parent: int) -> None:
    """Kill this process once ``parent`` (or the thread of it that forked) is gone; at once if it is gone already."""
    _prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)


def _prctl(option: int, value: int) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(option, ctypes.c_ulong(value), 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl")
