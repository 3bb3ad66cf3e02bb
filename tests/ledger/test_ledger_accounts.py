"""Opening accounts: one a population, caps for later datasets, fingerprints."""

import math
from typing import Any

import pytest

from app.db import Database
from app.errors import BudgetExceeded, InvalidRequest, NotFound, StateConflict
from app.ledger import Ledger
from tests.ledger.support import DELTA, Bench, costing


def test_a_fresh_account_has_all_its_budget(bench: Bench) -> None:
    budget = bench.budget()
    assert (budget.limit.epsilon, budget.limit.delta, budget.version) == (2.0, DELTA, 1)
    assert (budget.spent.epsilon, budget.reserved.epsilon, budget.used_share) == (0.0, 0.0, 0.0)
    assert (budget.accountant, budget.relation, budget.unit, budget.slots) == ("rdp", "zero_out", "row", 1_000)
    assert 1.9 < budget.remaining.epsilon <= 2.0


@pytest.mark.parametrize("epsilon", [0.0, -1.0, math.nan, math.inf, 20.1, 1e-9])
def test_an_invalid_epsilon_is_refused(bench: Bench, epsilon: float) -> None:
    with pytest.raises(InvalidRequest) as refusal:
        bench.open_account("ds_x", population="others", epsilon=epsilon)
    assert [fault.pointer for fault in refusal.value.faults] == ["/budget/epsilon"]


@pytest.mark.parametrize(
    ("delta", "least"), [(1e-4, 0.001), (1e-9, 0.0014), (1e-200, 0.0551)], ids=["large", "usual", "least"]
)
@pytest.mark.parametrize("epsilon", [5e-324, 0.0009])
def test_a_too_small_limit_is_refused_with_the_least_one(
    bench: Bench, epsilon: float, delta: float, least: float
) -> None:
    with pytest.raises(InvalidRequest) as refusal:
        bench.open_account("ds_x", population="others", epsilon=epsilon, delta=delta)
    assert refusal.value.detail == f"Use a number of at least {least}; a lower limit admits no useful job."
    bench.open_account("ds_x", population="others", epsilon=least, delta=delta)


@pytest.mark.parametrize("delta", [0.0, 9e-201, -1e-6, math.nan, 1.0, 1.01e-4])
def test_a_delta_out_of_range_is_refused(bench: Bench, delta: float) -> None:
    """W9: delta is at most a tenth of a slot."""
    with pytest.raises(InvalidRequest) as refusal:
        bench.open_account("ds_x", population="others", delta=delta)
    assert [fault.pointer for fault in refusal.value.faults] == ["/budget/delta"]
    bench.open_account("ds_x", population="others", delta=1 / (10 * 1_000))


@pytest.mark.parametrize(
    "fields", [{"delta": 2e-6}, {"unit": {"kind": "column", "column": "person", "max_rows": 3}}], ids=["delta", "unit"]
)
def test_another_delta_or_unit_for_the_same_people_is_a_conflict(bench: Bench, fields: dict[str, Any]) -> None:
    with pytest.raises(StateConflict):
        bench.open_account("ds_b", **fields)
    with pytest.raises(NotFound):
        bench.budget("ds_b")


def test_datasets_over_the_same_people_spend_one_account(bench: Bench) -> None:
    bench.open_account("ds_b", epsilon=1.0, slots=2_000)
    bench.open_account("ds_c", population="others")
    bench.run("job_1", costing(0.9), "ds_b")
    assert bench.budget("ds_a").spent == bench.budget("ds_b").spent
    assert bench.budget("ds_b").limit.epsilon == 1.0
    assert bench.budget("ds_b").slots == 2_000
    assert bench.budget("ds_c").spent.epsilon == 0


def test_a_cap_binds_its_own_dataset_only(bench: Bench) -> None:
    """W9: the cap of a dataset is charged."""
    bench.open_account("ds_b", epsilon=0.5)
    bench.run("job_1", costing(0.45), "ds_b")
    with pytest.raises(BudgetExceeded) as refusal:
        bench.reserve("job_2", costing(0.45), "ds_b")
    assert refusal.value.members["limit"] == {"epsilon": 0.5, "delta": DELTA}
    bench.reserve("job_3", costing(0.45), "ds_a")


def test_another_owner_with_the_same_name_has_another_account(bench: Bench) -> None:
    bench.open_account("ds_x", owner_id="key_other", delta=5e-6)
    bench.run("job_1", costing(0.5), "ds_x")
    assert bench.budget("ds_a").spent.epsilon == 0


def test_every_dataset_of_an_account_must_have_slots_for_its_delta(bench: Bench) -> None:
    with pytest.raises(InvalidRequest):
        bench.open_account("ds_b", slots=200_000)


def test_identical_bytes_belong_to_one_population_of_an_owner(bench: Bench, ledger: Ledger, database: Database) -> None:
    bench.open_account("ds_b")
    bench.open_account("ds_c", population="others")
    bench.open_account("ds_d", owner_id="key_other")
    claims = [("ds_a", True), ("ds_a", True), ("ds_b", True), ("ds_c", False), ("ds_d", True)]
    for dataset_id, ours in claims:
        with database.write() as tx:
            assert ledger.claim_fingerprint(tx, dataset_id, "f" * 64) is ours


def test_a_dataset_without_an_account_is_not_found(bench: Bench, ledger: Ledger, database: Database) -> None:
    with pytest.raises(NotFound):
        bench.budget("ds_nowhere")
    with pytest.raises(NotFound):
        bench.reserve("job_1", costing(0.1), "ds_nowhere")
    with pytest.raises(NotFound), database.write() as tx:
        ledger.record_refusal(tx, "ds_nowhere")
