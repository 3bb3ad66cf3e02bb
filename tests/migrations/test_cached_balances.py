"""Revision 0008: the upgrade keeps all accounts, even edited ones."""

from collections.abc import Iterator
from typing import Any

import pytest
import sqlalchemy as sa

from app.db import Database, make_engine
from app.db.migrations import downgrade, upgrade
from app.errors import StateConflict
from app.ledger import Ledger
from app.vault.signing import Signer
from tests.ledger.support import SEED, Bench, costing

ACCOUNTS = sa.table("ledger_accounts", sa.column("population"), sa.column("balance", sa.JSON()))


@pytest.fixture
def bench(empty_database_url: str) -> Iterator[Bench]:
    """Two accounts at revision 0007; one has a settled and a reserved job."""
    engine = make_engine(empty_database_url)
    upgrade(engine)
    bench = Bench(Database(engine), Ledger(Signer(SEED), max_epsilon=20.0))
    bench.open_account("ds_a")
    bench.open_account("ds_b", population="others")
    bench.run("job_1", costing(0.5))
    bench.reserve("job_2", costing(0.25))
    downgrade(engine, "0007")
    yield bench
    engine.dispose()


def test_an_open_reservation_survives_the_upgrade(bench: Bench) -> None:
    """It also survives a downgrade, because open reservations are recomputed from the entries."""
    engine = bench.database.engine
    upgrade(engine)
    assert (bench.verify(), bench.budget().jobs.reserved, bench.budget().jobs.settled) == ((), 1, 1)
    downgrade(engine, "0007")
    with engine.connect() as connection:
        balance: Any = connection.scalar(sa.select(ACCOUNTS.c.balance).where(ACCOUNTS.c.population == "people"))
    assert list(balance["live"]) == ["job_2"]
    upgrade(engine)
    bench.open("job_2")
    bench.settle("job_2")
    assert bench.verify() == ()


@pytest.mark.parametrize("edited", [{}, [], {"live": 3}])
def test_an_edited_account_does_not_stop_the_upgrade(bench: Bench, edited: Any) -> None:
    """W11: it is frozen at its next use."""
    with bench.database.write() as tx:
        tx.execute(sa.update(ACCOUNTS).where(ACCOUNTS.c.population == "others").values(balance=edited))
    upgrade(bench.database.engine)
    bench.reserve("job_3", costing(0.1))
    with pytest.raises(StateConflict, match="frozen"):
        bench.reserve("job_4", costing(0.1), "ds_b")
    assert len(bench.verify()) == 1
