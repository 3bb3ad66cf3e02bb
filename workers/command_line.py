"""The command lines of ``corevault-worker`` and ``corevault-ingest``. Unknown options are refused."""

import argparse
from collections.abc import Sequence
from importlib.metadata import version

SETTINGS = (
    "Settings come from environment variables with the prefix COREVAULT_. `corevaultd up` starts the whole service."
)


def make_parser(name: str, description: str) -> argparse.ArgumentParser:
    """Make the parser of the command ``name``; it ends the process with status 2 for unknown arguments."""
    parser = argparse.ArgumentParser(prog=name, description=description, epilog=SETTINGS, allow_abbrev=False)
    parser.add_argument("--version", action="version", version=f"{name} {version('corevault-server')}")
    return parser


def parse_worker_command(arguments: Sequence[str]) -> str | None:
    """Parse the arguments of ``corevault-worker``.

    Return the command ``rewrap``, or None if the worker is to process uploads and jobs.
    """
    parser = make_parser("corevault-worker", "Process uploads and jobs until SIGTERM or SIGINT.")
    parser.add_argument(
        "command",
        nargs="?",
        choices=["rewrap"],
        help="seal the keys of all datasets again, to the current opening key, and exit",
    )
    command: str | None = parser.parse_args(arguments).command
    return command


def check_ingest_arguments(arguments: Sequence[str]) -> None:
    """Exit with status 2 if ``corevault-ingest`` has arguments, because it accepts none."""
    description = "Parse one upload in a confined process. Workers start it; do not run it yourself."
    make_parser("corevault-ingest", description).parse_args(arguments)
