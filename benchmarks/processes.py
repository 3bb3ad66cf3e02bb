"""Processor time and memory of processes, from the operating system."""

import os
import resource
from pathlib import Path

_MIB = 2**20


def measure_cpu_seconds(pid: int) -> float:
    """Processor time of a process so far, with its system calls."""
    fields = (Path("/proc") / str(pid) / "stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def measure_resident_mib() -> float:
    """The resident memory of this process."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize() / _MIB


def measure_peak_mib() -> float:
    """The peak of this process's resident memory."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / _MIB
