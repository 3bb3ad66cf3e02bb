"""``corevault-worker``: processes uploads and jobs, or carries out one command."""

import atexit
import sys

from app.collector import ignore_present_objects
from workers.command_line import parse_worker_command


def main() -> None:
    """Work until asked to stop, or carry out the command ``rewrap`` (see :mod:`workers.rewrap`).

    Settings come from the environment (``COREVAULT_…``).
    """
    atexit.register(ignore_present_objects)
    command = parse_worker_command(sys.argv[1:])
    from workers.commands import run  # noqa: PLC0415  (takes seconds; usage and version are printed before)

    run(command)
