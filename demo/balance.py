"""The final check: budget, ledger, jobs and releases must agree."""

import itertools
from collections import Counter
from collections.abc import Sequence
from math import isclose

from corevault import Budget, Job, LedgerEntry, Release

from demo.failure import demand


def check(budget: Budget, entries: Sequence[LedgerEntry], jobs: Sequence[Job], releases: Sequence[Release]) -> None:
    """Raises ``DemoFailed`` with the first disagreement. ``entries`` are in order, oldest first."""
    _check_counts(budget, jobs, releases)
    _check_chain(entries)
    _check_jobs(entries, jobs)
    total = budget.spent.epsilon + budget.reserved.epsilon
    last = next((entry.epsilon_after for entry in reversed(entries) if entry.epsilon_after is not None), None)
    demand(
        last is not None and isclose(last, total, abs_tol=1e-9),
        "The ledger's last total differs from the budget's total.",
    )
    demand(total <= budget.limit.epsilon, "The spent cost exceeds the limit.")


def _check_counts(budget: Budget, jobs: Sequence[Job], releases: Sequence[Release]) -> None:
    counts = budget.jobs
    demand(counts.settled == len(jobs) == len(releases), "Settled jobs and releases differ in number.")
    demand({job.release_id for job in jobs} == {release.id for release in releases}, "A release belongs to no job.")
    demand(counts.reserved == 0 and budget.reserved.epsilon == 0, "A reservation is still open.")
    demand(counts.refused == 1, "The refusal was not counted exactly once.")


def _check_chain(entries: Sequence[LedgerEntry]) -> None:
    for earlier, later in itertools.pairwise(entries):
        linked = later.previous_hash == earlier.entry_hash and later.sequence == earlier.sequence + 1
        demand(linked, f"The ledger's chain is broken at entry {later.sequence}.")


def _check_jobs(entries: Sequence[LedgerEntry], jobs: Sequence[Job]) -> None:
    booked = Counter((entry.job_id, entry.kind) for entry in entries if entry.job_id is not None)
    expected = Counter((job.id, kind) for job in jobs for kind in ("reserved", "opened", "settled"))
    demand(booked == expected, "Not every job was reserved, opened and settled exactly once.")
