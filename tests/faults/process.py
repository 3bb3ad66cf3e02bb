"""API or worker as a process that dies where it is told to: ``python -m tests.faults.process FOLDER NAME COMMAND…``.

An order is a file in FOLDER, ``<number>.<point>.<deed>``. Whichever process reaches the point first takes it: it kills
itself, its whole group, freezes for a while and goes on as if nothing had happened, or stops until somebody wakes it:
it has left its process id in FOLDER then, as ``stopped.<id>``.
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

DEEDS = ("kill", "kill-group", "freeze", "stop")
FREEZE_SECONDS = 4.0
"""Longer than a lease of the tests."""


def orders(folder: Path) -> Callable[[Point], None]:
    """What takes the place of :func:`app.crashpoints.reach`."""

    def reach(point: Point) -> None:
        for order in folder.glob(f"*.{point}.*"):
            try:
                order.unlink()
            except FileNotFoundError:
                continue  # somebody else was faster
            carry_out(order.suffix.removeprefix("."), folder)

    return reach


def carry_out(deed: str, folder: Path) -> None:
    me = os.getpid()
    if deed == "freeze":
        waking = f"sleep {FREEZE_SECONDS}; kill -CONT {me}"
        subprocess.Popen(["/bin/sh", "-c", waking], start_new_session=True)
        os.kill(me, signal.SIGSTOP)
    elif deed == "stop":
        (folder / f"stopped.{me}").touch()
        os.kill(me, signal.SIGSTOP)
    elif deed == "kill-group":
        os.killpg(os.getpgid(me), signal.SIGKILL)
    else:
        os.kill(me, signal.SIGKILL)


def main() -> None:
    folder, name, *arguments = sys.argv[1:]
    setattr(crashpoints, "reach", orders(Path(folder)))  # noqa: B010  (a function is no variable to mypy)
    sys.argv = [name, *arguments]
    {"corevaultd": cli.main, "corevault-worker": worker.main}[name]()


if __name__ == "__main__":
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(40))
    main()
