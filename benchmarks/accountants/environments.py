"""Isolated environments of other accountants, and requests to them as JSON."""

import json
import subprocess
from pathlib import Path
from typing import Any, Final

from benchmarks.environment import ROOT
from benchmarks.peers.environments import PeerFailed, install

FOLDER: Final = ROOT / ".accountants"
"""Where environments are installed; git ignores it."""
HERE: Final = Path(__file__).parent
_SECONDS: Final = 7200
_LAST: Final = 300
"""Characters of an error that are kept."""


def read_requirements(name: str) -> list[str]:
    """Read the pinned requirements of an environment."""
    return (HERE / f"{name}.txt").read_text().split()


def ask(name: str, script: str, request: dict[str, Any], folder: Path = FOLDER) -> dict[str, Any]:
    """Answer one request by ``script`` in the environment ``name``, which is installed first.

    Raises:
        PeerFailed: the environment cannot be installed, or the script failed.
    """
    python = install(folder, name, ["--no-deps", *read_requirements(name)])
    done = subprocess.run(
        [str(python), str(HERE / "workers" / f"{script}.py")],
        input=json.dumps(request),
        capture_output=True,
        text=True,
        timeout=_SECONDS,
        check=False,
    )
    if done.returncode:
        raise PeerFailed(f"{name}: {done.stderr[-_LAST:]}")
    found: dict[str, Any] = json.loads(done.stdout)
    return found
