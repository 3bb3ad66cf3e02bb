"""Runs the API or a worker as a process that fails on request.

Call ``python -m tests.faults.process FOLDER NAME COMMAND…``. A request is a file in FOLDER,
``<number>.<point>.<action>``. The first process that reaches the point carries out the action: it kills itself or its
whole group, freezes for a while and continues, or stops until a signal. Before it stops, it writes its process id to
FOLDER as ``stopped.<id>``.
"""

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import structlog

from app import cli, crashpoints
from app.crashpoints import Point
from workers import main as worker

ACTIONS = ("kill", "kill-group", "freeze", "stop")
FREEZE_SECONDS = 4.0
"""Longer than a lease in the tests."""


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


def main() -> None:
    folder, name, *arguments = sys.argv[1:]
    setattr(crashpoints, "reach", make_reach(Path(folder)))  # noqa: B010  (mypy forbids assignment to a function)
    sys.argv = [name, *arguments]
    {"corevaultd": cli.main, "corevault-worker": worker.main}[name]()


if __name__ == "__main__":
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(40))
    main()
