"""What a worker process owes to the machine: no core dumps, no orphans, no stop that takes for ever."""

import ctypes
import os
import resource
import signal
import threading

PR_SET_PDEATHSIG = 1
PR_SET_DUMPABLE = 4
STOP_SECONDS = 10.0
"""How long a worker that was asked to stop lets its runs go on; what has not ended by then is taken up again."""


def forbid_core_dumps() -> None:
    """Rows in memory must never reach a disk: no core file, and no other process of this user may attach."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    _prctl(PR_SET_DUMPABLE, 0)


def die_with_parent(parent: int) -> None:
    """Kill this process once ``parent`` is gone; at once if that has happened already."""
    _prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)


def exit_after(seconds: float) -> None:
    """End this process, and with it its children, if it has not ended by itself by then."""
    timer = threading.Timer(seconds, os._exit, (0,))
    timer.daemon = True
    timer.start()


def _prctl(option: int, value: int) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(option, ctypes.c_ulong(value), 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl")
