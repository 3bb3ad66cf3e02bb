"""What a call costs does not grow with the history behind it: counted in rows, not in time."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
import sqlalchemy as sa

from app.ledger.models import Entry
from app.ledger.snapshot import REPLAYED_AT_MOST
from tests.ledger.support import Bench, gaussian


@contextmanager
def counted(bench: Bench) -> Iterator[dict[str, int]]:
    """Statements sent and entries read meanwhile."""
    seen = {"statements": 0, "entries": 0}

    def sent(*_: object) -> None:
        seen["statements"] += 1

    def loaded(*_: object) -> None:
        seen["entries"] += 1

    sa.event.listen(bench.database.engine, "before_cursor_execute", sent)
    sa.event.listen(Entry, "load", loaded)
    try:
        yield seen
    finally:
        sa.event.remove(bench.database.engine, "before_cursor_execute", sent)
        sa.event.remove(Entry, "load", loaded)


def cost_of_a_job(bench: Bench, job_id: str) -> tuple[int, int]:
    with counted(bench) as seen:
        bench.run(job_id, gaussian(100.0))
    return seen["statements"], seen["entries"]


def test_a_job_costs_the_same_after_a_long_history(bench: Bench) -> None:
    cost_of_a_job(bench, "job_warm")
    early = cost_of_a_job(bench, "job_early")
    for index in range(20):
        bench.reserve(f"job_{index}", gaussian(100.0))
        bench.void(f"job_{index}")
    bench.checkpoint()
    late = cost_of_a_job(bench, "job_late")
    assert late == early


@pytest.mark.parametrize("calls", [3, 40])
def test_reservations_without_a_checkpoint_replay_a_bounded_tail(bench: Bench, calls: int) -> None:
    for index in range(calls):
        with counted(bench) as seen:
            bench.reserve(f"job_{index}", gaussian(200.0))
        assert seen["entries"] <= REPLAYED_AT_MOST
