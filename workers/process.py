"""Functions of a worker process: no core dumps, no orphans, and a flag that stops all children."""

import ctypes
import mmap
import os
import resource
import signal

PR_SET_PDEATHSIG = 1
PR_SET_DUMPABLE = 4


class StopFlag:
    """A flag in shared memory: set by a worker's first process, read by its forked children."""

    def __init__(self) -> None:
        self._page = mmap.mmap(-1, 1)

    def set(self) -> None:
        self._page[0] = 1

    def is_set(self) -> bool:
        return self._page[0] == 1


def forbid_core_dumps() -> None:
    """Forbid core files, and that other processes of this user attach: rows in memory must never reach a disk."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    _prctl(PR_SET_DUMPABLE, 0)


def die_with_parent(parent: int) -> None:
    """Kill this process once ``parent``, or its thread that forked, has ended; at once if it has ended already."""
    _prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)


def _prctl(option: int, value: int) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(option, ctypes.c_ulong(value), 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl")
