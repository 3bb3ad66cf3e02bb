"""What the system says of processes: processor time and memory."""

import os
import resource
from pathlib import Path

_MIB = 2**20


def cpu_seconds(pid: int) -> float:
    """Processor time that a process has taken so far, its system calls included."""
    fields = (Path("/proc") / str(pid) / "stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def resident_mib() -> float:
    """Memory that this process holds."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize() / _MIB


def peak_mib() -> float:
    """The most memory that this process has held at once."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / _MIB
