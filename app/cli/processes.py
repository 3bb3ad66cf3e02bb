"""Child processes that end with their parent (Linux), in the parent's process group."""

import ctypes
import os
import signal
import subprocess
import sys
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from app.cli.failures import fail

_PR_SET_PDEATHSIG, _PR_SET_CHILD_SUBREAPER = 1, 36
_libc = ctypes.CDLL(None, use_errno=True)


def find_script(name: str) -> str:
    """Return the path of a console command in this interpreter's folder; ``PATH`` is not used."""
    script = Path(sys.executable).parent / name
    if not script.exists():
        fail(f"{name} is missing in {script.parent}; install the service again")
    return str(script)


@dataclass
class Child:
    """A command that is kept running; the kernel kills it if its parent ends."""

    name: str
    command: tuple[str, ...]
    environment: Mapping[str, str] = field(repr=False)
    handles: tuple[int, ...] = ()
    process: subprocess.Popen[bytes] | None = None
    started_at: float = 0.0
    restart_at: float = 0.0
    failures: int = 0

    def start(self, at: float) -> None:
        parent = os.getpid()

        def prepare() -> None:
            _libc.prctl(_PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0)
            if os.getppid() != parent:
                os._exit(1)  # the parent ended before the kernel was asked to kill this child with it
            signal.pthread_sigmask(signal.SIG_SETMASK, ())

        self.started_at = at
        self.process = subprocess.Popen(
            self.command,
            env=dict(self.environment),
            pass_fds=self.handles,
            stdin=subprocess.DEVNULL,
            preexec_fn=prepare,  # noqa: PLW1509  (the parent has one thread)
        )

    def send(self, number: signal.Signals) -> None:
        if self.process is not None and self.process.poll() is None:
            self.process.send_signal(number)

    @property
    def running(self) -> bool:
        return self.process is not None and self.process.poll() is None


def adopt_orphans() -> None:
    """Become the parent of grandchildren whose parent dies, so that they can be ended."""
    _libc.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def find_orphans(started: Iterable[Child]) -> frozenset[int]:
    """Return the ids of child processes that this process did not start itself."""
    me = os.getpid()
    listed = Path(f"/proc/{me}/task/{me}/children").read_text().split()
    return frozenset(map(int, listed)) - {child.process.pid for child in started if child.process is not None}


def reap(pids: Iterable[int]) -> None:
    """Collect the exit status of processes that have ended, so that no zombies remain."""
    for pid in pids:
        with suppress(ChildProcessError):
            os.waitpid(pid, os.WNOHANG)


def kill(pids: Iterable[int]) -> None:
    for pid in pids:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
