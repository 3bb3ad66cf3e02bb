"""The lock timeout of shared transactions ends with the transaction (W9, W10)."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest
import sqlalchemy as sa
from psycopg.pq import TransactionStatus
from sqlalchemy import Connection
from sqlalchemy.exc import DBAPIError

from app.db import Database, WriteSession, make_engine
from app.db.group_commit import limit_waiting

pytestmark = pytest.mark.services
NOTES = sa.table("notes", sa.column("name", sa.String))
LOCK = sa.select(NOTES.c.name).where(NOTES.c.name == "a").with_for_update()
SHORT_MS = 20
TIMES = 7
"""More often than it takes the driver to prepare a statement at the server."""


@pytest.fixture
def one(database_url: str) -> Iterator[Database]:
    """A database to which there is one connection."""
    database = Database(make_engine(database_url, 1))
    with database.write() as tx:
        tx.execute(sa.text("CREATE TABLE notes (name varchar PRIMARY KEY)"))
        tx.execute(sa.text("INSERT INTO notes VALUES ('a')"))
    yield database
    database.dispose()


@contextmanager
def connect(database: Database) -> Iterator[Connection]:
    """A transaction with the short lock timeout."""
    with database.connection() as connection:
        limit_waiting(connection, SHORT_MS)
        yield connection


def lock(database: Database) -> list[str]:
    with (
        connect(database) as connection,
        WriteSession(connection, join_transaction_mode="rollback_only") as tx,
    ):
        return list(tx.scalars(LOCK))


def wait_too_long(one: Database, database: Database) -> None:
    with database.write() as tx:
        tx.execute(LOCK)
        with pytest.raises(DBAPIError) as error:
            lock(one)
    assert getattr(error.value.orig, "sqlstate", None) == "55P03"


def send_wrong_statement(one: Database, _: Database) -> None:
    with pytest.raises(DBAPIError), connect(one) as connection:
        connection.exec_driver_sql("SET LOCAL nothing_of_the_kind = 1")


def interrupt(one: Database, _: Database) -> None:
    with pytest.raises(KeyboardInterrupt), connect(one):
        raise KeyboardInterrupt


@pytest.mark.parametrize("fault", [wait_too_long, send_wrong_statement, interrupt])
def test_a_fault_leaves_a_clean_connection(
    one: Database, database: Database, fault: Callable[[Database, Database], None]
) -> None:
    pids = set()
    for _ in range(TIMES):
        fault(one, database)
        with one.engine.connect() as connection:
            driver = connection.connection.driver_connection
            assert driver is not None
            assert driver.info.transaction_status == TransactionStatus.IDLE
            assert connection.exec_driver_sql("SHOW lock_timeout").scalar() == "15s"
            pids.add(driver.info.backend_pid)
        assert lock(one) == ["a"]
    assert len(pids) == 1
