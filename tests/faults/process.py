"""Runs the API or a worker as a process that fails on request.

A request is a file in a folder, ``<number>.<point>.<action>``. The first process that reaches the point carries out the
action: it kills itself or its whole group, freezes for a while and continues, or stops until a signal. Before it stops,
it writes its process id to the folder as ``stopped.<id>``.

:class:`Forked` starts a process as a fork of a server that has imported the service, which takes a tenth of a second.
:func:`execute` starts a new interpreter, as an operator does, which takes seconds.
"""

import multiprocessing
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Protocol

import structlog

from app import cli, crashpoints
from app.crashpoints import Point
from workers import main as worker

ACTIONS = ("kill", "kill-group", "freeze", "stop")
FREEZE_SECONDS = 4.0
"""Longer than a lease in the tests."""
ROOT = Path(__file__).resolve().parents[2]
_SERVER = multiprocessing.get_context("forkserver")
_SERVER.set_forkserver_preload(["workers.celery_worker", "app.cli.serving", __name__])


class Process(Protocol):
    """What :class:`Forked` and ``subprocess.Popen`` have in common."""

    @property
    def pid(self) -> int: ...

    def poll(self) -> int | None: ...

    def send_signal(self, signal: int, /) -> None: ...

    def wait(self, timeout: float | None = None) -> int: ...


class Forked:
    """A running command of the service, in a new session.

    Args:
        command: the name of a console script, and its arguments.
        environment: all environment variables.
        log: file for the output; None: the output is dropped.
        orders: folder for requests to fail; None: the process never fails on request.
    """

    def __init__(
        self,
        command: Sequence[str],
        environment: Mapping[str, str],
        log: Path | None = None,
        orders: Path | None = None,
    ) -> None:
        arguments = (list(command), dict(environment), log, orders)
        self._process = _SERVER.Process(target=_run_forked, args=arguments, daemon=True)
        self._process.start()

    @property
    def pid(self) -> int:
        assert self._process.pid is not None
        return self._process.pid

    def poll(self) -> int | None:
        return self._process.exitcode

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)

    def wait(self, timeout: float | None = None) -> int:
        """Wait for the end; return the exit status.

        Raises:
            subprocess.TimeoutExpired: it still runs.
        """
        self._process.join(timeout)
        if self._process.exitcode is None:
            raise subprocess.TimeoutExpired("a forked process", timeout or 0)
        return self._process.exitcode


def execute(command: Sequence[str], environment: Mapping[str, str], log: Path, orders: Path) -> Process:
    """Start the command in a new interpreter and session; see :class:`Forked`."""
    with log.open("ab") as output:
        return subprocess.Popen(
            [sys.executable, "-m", __name__, str(orders), *command],
            env=dict(environment) | {"PYTHONPATH": str(ROOT)},
            stdout=output,
            stderr=output,
            start_new_session=True,
            cwd=ROOT,
        )


def make_reach(folder: Path) -> Callable[[Point], None]:
    """Make the replacement of :func:`app.crashpoints.reach`."""

    def reach(point: Point) -> None:
        for order in folder.glob(f"*.{point}.*"):
            try:
                order.unlink()
            except FileNotFoundError:
                continue  # another process was faster
            carry_out(order.suffix.removeprefix("."), folder)

    return reach


def carry_out(action: str, folder: Path) -> None:
    me = os.getpid()
    if action == "freeze":
        waking = f"sleep {FREEZE_SECONDS}; kill -CONT {me}"
        subprocess.Popen(["/bin/sh", "-c", waking], start_new_session=True)
        os.kill(me, signal.SIGSTOP)
    elif action == "stop":
        (folder / f"stopped.{me}").touch()
        os.kill(me, signal.SIGSTOP)
    elif action == "kill-group":
        os.killpg(os.getpgid(me), signal.SIGKILL)
    else:
        os.kill(me, signal.SIGKILL)


def _run_forked(command: list[str], environment: dict[str, str], log: Path | None, orders: Path | None) -> None:
    os.setsid()
    output = os.open(log or os.devnull, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    for stream in (1, 2):
        os.dup2(output, stream)
    os.environ.clear()
    os.environ.update(environment)
    _run(command, orders)


def _run(command: Sequence[str], orders: Path | None) -> None:
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(40))
    if orders is not None:
        setattr(crashpoints, "reach", make_reach(orders))  # noqa: B010  (mypy forbids assignment to a function)
    sys.argv = list(command)
    {"corevaultd": cli.main, "corevault-worker": worker.main}[command[0]]()


if __name__ == "__main__":
    _run(sys.argv[2:], Path(sys.argv[1]))
