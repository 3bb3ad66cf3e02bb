"""Allocations: a caller's part of a dataset's limit, charged with the account or not at all (W9)."""

import pytest

from app.errors import BudgetExceeded, InvalidRequest, StateConflict
from app.ledger import Charge, Preview
from tests.ledger.support import Bench, commitment, costing


def reserve(bench: Bench, job_id: str, charge: Charge, caller_id: str, dataset_id: str = "ds_a") -> Preview:
    bench.reserved[job_id] = (charge, dataset_id)
    return bench.write(
        lambda tx: bench.ledger.reserve(tx, dataset_id, job_id, charge, commitment=commitment(), caller_id=caller_id)
    )


def allocate(bench: Bench, dataset_id: str = "ds_a", **allocations: float) -> None:
    bench.write(lambda tx: bench.ledger.allocate(tx, dataset_id, allocations))


@pytest.fixture
def shared(bench: Bench) -> Bench:
    """(2, 1e-6), of which ``key_1`` may spend 0.5."""
    allocate(bench, key_1=0.5)
    return bench


def test_a_spent_allocation_stops_only_its_caller(shared: Bench) -> None:
    """W9: the allocation of a caller is charged."""
    reserve(shared, "job_1", costing(0.45), "key_1")
    before = shared.budget()
    with pytest.raises(BudgetExceeded) as refusal:
        reserve(shared, "job_2", costing(0.45), "key_1")
    assert refusal.value.members["limit"] == {"epsilon": 0.5, "delta": 1e-6}
    assert shared.budget() == before, "all caps or none"
    reserve(shared, "job_2", costing(0.45), "key_2")
    assert shared.verify() == ()


def test_a_quote_agrees_with_a_reservation(shared: Bench) -> None:
    reserve(shared, "job_1", costing(0.45), "key_1")
    with shared.database.read() as session:
        for caller_id, affordable in [("key_1", False), ("key_2", True)]:
            preview = shared.ledger.preview(session, "ds_a", costing(0.45), caller_id=caller_id)
            assert preview.affordable is affordable
            assert shared.ledger.admits(session, "ds_a", costing(0.45), caller_id=caller_id) is affordable


def test_the_account_also_limits_callers_with_an_allocation(shared: Bench) -> None:
    allocate(shared, key_1=5.0)
    shared.run("job_1", costing(1.9))
    with pytest.raises(BudgetExceeded):
        reserve(shared, "job_2", costing(1.0), "key_1")


def test_a_voided_charge_can_be_spent_again(shared: Bench) -> None:
    reserve(shared, "job_1", costing(0.45), "key_1")
    shared.void("job_1")
    reserve(shared, "job_2", costing(0.45), "key_1")
    shared.open("job_2")
    shared.settle("job_2", costing(0.45).events)
    (allocation,) = shared.budget().allocations or ()
    assert (allocation.key_id, allocation.limit.epsilon, allocation.reserved.epsilon) == ("key_1", 0.5, 0.0)
    assert 0.44 < allocation.spent.epsilon <= 0.5
    assert shared.verify() == ()


def test_each_reader_sees_its_own(shared: Bench) -> None:
    allocate(shared, key_1=0.5, key_2=0.3)
    budget = shared.budget()
    seen = {reader: budget.restrict_to(reader).allocations or () for reader in (None, "key_1", "key_3")}
    assert {reader: [each.key_id for each in own] for reader, own in seen.items()} == {
        None: ["key_1", "key_2"],
        "key_1": ["key_1"],
        "key_3": [],
    }


def test_an_allocation_in_use_is_changed_but_not_forgotten(shared: Bench) -> None:
    reserve(shared, "job_1", costing(0.4), "key_1")
    with pytest.raises(StateConflict):
        allocate(shared)
    with pytest.raises(StateConflict):
        allocate(shared, key_1=0.1)
    allocate(shared, key_1=1.0, key_2=0.1)
    reserve(shared, "job_2", costing(0.4), "key_1")
    allocate(shared, key_1=1.0)
    reserve(shared, "job_3", costing(0.4), "key_2")
    shared.void("job_1")
    shared.void("job_2")
    allocate(shared)
    assert shared.budget().allocations is None
    assert shared.verify() == ()


def test_allocations_that_stay_are_no_change(shared: Bench) -> None:
    before = shared.budget().version
    allocate(shared, key_1=0.5)
    assert shared.budget().version == before


@pytest.mark.parametrize("epsilon", [0.0, -1.0, 1e-9, 20.1, float("inf"), float("nan")])
def test_an_invalid_epsilon_is_refused(shared: Bench, epsilon: float) -> None:
    with pytest.raises(InvalidRequest) as refusal:
        allocate(shared, key_0=0.5, key_1=epsilon)
    assert [fault.pointer for fault in refusal.value.faults] == ["/allocations/1/epsilon"]


def test_an_allocation_belongs_to_its_dataset(shared: Bench) -> None:
    """It is charged in addition to the dataset's cap."""
    shared.open_account("ds_b", epsilon=0.8)
    allocate(shared, "ds_b", key_1=0.6)
    reserve(shared, "job_1", costing(0.55), "key_1", "ds_b")
    with pytest.raises(BudgetExceeded):
        reserve(shared, "job_2", costing(0.3), "key_1", "ds_b")
    with pytest.raises(BudgetExceeded):
        reserve(shared, "job_2", costing(0.75), "key_2", "ds_b")
    reserve(shared, "job_2", costing(0.45), "key_1", "ds_a")
    assert shared.verify() == ()
