"""What a figure was measured on: stated beside it, because seconds mean nothing without."""

import os
import platform
import subprocess
from collections.abc import Mapping
from datetime import UTC, datetime
from functools import cache
from importlib.metadata import version
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PAGES = ROOT / "docs" / "benchmarks"
LIBRARIES = ("numpy", "scipy", "opendp", "dp-accounting")


def environment() -> dict[str, str]:
    """Machine, software, time and commit, in words; one thread a process is the rule of all benchmarks."""
    return {
        "processor": _processor(),
        "cores": f"{os.cpu_count()}, of which one is used",
        "python": platform.python_version(),
        **{library: version(library) for library in LIBRARIES},
        "date": datetime.now(UTC).date().isoformat(),
        "commit": commit(),
    }


def describe(circumstances: Mapping[str, str]) -> str:
    """``circumstances``, as of :func:`environment`, as a sentence."""
    return f"Measured on: {'; '.join(f'{name} {value}' for name, value in circumstances.items())}."


@cache
def commit() -> str:
    """The abbreviated commit that the run started from; "unknown" outside of a repository."""
    found = subprocess.run(
        ["git", "rev-parse", "--short=10", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    return found.stdout.strip() or "unknown"


def _processor() -> str:
    described = Path("/proc/cpuinfo")
    lines = described.read_text().splitlines() if described.exists() else []
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()
