"""Limits of waiting on PostgreSQL, for migrations, transactions and locks."""

import os
import socket
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
import sqlalchemy as sa
from sqlalchemy.exc import OperationalError

from app.db import Database, make_engine
from app.db.engine import TIMEOUTS_MS
from app.db.migrations import LOCK_TIMEOUT_MS, downgrade, is_at_head, upgrade
from app.ledger import Ledger
from app.vault.signing import Signer
from tests.factories import stack
from tests.ledger.support import SEED, Bench, commitment, costing

pytestmark = pytest.mark.services
_WHEN_SILENT = (socket.TCP_KEEPIDLE, socket.TCP_KEEPINTVL, socket.TCP_KEEPCNT, socket.TCP_USER_TIMEOUT)


@pytest.fixture
def url() -> Iterator[str]:
    with stack.fresh_database() as url:
        yield url


def test_two_migrations_at_once_run_one_after_the_other(url: str) -> None:
    engines = [make_engine(url) for _ in range(4)]
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(upgrade, engines))
    assert all(map(is_at_head, engines))
    for engine in engines:
        engine.dispose()


def test_a_migration_of_a_table_in_use_times_out(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The database stays unchanged. Without the limit, other queries would wait behind the migration."""
    engine = make_engine(url)
    upgrade(engine)
    downgrade(engine, "0003")
    monkeypatch.setattr("app.db.migrations.LOCK_TIMEOUT_MS", 100)
    other = make_engine(url)
    with other.connect() as reader:
        reader.execute(sa.text("SELECT * FROM ledger_accounts"))
        with pytest.raises(OperationalError, match="lock timeout"):
            upgrade(engine)
    other.dispose()
    assert not is_at_head(engine)
    upgrade(engine)
    assert is_at_head(engine)
    assert LOCK_TIMEOUT_MS > 0
    engine.dispose()


def test_every_connection_has_its_limits(database_url: str) -> None:
    database = Database(make_engine(database_url))
    with database.read() as session:
        for name, milliseconds in TIMEOUTS_MS.items():
            setting = sa.text("SELECT setting::int FROM pg_settings WHERE name = :name")
            assert session.scalar(setting, {"name": name}) == milliseconds
        assert session.scalar(sa.text("SHOW transaction_isolation")) == "read committed"
    database.dispose()


def test_a_server_that_disappears_is_detected(database_url: str) -> None:
    """The test checks the socket options, because a detection needs a cut network."""
    database = Database(make_engine(database_url))
    with database.read() as session:
        driver: Any = session.connection().connection.driver_connection
        with socket.socket(fileno=os.dup(driver.fileno())) as connected:
            asked = [connected.getsockopt(socket.IPPROTO_TCP, option) for option in _WHEN_SILENT]
        assert connected.family in {socket.AF_INET, socket.AF_INET6}
    assert asked == [10, 5, 4, 30_000]
    database.dispose()


def test_an_account_is_locked_while_it_is_charged(database_url: str) -> None:
    """W9: until the transaction ends, no other one can lock the account's row."""
    database = Database(make_engine(database_url))
    bench = Bench(database, Ledger(Signer(SEED), max_epsilon=20.0))
    try:
        bench.open_account("ds_a")
        assert _is_free(database)
        with database.write() as tx:
            bench.ledger.lock(tx, "ds_a")
            assert not _is_free(database)
        with database.write() as tx:
            bench.ledger.reserve(tx, "ds_a", "job_1", costing(0.1), commitment=commitment())
            assert not _is_free(database)
        assert _is_free(database)
    finally:
        database.dispose()


def _is_free(database: Database) -> bool:
    try:
        with database.read() as session:
            session.execute(sa.text("SELECT id FROM ledger_accounts FOR UPDATE NOWAIT"))
    except sa.exc.OperationalError:
        return False
    return True


def test_an_idle_connection_that_died_is_replaced(database_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("app.db.engine.PING_AFTER_SECONDS", 0.0)
    database = Database(make_engine(database_url))
    with database.read() as session:
        mine = session.scalar(sa.text("SELECT pg_backend_pid()"))
    other = make_engine(database_url)
    with other.begin() as connection:
        connection.execute(sa.text("SELECT pg_terminate_backend(:mine)"), {"mine": mine})
    other.dispose()
    with database.read() as session:
        assert session.scalar(sa.text("SELECT pg_backend_pid()")) != mine
    database.dispose()
