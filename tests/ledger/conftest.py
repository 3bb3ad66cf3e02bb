"""Fixtures: a ledger, and a dataset with an account."""

import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from app.db import Database
from app.ledger import Ledger
from app.vault.signing import Signer
from tests.factories import stack
from tests.ledger.support import SEED, Bench, Restore, costing, guarded


@pytest.fixture
def ledger() -> Ledger:
    return Ledger(Signer(SEED), max_epsilon=20.0)


@pytest.fixture
def bench(database: Database, ledger: Ledger) -> Bench:
    """One owner with one dataset and an account of (2, 1e-6)."""
    bench = Bench(database, ledger)
    bench.open_account("ds_a")
    return bench


@pytest.fixture
def mark_url(backend: None, tmp_path: Path) -> str:
    """A folder, or a prefix on the S3 server."""
    storage = stack.fresh_storage(tmp_path / "elsewhere")
    return storage.replace("&scratch", "?scratch").split("?scratch")[0] if storage.startswith("s3") else storage


@pytest.fixture
def running(database_url: str, mark_url: str) -> Iterator[Bench]:
    """An installation with an account of (2, 1e-6), a twentieth of which is spent."""
    bench = guarded(database_url, mark_url)
    bench.open_account("ds_a")
    bench.open_account("ds_capped", epsilon=0.5)
    bench.run("job_1", costing(0.1))
    yield bench
    bench.database.dispose()


@pytest.fixture
def backup(running: Bench, take_backup: Callable[[], Restore]) -> Restore:
    """A backup of the installation at the start of the test; a call restores it."""
    return take_backup()


@pytest.fixture
def take_backup(running: Bench, database_url: str, tmp_path: Path) -> Callable[[], Restore]:
    """Make a backup as an operator would; a call of the result restores it."""
    return lambda: _backup(running, database_url, tmp_path)


def _backup(running: Bench, database_url: str, tmp_path: Path) -> Restore:
    running.database.dispose()
    if database_url.startswith("sqlite"):
        path = Path(urlsplit(database_url).path)
        shutil.copy(path, tmp_path / "backup.sqlite3")
        return lambda: copy_back(running, path, tmp_path / "backup.sqlite3")
    plain, dump = database_url.replace("+psycopg", ""), str(tmp_path / "backup.dump")
    subprocess.run(["pg_dump", "-Fc", "-f", dump, plain], check=True)
    return lambda: dump_back(running, plain, dump)


def copy_back(running: Bench, path: Path, saved: Path) -> None:
    running.database.dispose()
    for suffix in ("", "-wal", "-shm"):
        path.with_name(path.name + suffix).unlink(missing_ok=True)
    shutil.copy(saved, path)


def dump_back(running: Bench, url: str, dump: str) -> None:
    running.database.dispose()
    subprocess.run(["pg_restore", "--clean", "--if-exists", "-d", url, dump], check=True)
