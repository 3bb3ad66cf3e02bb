"""The command lines of ``corevault-worker`` and ``corevault-ingest``: help, version, and unknown options refused."""

import argparse
from collections.abc import Sequence
from importlib.metadata import version

SETTINGS = (
    "Settings come from environment variables with the prefix COREVAULT_. `corevaultd up` starts the whole service."
)


def parser(name: str, description: str) -> argparse.ArgumentParser:
    """A parser of the command ``name``; it ends the process with status 2 for what it does not know."""
    made = argparse.ArgumentParser(prog=name, description=description, epilog=SETTINGS, allow_abbrev=False)
    made.add_argument("--version", action="version", version=f"{name} {version('corevault-server')}")
    return made


def command_of(arguments: Sequence[str]) -> str | None:
    """What ``corevault-worker`` is to do: ``rewrap``, or work (None)."""
    made = parser("corevault-worker", "Process uploads and jobs until SIGTERM or SIGINT.")
    made.add_argument(
        "command",
        nargs="?",
        choices=["rewrap"],
        help="seal the keys of all datasets again, to the current opening key, and exit",
    )
    command: str | None = made.parse_args(arguments).command
    return command


def check_ingest(arguments: Sequence[str]) -> None:
    """``corevault-ingest`` takes no arguments."""
    description = "Parse one upload in a confined process. Workers start it; do not run it yourself."
    parser("corevault-ingest", description).parse_args(arguments)
