"""The cost of a call does not grow with the account's history. Rows are counted, not time."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

import pytest
import sqlalchemy as sa

from app.db import WriteSession
from app.errors import StateConflict
from app.hashchain import End
from app.ledger import Ledger
from app.ledger.integrity.snapshots import REPLAYED_AT_MOST
from tests.ledger.support import Bench, commitment, gaussian


@contextmanager
def counted(bench: Bench) -> Iterator[dict[str, int]]:
    """Count statements and verified entries."""
    seen = {"statements": 0, "entries": 0}
    is_continued_by = End.is_continued_by

    def sent(*_: object) -> None:
        seen["statements"] += 1

    def verified(*arguments: Any) -> bool:
        seen["entries"] += 1
        return is_continued_by(*arguments)

    sa.event.listen(bench.database.engine, "before_cursor_execute", sent)
    try:
        with patch.object(End, "is_continued_by", verified):
            yield seen
    finally:
        sa.event.remove(bench.database.engine, "before_cursor_execute", sent)


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


def test_a_process_verifies_only_new_entries(bench: Bench) -> None:
    """A process with an empty cache verifies the entries after the newest snapshot."""
    for index in range(REPLAYED_AT_MOST + 8):
        with counted(bench) as seen:
            bench.reserve(f"job_{index}", gaussian(200.0))
        assert seen["entries"] == 0
        stranger = Bench(bench.database, Ledger(bench.ledger.signer, max_epsilon=20.0))
        with counted(stranger) as seen:
            stranger.change_limit(2.0)  # to the same value: only locks and verifies
        newest = bench.budget().version
        assert seen["entries"] == newest - max(1, newest - newest % REPLAYED_AT_MOST)
    with counted(stranger) as seen:
        stranger.reserve("job_last", gaussian(200.0))
    assert seen["entries"] == 0


def test_entries_of_another_process_are_verified(bench: Bench) -> None:
    """W11: a cached head is continued, never trusted over the chain."""
    stranger = Bench(bench.database, Ledger(bench.ledger.signer, max_epsilon=20.0), bench.reserved)
    bench.reserve("job_1", gaussian(200.0))
    stranger.reserve("job_2", gaussian(200.0))
    with counted(bench) as seen:
        bench.reserve("job_3", gaussian(200.0))
    assert seen["entries"] == 1
    with bench.database.write() as tx:
        tx.execute(sa.text("UPDATE ledger_accounts SET balance = '{}'"))
    with pytest.raises(StateConflict):
        stranger.reserve("job_4", gaussian(200.0))


def test_a_rolled_back_head_is_not_cached(bench: Bench) -> None:
    def fail(tx: WriteSession) -> None:
        bench.ledger.reserve(tx, "ds_a", "job_1", gaussian(200.0), commitment=commitment())
        bench.ledger.checkpoint(tx, "ds_a")
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        bench.write(fail)
    before = bench.budget()
    bench.reserve("job_2", gaussian(100.0))
    bench.checkpoint()
    assert (before.version, bench.budget().version) == (1, 2)
    assert bench.verify() == ()
