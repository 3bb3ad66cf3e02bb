"""The environment of a measurement. Figures state it, because times depend on it."""

import json
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


def describe_environment() -> dict[str, str]:
    """Machine, software, date and commit. All benchmarks use one thread for each process."""
    return {
        "processor": _processor(),
        "cores": f"{os.cpu_count()}, of which one is used",
        "python": platform.python_version(),
        **{library: version(library) for library in LIBRARIES},
        "date": datetime.now(UTC).date().isoformat(),
        "commit": find_commit(),
    }


def write_environment(path: Path, part: str | None = None) -> dict[str, str]:
    """Writes the environment of the runs, and gives it. That of one ``part`` is added to the old one in the file."""
    now = describe_environment()
    if part is not None and path.exists():
        old: dict[str, str] = json.loads(path.read_text())
        now = {**old, f"{part}:": f"processor {now['processor']}, date {now['date']}, commit {now['commit']}"}
    path.write_text(json.dumps(now, indent=1) + "\n")
    return now


def describe(circumstances: Mapping[str, str]) -> str:
    """A sentence with ``circumstances``, which are a result of :func:`describe_environment`."""
    return f"Measured on: {'; '.join(f'{name} {value}' for name, value in circumstances.items())}."


@cache
def find_commit() -> str:
    """The abbreviated commit at the start of the run; "unknown" outside a repository."""
    result = subprocess.run(
        ["git", "rev-parse", "--short=10", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    return result.stdout.strip() or "unknown"


def _processor() -> str:
    file = Path("/proc/cpuinfo")
    lines = file.read_text().splitlines() if file.exists() else []
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()
