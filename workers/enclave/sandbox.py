"""Limits of the process that parses uploads."""

import ctypes
import os
import resource
import signal

_PR_SET_PDEATHSIG = 1
_PR_SET_DUMPABLE = 4


def confine(memory_bytes: int, cpu_seconds: int, parent: int) -> None:
    """Confine this process.

    Caps its memory and CPU time, forbids core dumps, and ends it with its parent.

    Raises:
        RuntimeError: the parent has ended already, or the kernel refuses.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    refused = libc.prctl(_PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0) | libc.prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)
    if refused or os.getppid() != parent:
        raise RuntimeError("cannot confine this process")
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    _lower(resource.RLIMIT_CPU, cpu_seconds)
    _lower(resource.RLIMIT_AS, memory_bytes)


def _lower(limit: int, value: int) -> None:
    hard = resource.getrlimit(limit)[1]
    capped = value if hard == resource.RLIM_INFINITY else min(value, hard)
    resource.setrlimit(limit, (capped, hard))
