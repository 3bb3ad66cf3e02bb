"""Reservations in a shared transaction behave as in separate ones (W9, W11)."""

from collections.abc import Callable
from unittest.mock import patch

import pytest
import sqlalchemy as sa

from app.db import GroupCommit, WriteSession, group_commit
from app.errors import BudgetExceeded, StateConflict
from app.ledger import Charge
from tests.factories.line import at_once
from tests.ledger.support import Bench, commitment, costing, gaussian


@pytest.fixture(autouse=True)
def unhurried() -> object:
    with patch.object(group_commit, "JOIN_SECONDS", 60.0):
        yield


@pytest.fixture
def joined(bench: Bench) -> GroupCommit:
    return GroupCommit(bench.database, bench.ledger.lock_all)


def reserving(bench: Bench, job_id: str, charge: Charge, dataset_id: str = "ds_a") -> Callable[[WriteSession], object]:
    return lambda tx: bench.ledger.reserve(tx, dataset_id, job_id, charge, commitment=commitment())


def test_shared_reservations_stay_within_the_limit(bench: Bench, joined: GroupCommit) -> None:
    """Eight jobs compete for the room of three or four."""
    told = at_once(joined, [reserving(bench, f"job_{number}", costing(1.0)) for number in range(8)], ["ds_a"] * 8)
    refused = [each.exception() for each in told if each.exception()]
    assert 0 < len(refused) < 8
    assert {type(error) for error in refused} == {BudgetExceeded}
    budget = bench.budget()
    assert (budget.jobs.reserved, bench.verify()) == (8 - len(refused), ())
    assert budget.reserved.epsilon <= budget.limit.epsilon
    alone = Bench(bench.database, bench.ledger)
    with pytest.raises(BudgetExceeded):
        alone.reserve("job_late", costing(1.0))


def test_an_account_that_fails_does_not_affect_others(bench: Bench, joined: GroupCommit) -> None:
    bench.open_account("ds_b", population="others")
    bench.reserve("job_warm", gaussian(200.0), "ds_b")
    with bench.database.write() as tx:
        tx.execute(sa.text("UPDATE ledger_accounts SET balance = '{}' WHERE population = 'others'"))
    told = at_once(
        joined,
        [reserving(bench, "job_1", gaussian(200.0)), reserving(bench, "job_2", gaussian(200.0), "ds_b")],
        ["ds_a", "ds_b"],
    )
    assert told[0].exception() is None
    assert isinstance(told[1].exception(), StateConflict)
    assert bench.budget().jobs.reserved == 1
    with bench.database.read() as session:
        frozen = sa.text("SELECT population FROM ledger_accounts WHERE frozen_at IS NOT NULL")
        assert session.scalars(frozen).all() == ["others"]


def test_datasets_of_one_population_share_their_account(bench: Bench, joined: GroupCommit) -> None:
    """The next call continues from the last one, also through another dataset."""
    bench.open_account("ds_b", epsilon=1.0)
    datasets = ["ds_a", "ds_b", "ds_a", "ds_b", "ds_b", "ds_a"]
    calls = [reserving(bench, f"job_{n}", gaussian(200.0), name) for n, name in enumerate(datasets)]
    assert all(each.exception() is None for each in at_once(joined, calls, datasets))
    assert (bench.budget().jobs.reserved, bench.budget().version, bench.verify()) == (6, 8, ())


def test_a_job_is_reserved_once(bench: Bench, joined: GroupCommit) -> None:
    told = at_once(joined, [reserving(bench, "job_1", gaussian(200.0)) for _ in range(3)], ["ds_a"] * 3)
    assert sorted(each.exception() is None for each in told) == [False, False, True]
    assert (bench.budget().jobs.reserved, bench.verify()) == (1, ())
