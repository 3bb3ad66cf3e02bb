"""The end of a freeze: only after a run's failure, and kept across a restore (W11)."""

from collections.abc import Callable
from typing import Any, cast
from unittest.mock import patch

import pytest
import sqlalchemy as sa

from app.errors import DependencyUnavailable, InvalidRequest, NotFound, StateConflict
from app.ledger import Cause, HighWaterMark
from app.ledger.account import locked_account
from app.ledger.account.causes import count_causes
from app.ledger.entries.balance import LedgerEvent
from tests.ledger.support import Bench, Restore, costing, guarded, reconcile
from tests.ledger.test_ledger_freezing import by_another_plan, by_what_does_not_hold, sweep

REASON = "A fault of the service, since mended."


def freeze(bench: Bench) -> None:
    bench.write(lambda tx: bench.ledger.freeze(tx, "ds_a", Cause.RUN))


def unfreeze(bench: Bench) -> None:
    bench.write(lambda tx: bench.ledger.unfreeze(tx, "ds_a", REASON))


def kinds(bench: Bench) -> list[str]:
    with bench.database.read() as session:
        return [entry.kind for entry in bench.ledger.entries(session, "ds_a", limit=100, before=None)]


def test_account_spends_again_after_its_freeze_is_ended(running: Bench) -> None:
    before = running.budget().spent
    freeze(running)
    unfreeze(running)
    assert kinds(running)[:2] == ["unfrozen", "frozen"]
    assert running.budget().spent == before
    running.run("job_after", costing(0.1))
    assert running.verify() == ()


def test_process_that_may_only_read_the_mark_ends_a_freeze(running: Bench) -> None:
    """The change is durable, so it must not be reported as failed; the next checkpoint writes the mark."""
    freeze(running)
    with patch.object(HighWaterMark, "advance", side_effect=DependencyUnavailable):
        unfreeze(running)
    assert kinds(running)[0] == "unfrozen"
    running.run("job_after", costing(0.1))
    assert running.verify() == ()
    assert sweep(running) == 0


def test_reason_is_part_of_the_chain(running: Bench) -> None:
    """W11: an altered reason is detected."""
    freeze(running)
    unfreeze(running)
    with running.database.read() as session:
        body = session.scalar(sa.text("SELECT body FROM ledger_entries WHERE kind = 'unfrozen'"))
    assert REASON in str(body)


def test_second_freeze_after_an_unfreeze_is_marked_again(
    running: Bench, backup: Restore, database_url: str, mark_url: str
) -> None:
    """W11: the process that marked the first freeze marks the second one too."""
    freeze(running)
    assert (sweep(running), sweep(running)) == (1, 0)
    unfreeze(running)
    assert sweep(running) == 0
    freeze(running)
    assert sweep(running) == 1
    backup()
    assert [each.outcome for each in reconcile(database_url, mark_url)] == ["frozen"]
    with running.database.read() as session:
        assert count_causes(session)[Cause.UNKNOWN] == 1  # the mark does not record the cause


@pytest.mark.parametrize("reason", ["", " \n"])
def test_a_freeze_does_not_end_without_a_reason(running: Bench, reason: str) -> None:
    """W11: the chain states why each freeze ended."""
    freeze(running)
    with pytest.raises(InvalidRequest):
        running.write(lambda tx: running.ledger.unfreeze(tx, "ds_a", reason))
    assert kinds(running)[0] == "frozen"


def test_account_that_is_not_frozen_is_refused(running: Bench) -> None:
    with pytest.raises(StateConflict, match="not frozen"):
        unfreeze(running)


def test_dataset_without_an_account_is_not_found(running: Bench) -> None:
    with pytest.raises(NotFound):
        running.write(lambda tx: running.ledger.unfreeze(tx, "ds_none", REASON))


def by_a_mismatch(bench: Bench) -> None:
    bench.write(lambda tx: bench.ledger.freeze(tx, "ds_a", Cause.MISMATCH))


def by_an_earlier_version(bench: Bench) -> None:
    """Its entry names no cause."""

    def without_cause(sequence: int, kind: str, dataset_id: str, job_id: str | None, _: Any) -> LedgerEvent:
        return LedgerEvent(sequence, kind, dataset_id, job_id, {})

    with patch.object(locked_account, "LedgerEvent", without_cause):
        freeze(bench)


