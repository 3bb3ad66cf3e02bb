"""``corevaultd`` in processes of its own, as an operator starts it."""

import os
import re
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import httpx

from support.processes import kill

COREVAULTD = Path(sys.executable).parent / "corevaultd"
PATIENCE_SECONDS = 90


def eventually(condition: Callable[[], object], what: str) -> None:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not condition():
        assert time.monotonic() < deadline, what
        time.sleep(0.05)


def alive(pid: int) -> bool:
    """Whether the process exists and is no zombie."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def descendants(pid: int) -> list[int]:
    try:
        children = [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except FileNotFoundError:
        return []
    return children + [found for child in children for found in descendants(child)]


class Daemon:
    """One ``corevaultd``, with its log and its temporary files in ``folder``; ``address`` as it announces it."""

    def __init__(self, folder: Path, arguments: Sequence[str], **settings: str) -> None:
        self.temporary, self._log = folder / "temporary", (folder / "log").open("a+")
        self.temporary.mkdir()
        environment = {name: value for name, value in os.environ.items() if not name.startswith("COREVAULT_")}
        self.process = subprocess.Popen(
            [str(COREVAULTD), *arguments],
            stdout=subprocess.PIPE,
            stderr=self._log,
            text=True,
            env=environment | {"TMPDIR": str(self.temporary)} | settings,
            process_group=0,
        )
        assert self.process.stdout is not None
        found = re.search(r"http://127\.0\.0\.1:(\d+)", self.process.stdout.readline())
        assert found is not None
        self.address, self.port = found[0], int(found[1])

    def get(self, path: str) -> httpx.Response:
        """On a connection of its own, which any of the processes may take."""
        return httpx.get(f"{self.address}{path}", timeout=PATIENCE_SECONDS)

    def log(self) -> str:
        """What its processes have written to standard error so far."""
        return Path(self._log.name).read_text()

    def ready(self) -> bool:
        try:
            return self.get("/health/ready").status_code == 200
        except httpx.TransportError:
            return False

    def close(self) -> None:
        """End whatever a failed test left running."""
        kill([self.process.pid, *descendants(self.process.pid)] if self.process.poll() is None else [])
        self.process.wait()
        assert self.process.stdout is not None
        self.process.stdout.close()
        self._log.close()
