"""Statements that go to the driver itself fail as those do that SQLAlchemy sends."""

from collections.abc import Iterator

import pytest
import sqlalchemy as sa
from sqlalchemy.exc import DBAPIError, IntegrityError

from app.db import Database, Prepared, WriteSession, make_engine
from app.db.migrations import upgrade
from app.ledger.models import LedgerDataset

COUNTS = LedgerDataset.metadata.tables["ledger_datasets"]
ADD = Prepared(sa.insert(COUNTS).values(dataset_id=sa.bindparam("name"), account_id=sa.bindparam("name"), refused=0))
FIND = Prepared(sa.select(COUNTS.c.account_id).where(COUNTS.c.dataset_id == sa.bindparam("name")))


@pytest.fixture
def database(database_url: str) -> Iterator[Database]:
    database = Database(make_engine(database_url, connections=2))
    upgrade(database.engine)
    yield database
    database.dispose()


def add(database: Database, *names: str) -> None:
    with database.write() as tx:
        for name in names:
            assert ADD.count(tx, {"name": name}) == 1


def found(database: Database, name: str) -> list[str]:
    with database.read() as session:
        return [row.account_id for row in FIND.rows(session, {"name": name})]


def test_it_is_part_of_the_session_s_transaction(database: Database) -> None:
    """Rolled back with it, and an error has SQLAlchemy's type."""
    with pytest.raises(IntegrityError):
        add(database, "ds_a", "ds_a")
    assert found(database, "ds_a") == []
    add(database, "ds_a")
    assert found(database, "ds_a") == ["ds_a"]


@pytest.mark.services
def test_a_connection_that_is_gone_leaves_the_pool(database: Database) -> None:
    """And is known to be gone, so that a transaction of which nothing was kept may be repeated."""
    tries: list[int] = []

    def lose_the_first(tx: WriteSession) -> int:
        tries.append(1)
        if len(tries) == 1:
            backend = tx.scalar(sa.text("SELECT pg_backend_pid()"))
            with database.write() as other:
                other.execute(sa.text("SELECT pg_terminate_backend(:backend)"), {"backend": backend})
            with pytest.raises(DBAPIError) as caught:
                ADD.count(tx, {"name": "ds_a"})
            assert caught.value.connection_invalidated
            raise caught.value
        return ADD.count(tx, {"name": "ds_a"})

    assert database.transact(lose_the_first) == 1
    assert len(tries) == 2
    assert found(database, "ds_a") == ["ds_a"]
