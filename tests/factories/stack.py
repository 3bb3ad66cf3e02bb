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

from tests.factories import databases

DATABASE = "TEST_DATABASE_URL"
BROKER = "TEST_BROKER_URL"
STORAGE = "TEST_STORAGE_URL"
ABOUT_CONTENTS = tuple(
    f"tests/{name}"
    for name in (
        *("conformance", "datasets", "e2e", "enclave", "faults", "vault", "workers/"),
        *("ledger/test_ledger_high_water_mark", "releases/test_releases_http"),
    )
)
"""Where the contents of tests lie on the S3 server. Other tests have a folder, which is faster."""
_refused: str | None = None
_running = ""


@contextmanager
def reserved(test: str, *, depends: bool) -> Iterator[None]:
    """Refuse calls of this module during a test that is independent of the backend."""
    global _refused, _running  # noqa: PLW0603 - one test runs at a time
    _refused, _running = None if depends else test, test
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
def fresh_database() -> Iterator[str]:
    """Create an empty database on the PostgreSQL server and yield its URL; it is dropped at the end."""
    with databases.fresh_database(server(DATABASE)) as url:
        yield url


@contextmanager
def migrated_database() -> Iterator[str]:
    """Lend a migrated database on the PostgreSQL server, and yield its URL."""
    with _migrated_databases().use() as url:
        yield url


@cache
def _migrated_databases() -> databases.MigratedDatabases:
    return databases.MigratedDatabases(server(DATABASE))


def fresh_broker() -> str:
    """Return the URL of an unused database of the Redis server."""
    root = server(BROKER)
    with redis.Redis.from_url(root) as client:
        number = int(client.incr("corevault-tests"))
    return urlunsplit(urlsplit(root)._replace(path=f"/{number}"))


def fresh_storage(folder: Path) -> str:
    """Return an unused storage URL: a prefix on the S3 server, or a folder; see :data:`ABOUT_CONTENTS`."""
    if not (on_services() and _running.startswith(ABOUT_CONTENTS)):
        return (folder / "storage").as_uri()
    parts = urlsplit(server(STORAGE))
    return urlunsplit(parts._replace(path=f"/{secrets.token_hex(8)}"))


def _admit() -> None:
    assert _refused is None, f"{_refused} depends on the backend: let it use the fixture `backend`"
