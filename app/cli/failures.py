"""Failures that an operator can fix: one line on standard error, and an exit code."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NoReturn

import typer

from app.errors import CorevaultError

if TYPE_CHECKING:
    from app.config import Settings

FAILED, MISUSED = 1, 2


def fail(message: str, code: int = FAILED) -> NoReturn:
    warn(message)
    raise typer.Exit(code)


def warn(message: str) -> None:
    typer.echo(f"corevaultd: {message}", err=True)


@contextmanager
def explain_failures() -> Iterator[None]:
    """Report errors of settings, permissions and the database in one line."""
    from sqlalchemy.exc import SQLAlchemyError

    try:
        yield
    except CorevaultError as error:
        fail(error.detail)
    except SQLAlchemyError as error:
        fail(f"the database cannot be used ({type(error).__name__}); check it and COREVAULT_DATABASE_URL")
    except OSError as error:
        fail(f"{error.strerror}: {error.filename}" if error.filename else str(error))


def load_settings(**overrides: Any) -> "Settings":
    """Load the settings from the environment; options of the command line override them.

    Unknown ``COREVAULT_`` variables are warned of by name.
    """
    from pydantic import ValidationError

    from app.config import SECRETS, Settings
    from app.setting_faults import describe_faults

    fields = (*Settings.model_fields, *(f"{secret}_file" for secret in SECRETS), "host", "port")
    known = {f"COREVAULT_{name.upper()}" for name in fields}
    ours = {name for name in os.environ if name.upper().startswith("COREVAULT_")}
    if unknown := sorted(name for name in ours if name.upper() not in known):
        warn(f"ignoring {', '.join(unknown)}: no such setting")
    try:
        settings = Settings(**{name: value for name, value in overrides.items() if value is not None})
    except ValidationError as error:
        fail(f"these settings are not valid: {describe_faults(error)}", MISUSED)
    with explain_failures():
        if settings.data_dir.is_file():
            fail(f"{settings.data_dir} is a file; set --data-dir to a folder", MISUSED)
    return settings
