"""The command line: ``corevaultd``."""

from app.cli.commands import main

__all__ = ["main"]