def by_a_later_version(bench: Bench) -> None:
    bench.write(lambda tx: bench.ledger.freeze(tx, "ds_a", cast("Cause", "unheard of")))


@pytest.mark.parametrize("by_an_unknown_cause", [by_an_earlier_version, by_a_later_version])
def test_freeze_for_an_unknown_cause_is_named_and_not_ended(
    running: Bench, by_an_unknown_cause: Callable[[Bench], None]
) -> None:
    """W11: it may have been tampering, so unknown means refuse."""
    by_an_unknown_cause(running)
    assert running.verify() == ()
    with pytest.raises(StateConflict, match="for an unknown cause"):
        unfreeze(running)
    with running.database.read() as session:
        frozen, opened, *_ = running.ledger.entries(session, "ds_a", limit=100, before=None)
        assert count_causes(session) == {Cause.RUN: 0, Cause.MISMATCH: 0, Cause.UNKNOWN: 1}
    assert (frozen.kind, frozen.cause, opened.cause) == ("frozen", Cause.UNKNOWN, None)
    with pytest.raises(StateConflict):
        running.reserve("job_after", costing(0.1))


def test_cause_of_an_earlier_freeze_is_not_that_of_the_present_one(running: Bench) -> None:
    """W11: a chain that cannot record the present freeze still has the ended one."""
    freeze(running)
    unfreeze(running)
    by_what_does_not_hold(running)
    with running.database.read() as session:
        assert count_causes(session) == {Cause.RUN: 0, Cause.MISMATCH: 0, Cause.UNKNOWN: 1}


@pytest.mark.parametrize("tamper", [by_a_mismatch, by_another_plan, by_what_does_not_hold])
def test_freeze_by_tampering_is_not_ended(running: Bench, tamper: Callable[[Bench], None]) -> None:
    """W11: with any reason."""
    tamper(running)
    with pytest.raises(StateConflict, match="did not verify"):
        unfreeze(running)
    with pytest.raises(StateConflict):
        running.reserve("job_after", costing(0.1))


def test_account_that_was_altered_while_frozen_is_refused(running: Bench) -> None:
    """W11: a freeze by a run does not hide later tampering."""
    freeze(running)
    altered = sa.text("UPDATE ledger_accounts SET epsilon_limit = epsilon_limit + 1")
    running.write(lambda tx: tx.execute(altered))
    with pytest.raises(StateConflict, match="did not verify"):
        unfreeze(running)


def test_restore_to_within_a_freeze_keeps_its_end(
    running: Bench, database_url: str, mark_url: str, take_backup: Callable[[], Restore]
) -> None:
    """W11: the mark records the end of the freeze and later charges."""
    freeze(running)
    sweep(running)
    restore = take_backup()
    unfreeze(running)
    running.run("job_after", costing(0.2))
    spent = running.budget().spent
    restore()
    assert [each.outcome for each in reconcile(database_url, mark_url)] == ["charged"]
    restored = guarded(database_url, mark_url)
    assert (restored.verify(), restored.budget().spent) == ((), spent)
    assert "unfrozen" in kinds(restored)
    restored.run("job_last", costing(0.1))
    restored.database.dispose()


def test_restore_to_before_a_freeze_that_was_ended_charges(
    running: Bench, backup: Restore, database_url: str, mark_url: str
) -> None:
    freeze(running)
    sweep(running)
    unfreeze(running)
    running.run("job_after", costing(0.2))
    spent = running.budget().spent
    backup()
    assert [each.outcome for each in reconcile(database_url, mark_url)] == ["charged"]
    restored = guarded(database_url, mark_url)
    assert (restored.verify(), restored.budget().spent) == ((), spent)
    restored.database.dispose()


def test_restore_ends_no_freeze_by_itself(
    running: Bench, database_url: str, mark_url: str, take_backup: Callable[[], Restore]
) -> None:
    """W11: a mark from before the freeze does not record its end."""
    freeze(running)
    restore = take_backup()
    sweep(running)
    restore()
    assert [each.outcome for each in reconcile(database_url, mark_url)] == ["frozen"]


def test_unfreeze_of_a_database_behind_its_mark_is_refused(
    running: Bench, database_url: str, mark_url: str, take_backup: Callable[[], Restore]
) -> None:
    freeze(running)
    restore = take_backup()
    sweep(running)
    restore()
    behind = guarded(database_url, mark_url)
    with pytest.raises(Exception, match="reconcile"):
        unfreeze(behind)
    behind.database.dispose()
