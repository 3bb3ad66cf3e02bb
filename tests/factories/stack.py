"""Database, broker and storage of a test: local files, or the servers that :mod:`tests.services` has started.

A test that depends on them uses the fixture ``backend``, directly or through other fixtures, or is marked ``services``.
``make test-services`` runs only these tests. Calls from other tests are refused, see :func:`reserved`.
"""

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

import redis
import sqlalchemy as sa

from app.db import make_engine
from app.db.migrations import upgrade

DATABASE = "TEST_DATABASE_URL"
BROKER = "TEST_BROKER_URL"
STORAGE = "TEST_STORAGE_URL"
_refused: str | None = None


@contextmanager
def reserved(test: str, *, depends: bool) -> Iterator[None]:
    """Refuse calls of this module during a test that is independent of the backend."""
    global _refused  # noqa: PLW0603 - one test runs at a time
    _refused = None if depends else test
    try:
        yield
    finally:
        _refused = None


def on_services() -> bool:
    """Whether this run uses real servers."""
    _admit()
    return DATABASE in os.environ


def server(name: str) -> str:
    """Return the address of a server, for a test that needs it."""
    _admit()
    assert name in os.environ, f"{name} is not set: run this test by `make test-services`"
    return os.environ[name]


@contextmanager
def fresh_database(*, template: str | None = None) -> Iterator[str]:
    """Create a database on the PostgreSQL server and yield its URL; it is dropped at the end.

    It is empty, or a copy of ``template``.
    """
    name = f"corevault_{secrets.token_hex(8)}"
    _maintain(f"CREATE DATABASE {name}" + (f" TEMPLATE {template}" if template else ""))
    try:
        yield urlunsplit(urlsplit(server(DATABASE))._replace(path=f"/{name}"))
    finally:
        _maintain(f"DROP DATABASE {name} WITH (FORCE)")


@cache
def migrated_template() -> str:
    """Create a migrated database, one for each process, and return its name.

    It exists until the server ends.
    """
    name = f"template_{secrets.token_hex(8)}"
    _maintain(f"CREATE DATABASE {name}")
    engine = make_engine(urlunsplit(urlsplit(server(DATABASE))._replace(path=f"/{name}")))
    upgrade(engine)
    engine.dispose()
    return name


def fresh_broker() -> str:
    """Return the URL of an unused database of the Redis server."""
    root = server(BROKER)
    with redis.Redis.from_url(root) as client:
        number = int(client.incr("corevault-tests"))
    return urlunsplit(urlsplit(root)._replace(path=f"/{number}"))


def fresh_storage(folder: Path) -> str:
    """Return an unused storage URL: a prefix on the S3 server, or a folder."""
    if not on_services():
        return (folder / "storage").as_uri()
    parts = urlsplit(server(STORAGE))
    return urlunsplit(parts._replace(path=f"/{secrets.token_hex(8)}"))


def _admit() -> None:
    assert _refused is None, f"{_refused} depends on the backend: let it use the fixture `backend`"


def _maintain(statement: str) -> None:
    engine = sa.create_engine(server(DATABASE), isolation_level="AUTOCOMMIT", poolclass=sa.NullPool)
    with engine.connect() as connection:
        connection.execute(sa.text(statement))
    engine.dispose()
