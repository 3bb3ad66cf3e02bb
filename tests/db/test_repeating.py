"""A transaction is repeated only if it was certainly rolled back (W10)."""

import threading

import pytest
import sqlalchemy as sa
from sqlalchemy.exc import IntegrityError

from app.db import Database, WriteSession, make_engine
from app.errors import DependencyUnavailable
from app.ledger import Ledger
from app.vault.signing import Signer
from tests.ledger.support import SEED, Bench, commitment, costing


@pytest.fixture
def other(database_url: str) -> sa.Engine:
    return sa.create_engine(database_url, poolclass=sa.NullPool, isolation_level="AUTOCOMMIT")


def cut(tx: WriteSession, other: sa.Engine) -> None:
    """Close the connection of ``tx``."""
    mine = tx.scalar(sa.text("SELECT pg_backend_pid()"))
    with other.connect() as connection:
        connection.execute(sa.text("SELECT pg_terminate_backend(:mine, 5000)"), {"mine": mine})


@pytest.mark.services
def test_a_transaction_lost_before_its_commit_is_repeated(database: Database, other: sa.Engine) -> None:
    bench, turns = Bench(database, Ledger(Signer(SEED), max_epsilon=20.0)), []
    bench.open_account("ds_a")

    def reserve(tx: WriteSession) -> None:
        turns.append(1)
        bench.ledger.reserve(tx, "ds_a", "job_1", costing(0.5), commitment=commitment())
        if len(turns) == 1:
            cut(tx, other)

    with pytest.raises(DependencyUnavailable):
        database.transact(reserve)  # the commit itself finds it gone: that is not known to have failed
    assert turns == [1]
    turns.clear()

    def reserve_again(tx: WriteSession) -> None:
        turns.append(1)
        if len(turns) == 1:
            cut(tx, other)
        bench.ledger.reserve(tx, "ds_a", "job_2", costing(0.5), commitment=commitment())

    database.transact(reserve_again)
    assert turns == [1, 1]
    assert (bench.budget().jobs.reserved, bench.verify()) == (1, ())


@pytest.mark.services
def test_the_loser_of_a_deadlock_is_repeated(database: Database) -> None:
    with database.write() as tx:
        tx.execute(sa.text("CREATE TABLE pairs (id integer PRIMARY KEY, hits integer NOT NULL)"))
        tx.execute(sa.text("INSERT INTO pairs VALUES (1, 0), (2, 0)"))
    barrier, turns = threading.Barrier(2), []

    def cross(first: int, second: int) -> None:
        def hit(tx: WriteSession) -> None:
            turns.append(first)
            tx.execute(sa.text("UPDATE pairs SET hits = hits + 1 WHERE id = :id"), {"id": first})
            if turns.count(first) == 1:
                barrier.wait(30)
            tx.execute(sa.text("UPDATE pairs SET hits = hits + 1 WHERE id = :id"), {"id": second})

        database.transact(hit)

    threads = [threading.Thread(target=cross, args=pair) for pair in ((1, 2), (2, 1))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    with database.read() as session:
        hits = session.execute(sa.text("SELECT hits FROM pairs ORDER BY id")).scalars().all()
    assert hits == [2, 2], "each is counted once, however often it was tried"
    assert len(turns) > 2


def test_a_refusal_of_the_database_is_not_repeated(database: Database) -> None:
    bench, turns = Bench(database, Ledger(Signer(SEED), max_epsilon=20.0)), []
    bench.open_account("ds_a")

    def overspend(tx: WriteSession) -> None:
        turns.append(1)
        tx.execute(sa.text("UPDATE ledger_accounts SET epsilon_used = 3.0"))

    with pytest.raises(IntegrityError):
        database.transact(overspend)
    assert turns == [1]


def test_a_guard_that_refuses_blocks_writes(database_url: str) -> None:
    def refuse(_: Database) -> None:
        raise DependencyUnavailable

    guarded = Database(make_engine(database_url), refuse)
    with pytest.raises(DependencyUnavailable):
        guarded.transact(lambda tx: tx.execute(sa.text("DELETE FROM api_keys")))
    with guarded.read() as session:
        assert session.execute(sa.text("SELECT count(*) FROM api_keys")).scalar() == 0
    guarded.dispose()
