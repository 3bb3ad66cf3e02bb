"""Running migrations from code, without an ini file."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from importlib.util import find_spec
from typing import Any

from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Engine, text

LOCK_TIMEOUT_MS = 5_000
_ADVISORY_LOCK = 0x636F7265  # any constant; servers that start together migrate one after the other


KeepKey = Callable[[str, bytes], None]
"""Stores a dataset's id and sealed key, and returns once they are durable."""


SealCaller = Callable[[Mapping[str, Any]], str]
"""Takes the columns of a caller's row and returns its seal (see :mod:`app.auth.seals`)."""


def upgrade(engine: Engine, keep_key: KeepKey | None = None, seal_caller: SealCaller | None = None) -> None:
    """Bring the database to the newest revision, in one transaction; a no-op when it is there already.

    Args:
        engine: the database's.
        keep_key: stores dataset keys that an older revision kept in the database; only needed if there are any.
        seal_caller: seals the API keys of an older revision; only needed if there are any.
    """
    with _migrating(engine) as config:
        config.attributes["keep_key"] = keep_key
        config.attributes["seal_caller"] = seal_caller
        command.upgrade(config, "head")


def downgrade(engine: Engine, revision: str) -> None:
    """Take the database back to ``revision``, in one transaction."""
    with _migrating(engine) as config:
        command.downgrade(config, revision)


@contextmanager
def _migrating(engine: Engine) -> Iterator[Config]:
    """Run one migration at a time.

    A second migrator waits for the first without limit. The wait for a table is short, because all later requests for
    the table wait behind the migration.
    """
    with engine.execution_options(corevault_writes=True).begin() as connection:
        if connection.dialect.name == "postgresql":
            connection.execute(text("SET LOCAL statement_timeout = 0"))
            connection.execute(text("SET LOCAL lock_timeout = 0"))
            connection.execute(text(f"SELECT pg_advisory_xact_lock({_ADVISORY_LOCK})"))
            connection.execute(text(f"SET LOCAL lock_timeout = {LOCK_TIMEOUT_MS}"))
        config = make_configuration()
        config.attributes["connection"] = connection
        yield config


def is_at_head(engine: Engine) -> bool:
    """Whether the database has the newest revision of this code."""
    with engine.connect() as connection:
        current = MigrationContext.configure(connection).get_current_heads()
    return set(current) == set(ScriptDirectory.from_config(make_configuration()).get_heads())


def make_configuration() -> Config:
    """Alembic's settings: the scripts are the package ``migrations``, also in an installed wheel."""
    package = find_spec("migrations")
    assert package is not None
    assert package.submodule_search_locations is not None
    config = Config()
    config.set_main_option("script_location", package.submodule_search_locations[0].replace("%", "%%"))
    config.set_main_option("path_separator", "os")
    return config
