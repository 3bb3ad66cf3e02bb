"""The command line of ``corevaultd``."""

from app.cli.commands import main

__all__ = ["main"]
