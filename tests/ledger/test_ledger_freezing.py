"""A freeze survives a restore of the database (W11)."""

from collections.abc import Callable

import pytest
import sqlalchemy as sa

from app.db import Database, make_engine
from app.errors import DependencyUnavailable, StateConflict
from app.ledger import Cause, HighWaterMark, Ledger
from app.vault.marks import Marks, open_marks
from app.vault.signing import Signer
from tests.ledger.support import SEED, Bench, Restore, costing, guarded, reconcile


def sweep(bench: Bench) -> int:
    """Mark freezes as a worker does; return their number."""
    with bench.database.read() as session:
        account_ids = bench.ledger.unmarked_freezes(session)
    for account_id in account_ids:
        bench.write(lambda tx, account_id=account_id: bench.ledger.mark_freeze(tx, account_id))  # type: ignore[misc]
    return len(account_ids)


def checkpoints(bench: Bench) -> int:
    with bench.database.read() as session:
        return int(session.scalar(sa.text("SELECT count(*) FROM ledger_checkpoints")) or 0)


def by_its_operator(bench: Bench) -> None:
    bench.write(lambda tx: bench.ledger.freeze(tx, "ds_a", Cause.RUN))


def by_another_plan(bench: Bench) -> None:
    """A run whose plan was not reserved."""
    bench.reserve("job_2", costing(0.1))
    bench.reserved["job_2"] = costing(0.2), "ds_a"
    with pytest.raises(StateConflict):
        bench.open("job_2")


def by_what_does_not_hold(bench: Bench) -> None:
    """No entry can record the freeze, because the head is not the chain's."""
    bench.write(lambda tx: tx.execute(sa.text(f"UPDATE ledger_accounts SET head_hash = '{'0' * 64}'")))
    assert bench.write(bench.ledger.verify_and_freeze)


Freeze = Callable[[Bench], None]
every_freeze = pytest.mark.parametrize("freeze", [by_its_operator, by_another_plan, by_what_does_not_hold])


@every_freeze
def test_a_frozen_account_stays_frozen_on_an_older_database(
    running: Bench, backup: Restore, database_url: str, mark_url: str, freeze: Freeze
) -> None:
    """W11: it is refused first, then frozen again, and its balance is unchanged."""
    before = running.budget().spent
    freeze(running)
    assert (sweep(running), sweep(running)) == (1, 0)
    for _ in range(2):
        backup()
        restored = guarded(database_url, mark_url)
        with pytest.raises(DependencyUnavailable, match="reconcile"):
            restored.reserve("job_3", costing(0.1))
        assert [each.outcome for each in reconcile(database_url, mark_url)] == ["frozen"]
        with pytest.raises(StateConflict):
            restored.reserve("job_3", costing(0.1))
        assert (restored.verify(), restored.budget().spent) == ((), before)
        assert sweep(restored) == 0, "the reconciliation has marked it"
        restored.database.dispose()


def test_the_freeze_of_one_account_does_not_affect_others(
    running: Bench, backup: Restore, database_url: str, mark_url: str
) -> None:
    running.open_account("ds_b", population="others")
    running.run("job_b", costing(0.2), "ds_b")
    by_its_operator(running)
    sweep(running)
    running.run("job_c", costing(0.2), "ds_b")
    backup()
    outcomes = [each.outcome for each in reconcile(database_url, mark_url)]
    assert sorted(outcomes) == ["charged", "frozen"]


def test_a_job_of_a_frozen_account_still_ends(running: Bench) -> None:
    """W10: the mark of the freeze does not change an account that verifies."""
    running.reserve("job_2", costing(0.1))
    running.open("job_2")
    by_its_operator(running)
    assert sweep(running) == 1
    running.settle("job_2")
    with running.database.read() as session:
        assert running.ledger.state(session, "job_2") == "settled"
    assert running.verify() == ()


@every_freeze
def test_a_mark_that_was_not_written_follows_in_the_next_sweep(
    running: Bench, backup: Restore, database_url: str, mark_url: str, monkeypatch: pytest.MonkeyPatch, freeze: Freeze
) -> None:
    """W10: the checkpoint is durable, and the process died before it wrote the mark."""
    freeze(running)

    def away(*_: object) -> None:
        raise DependencyUnavailable

    with monkeypatch.context() as patched:
        patched.setattr(HighWaterMark, "advance", away)
        with pytest.raises(DependencyUnavailable):
            sweep(running)
    before = checkpoints(running)
    assert (sweep(running), sweep(running)) == (1, 0)
    if freeze is not by_what_does_not_hold:
        assert checkpoints(running) == before
    backup()
    assert [each.outcome for each in reconcile(database_url, mark_url)] == ["frozen"]


def test_an_older_database_marks_no_freeze(running: Bench, backup: Restore, database_url: str, mark_url: str) -> None:
    """W11: its checkpoint would belong to another history than the mark."""
    running.run("job_2", costing(0.1))
    backup()
    unguarded = Bench(
        Database(make_engine(database_url)),
        Ledger(Signer(SEED), 20.0, HighWaterMark(open_marks(mark_url), Signer(SEED))),
    )
    by_its_operator(unguarded)
    before = names(open_marks(mark_url))
    with pytest.raises(DependencyUnavailable, match="reconcile"):
        sweep(unguarded)
    assert names(open_marks(mark_url)) == before
    unguarded.database.dispose()


def names(marks: Marks) -> set[str]:
    return {str(name) for name in marks.names()}


def test_a_ledger_without_a_mark_marks_no_freeze(bench: Bench) -> None:
    by_its_operator(bench)
    assert sweep(bench) == 0
