"""The demo's checks fail if budget, ledger, jobs and releases disagree."""

from dataclasses import replace
from datetime import UTC, datetime

import pytest
from corevault import Budget, Cost, Job, LedgerEntry, Release
from corevault.replies.dataset import JobCounts
from corevault.replies.release import ReleasedModel

from demo import balance
from demo.failure import DemoFailed

NOW = datetime(2026, 11, 20, tzinfo=UTC)
MODEL = ReleasedModel(family="logistic-regression")


def _cost(epsilon: float) -> Cost:
    return Cost(epsilon=epsilon, delta=1e-6)


BUDGET = Budget(
    dataset_id="ds_1",
    population="p",
    accountant="rdp",
    relation="zero_out",
    unit="row",
    slots=10,
    limit=_cost(2.0),
    spent=_cost(1.4),
    reserved=_cost(0.0),
    remaining=_cost(0.5),
    used_share=0.7,
    jobs=JobCounts(settled=1, reserved=0, refused=1),
    version=4,
)
JOBS = [Job(id="job_1", dataset_id="ds_1", status="succeeded", release_id="rel_1")]
RELEASES = [Release(id="rel_1", dataset_id="ds_1", method="dp-psvi", size=4, model=MODEL, design=())]
ENTRIES = [
    LedgerEntry(
        sequence=i,
        at=NOW,
        kind=kind,
        job_id=None if i == 0 else "job_1",
        epsilon_after=0.0 if i == 0 else 1.4,
        entry_hash=f"h{i}",
        previous_hash=f"h{i - 1}",
    )
    for i, kind in enumerate(("account_opened", "reserved", "opened", "settled"))
]


def test_a_consistent_account_passes() -> None:
    balance.check(BUDGET, ENTRIES, JOBS, RELEASES)


@pytest.mark.parametrize(
    ("budget", "sentence"),
    [
        (replace(BUDGET, spent=_cost(1.3)), "last total"),
        (replace(BUDGET, limit=_cost(1.0)), "exceeds the limit"),
        (replace(BUDGET, jobs=replace(BUDGET.jobs, settled=2)), "differ in number"),
        (replace(BUDGET, jobs=replace(BUDGET.jobs, reserved=1)), "still open"),
        (replace(BUDGET, jobs=replace(BUDGET.jobs, refused=0)), "not counted exactly once"),
    ],
)
def test_a_budget_that_disagrees_is_refused(budget: Budget, sentence: str) -> None:
    with pytest.raises(DemoFailed, match=sentence):
        balance.check(budget, ENTRIES, JOBS, RELEASES)


@pytest.mark.parametrize("change", [{"previous_hash": "other"}, {"sequence": 7}, {"kind": "opened"}, {"job_id": None}])
def test_a_ledger_that_disagrees_is_refused(change: dict[str, str | int | None]) -> None:
    entries = [LedgerEntry(**(vars(entry) | (change if entry.sequence == 3 else {}))) for entry in ENTRIES]
    with pytest.raises(DemoFailed):
        balance.check(BUDGET, entries, JOBS, RELEASES)


def test_a_release_without_a_job_is_refused() -> None:
    with pytest.raises(DemoFailed, match="belongs to no job"):
        balance.check(BUDGET, ENTRIES, JOBS, [replace(RELEASES[0], id="rel_2")])
