"""Starts ``corevaultd`` in separate processes, as an operator does."""

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
        time.sleep(0.1)


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
    return children + [each for child in children for each in descendants(child)]


class Daemon:
    """A running ``corevaultd``, with its log and temporary files in ``folder``.

    ``address`` is the URL that it prints.
    """

    def __init__(self, folder: Path, arguments: Sequence[str], **settings: str) -> None:
        self.temporary, self._log = folder / "temporary", (folder / "log").open("a+")
        self.temporary.mkdir(exist_ok=True)
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
        match = re.search(r"http://127\.0\.0\.1:(\d+)", self.process.stdout.readline())
        assert match is not None
        self.address, self.port = match[0], int(match[1])

    def get(self, path: str) -> httpx.Response:
        """Send a request on a new connection, which any of the processes may take.

        Without ``verify=False``, each request would read all root certificates, which takes 20 ms of processor time.
        """
        return httpx.get(f"{self.address}{path}", timeout=PATIENCE_SECONDS, verify=False)

    def log(self) -> str:
        """Return the output of its processes on standard error so far."""
        return Path(self._log.name).read_text()

    def ready(self) -> bool:
        try:
            return self.get("/health/ready").status_code == 200
        except httpx.TransportError:
            return False

    def close(self) -> None:
        """End the processes that a failed test has left running."""
        kill([self.process.pid, *descendants(self.process.pid)] if self.process.poll() is None else [])
        self.process.wait()
        assert self.process.stdout is not None
        self.process.stdout.close()
        self._log.close()
