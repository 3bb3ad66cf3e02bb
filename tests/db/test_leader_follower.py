"""A statement that leads others: whatever fails on the way, the connection is as good as new afterwards (W9, W10)."""

from collections.abc import Callable, Iterator

import pytest
import sqlalchemy as sa
from psycopg.pq import PipelineStatus, TransactionStatus
from sqlalchemy.exc import DBAPIError

from app.db import Database, WriteSession, make_engine
from app.db.prepared import Prepared, prepend

pytestmark = pytest.mark.services
NOTES = sa.table("notes", sa.column("name", sa.String))
LOCK = Prepared(sa.select(NOTES.c.name).where(NOTES.c.name == sa.bindparam("name")).with_for_update())
IMPATIENT, WRONG = "SET LOCAL lock_timeout = 20", "SET LOCAL nothing_of_the_kind = 1"
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


def lock(database: Database, leading: str = IMPATIENT) -> list[str]:
    with (
        database.connection() as connection,
        prepend(connection, leading),
        WriteSession(connection, join_transaction_mode="rollback_only") as tx,
    ):
        return [row.name for row in LOCK.rows(tx, {"name": "a"})]


def too_late(one: Database, database: Database) -> None:
    with database.write() as tx:
        LOCK.rows(tx, {"name": "a"})
        with pytest.raises(DBAPIError) as refused:
            lock(one)
    assert getattr(refused.value.orig, "sqlstate", None) == "55P03"


def led_wrongly(one: Database, _: Database) -> None:
    """The statement behind it is not even looked at."""
    with pytest.raises(DBAPIError):
        lock(one, WRONG)


def interrupted(one: Database, _: Database) -> None:
    with pytest.raises(KeyboardInterrupt), one.connection() as connection, prepend(connection, IMPATIENT):
        raise KeyboardInterrupt


@pytest.mark.parametrize("fault", [too_late, led_wrongly, interrupted])
def test_a_fault_on_the_way_leaves_nothing_on_the_connection(
    one: Database, database: Database, fault: Callable[[Database, Database], None]
) -> None:
    pids = set()
    for _ in range(TIMES):
        fault(one, database)
        with one.engine.connect() as connection:
            driver = connection.connection.driver_connection
            assert driver is not None
            assert driver.pgconn.pipeline_status == PipelineStatus.OFF
            assert driver.info.transaction_status == TransactionStatus.IDLE
            assert connection.exec_driver_sql("SHOW lock_timeout").scalar() == "15s"
            pids.add(driver.info.backend_pid)
        assert lock(one) == ["a"]
    assert len(pids) == 1
