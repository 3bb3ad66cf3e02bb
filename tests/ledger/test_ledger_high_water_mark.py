"""The high-water mark: restoring an old backup cannot refund budget (W11)."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from unittest.mock import patch
from urllib.parse import urlsplit

import pytest
import sqlalchemy as sa

from app.db import Database, WriteSession, make_engine
from app.errors import BudgetExceeded, DependencyUnavailable, StateConflict
from app.ledger import HighWaterMark, Ledger
from app.vault.marks import open_marks
from app.vault.signing import Signer
from tests.ledger.support import SEED, Bench, Restore, costing, guarded, reconcile


def test_a_database_with_its_mark_is_not_reconciled(running: Bench, database_url: str, mark_url: str) -> None:
    running.run("job_2", costing(0.5))
    again = guarded(database_url, mark_url)
    again.run("job_3", costing(0.5))
    running.run("job_4", costing(0.2))
    assert len(open_marks(mark_url).names()) == 1, "a replaced mark is removed"
    assert reconcile(database_url, mark_url) == []
    again.database.dispose()


def test_a_restored_backup_is_read_only_until_it_is_charged(
    running: Bench, backup: Restore, database_url: str, mark_url: str
) -> None:
    """W11: charges from after the backup are kept."""
    running.run("job_2", costing(1.0))
    running.reserve("job_3", costing(0.1))
    before = running.budget()
    backup()
    restored = guarded(database_url, mark_url)
    for call in (
        lambda: restored.reserve("job_4", costing(1.85)),
        lambda: restored.open_account("ds_b", population="others"),
        restored.checkpoint,
    ):
        with pytest.raises(DependencyUnavailable, match="reconcile"):
            call()
    assert restored.budget().version < before.version, "it can be read"
    assert [each.outcome for each in reconcile(database_url, mark_url)] == ["charged"]
    after = restored.budget()
    assert after.spent.epsilon == pytest.approx(before.spent.epsilon, abs=1e-9)
    assert after.spent.epsilon >= before.spent.epsilon
    assert after.limit == before.limit
    with pytest.raises(BudgetExceeded):
        restored.reserve("job_4", costing(1.85))
    restored.run("job_2", costing(0.3))
    assert restored.verify() == ()
    assert reconcile(database_url, mark_url) == []
    restored.database.dispose()


def test_a_running_service_detects_a_swapped_database(
    running: Bench, backup: Restore, database_url: str, mark_url: str
) -> None:
    """W11, W8: nothing is unsealed on a database without the checkpoints of this process."""
    running.run("job_2", costing(1.0))
    backup()
    with pytest.raises(DependencyUnavailable, match="reconcile"):
        running.checkpoint()
    with pytest.raises(DependencyUnavailable, match="reconcile"):
        running.reserve("job_4", costing(0.1))
    reconcile(database_url, mark_url)
    running.checkpoint()


def test_a_job_that_ran_is_not_opened_again_after_a_restore(
    running: Bench, backup: Restore, database_url: str, mark_url: str
) -> None:
    """W11: otherwise the charge would be taken for a lost one: two releases for one charge."""
    running.run("job_2", costing(1.0))
    spent = running.budget().spent.epsilon
    backup()
    running.reserve("job_2", costing(1.0))
    with pytest.raises(DependencyUnavailable, match="reconcile"):
        running.open("job_2")
    assert [each.outcome for each in reconcile(database_url, mark_url)] == ["charged"]
    running.open("job_2")
    running.checkpoint()
    assert running.budget().spent.epsilon > spent


def test_a_job_that_was_open_in_the_backup_does_not_run_again(
    running: Bench, take_backup: Callable[[], Restore], database_url: str, mark_url: str
) -> None:
    """W8, W11: its release is public, and a second one would use new noise under the same charge."""
    running.reserve("job_2", costing(1.0))
    running.open("job_2")
    running.checkpoint()
    restore = take_backup()
    running.settle("job_2", running.reserved["job_2"][0].events)
    running.checkpoint()
    spent = running.budget().spent
    restore()
    assert [each.outcome for each in reconcile(database_url, mark_url)] == ["charged"]
    with pytest.raises(StateConflict, match="ended"):
        running.open("job_2")
    assert running.budget().spent == spent, "it is charged once"
    assert (running.verify(), reconcile(database_url, mark_url)) == ((), [])


def test_an_account_frozen_for_its_mark_stays_frozen_after_a_restore(
    running: Bench, backup: Restore, database_url: str, mark_url: str
) -> None:
    """W11: the mark of a frozen account records no complete balance."""
    running.change_limit(4.0, 1e-6)
    running.run("job_2", costing(1.8))
    running.run("job_3", costing(1.5))
    for _ in range(2):
        backup()
        assert [each.outcome for each in reconcile(database_url, mark_url)] == ["frozen"]
    restored = guarded(database_url, mark_url)
    with pytest.raises(StateConflict):
        restored.reserve("job_4", costing(0.01))
    assert restored.verify() == ()
    restored.database.dispose()


def test_another_history_of_the_same_length_is_detected(
    running: Bench, backup: Restore, database_url: str, mark_url: str
) -> None:
    """W11: the same number of checkpoints, by cheaper jobs; only the hash differs."""
    running.run("job_2", costing(1.0))
    spent = running.budget().spent
    backup()
    forked = Bench(Database(make_engine(database_url)), Ledger(Signer(SEED), max_epsilon=20.0))
    forked.run("job_2", costing(0.05))
    forked.database.dispose()
    restored = guarded(database_url, mark_url)
    with pytest.raises(DependencyUnavailable):
        restored.reserve("job_3", costing(0.1))
    reconcile(database_url, mark_url)
    assert restored.budget().spent.epsilon >= spent.epsilon
    restored.database.dispose()


def test_a_checkpoint_without_a_mark_blocks_its_caller(running: Bench, mark_url: str) -> None:
    """W11: the checkpoint is durable, but the caller gets an error before it unseals or publishes."""
    before, ran = open_marks(mark_url).names(), []

    def checkpoint(tx: WriteSession) -> None:
        running.ledger.checkpoint(tx, "ds_a")
        tx.after_commit(lambda: ran.append("another hook"))

    with (
        patch.object(HighWaterMark, "advance", side_effect=DependencyUnavailable),
        pytest.raises(DependencyUnavailable),
    ):
        running.write(checkpoint)
    assert (ran, open_marks(mark_url).names()) == (["another hook"], before)
    running.checkpoint()
    assert open_marks(mark_url).names() != before


def test_reconciling_never_refunds(running: Bench, backup: Restore, database_url: str, mark_url: str) -> None:
    """Charges of the restored database beyond the mark stay, in addition to the mark's."""
    running.run("job_2", costing(0.05))
    backup()
    forked = Bench(Database(make_engine(database_url)), Ledger(Signer(SEED), max_epsilon=20.0))
    forked.run("job_other", costing(1.0))
    before = forked.budget().spent
    forked.database.dispose()
    reconcile(database_url, mark_url)
    restored = guarded(database_url, mark_url)
    assert restored.budget().spent.epsilon >= before.epsilon
    assert restored.verify() == ()
    restored.database.dispose()


def test_a_charge_that_does_not_fit_freezes(running: Bench, backup: Restore, database_url: str, mark_url: str) -> None:
    """The limit was raised after the backup, and spent. The tranche is lost, so the charge is unknown."""
    running.change_limit(4.0, 1e-6)
    running.run("job_2", costing(1.8))
    running.run("job_3", costing(1.5))
    backup()
    assert [each.outcome for each in reconcile(database_url, mark_url)] == ["frozen"]
    restored = guarded(database_url, mark_url)
    with pytest.raises(StateConflict):
        restored.reserve("job_4", costing(0.01))
    assert restored.verify() == ()
    assert reconcile(database_url, mark_url) == []
    restored.database.dispose()


def test_a_lost_account_is_inserted_again_as_spent(
    running: Bench, backup: Restore, database_url: str, mark_url: str
) -> None:
    """The account was opened after the backup; a second one may not be opened."""
    running.open_account("ds_b", population="others", epsilon=1.0)
    running.run("job_2", costing(0.8), "ds_b")
    spent = running.budget("ds_b").spent
    backup()
    assert [each.outcome for each in reconcile(database_url, mark_url)] == ["charged"]
    restored = guarded(database_url, mark_url)
    restored.open_account("ds_c", population="others", epsilon=1.0)
    assert restored.budget("ds_c").spent.epsilon >= spent.epsilon
    with pytest.raises(BudgetExceeded):
        restored.reserve("job_3", costing(0.8), "ds_c")
    assert restored.verify() == ()
    restored.database.dispose()


def test_a_cap_is_charged_with_its_account(running: Bench, backup: Restore, database_url: str, mark_url: str) -> None:
    running.run("job_2", costing(0.45), "ds_capped")
    backup()
    reconcile(database_url, mark_url)
    restored = guarded(database_url, mark_url)
    with pytest.raises(BudgetExceeded):
        restored.reserve("job_3", costing(0.45), "ds_capped")
    restored.reserve("job_3", costing(0.45), "ds_a")
    assert restored.verify() == ()
    restored.database.dispose()


def test_a_missing_mark_blocks_writes(running: Bench, database_url: str, mark_url: str, tmp_path: Path) -> None:
    """W11: the removal of the mark refunds nothing."""
    elsewhere = (tmp_path / "nothing here").as_uri()
    for adopt in (False, True):
        lost = guarded(database_url, elsewhere)
        with pytest.raises(DependencyUnavailable, match="--adopt"):
            lost.reserve("job_2", costing(0.1))
        lost.database.dispose()
        if not adopt:
            with pytest.raises(StateConflict, match="--adopt"):
                reconcile(database_url, elsewhere)
    assert [each.outcome for each in reconcile(database_url, elsewhere, adopt=True)] == ["adopted"]
    adopted = guarded(database_url, elsewhere)
    adopted.run("job_2", costing(0.1))
    adopted.database.dispose()


def test_an_installation_begins_without_a_mark(database_url: str, mark_url: str) -> None:
    bench = guarded(database_url, mark_url)
    bench.open_account("ds_a")
    bench.reserve("job_1", costing(0.1))
    bench.database.dispose()


def test_a_first_mark_that_was_not_written_blocks_nothing_else(
    database_url: str, mark_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """W10: the first checkpoint is durable, and the process died before it wrote the mark."""
    bench = guarded(database_url, mark_url)
    bench.open_account("ds_a")
    bench.reserve("job_1", costing(0.1))
    with monkeypatch.context() as patched:
        patched.setattr(HighWaterMark, "advance", lambda *_: away())
        with pytest.raises(DependencyUnavailable):
            bench.checkpoint()
    again = guarded(database_url, mark_url)
    again.run("job_2", costing(0.1))
    assert len(open_marks(mark_url).names()) == 1, "the announcement is replaced"
    assert reconcile(database_url, mark_url) == []
    for each in (bench, again):
        each.database.dispose()


def away() -> None:
    raise DependencyUnavailable


@pytest.mark.parametrize("damage", [b"", b"{}", b"not json"])
def test_a_mark_that_does_not_verify_freezes_its_account(
    running: Bench, backup: Restore, database_url: str, mark_url: str, damage: bytes
) -> None:
    running.run("job_2", costing(1.0))
    marks = open_marks(mark_url)
    (name,) = marks.names()
    backup()
    marks.put(replace(name, sequence=name.sequence), damage)
    assert [each.outcome for each in reconcile(database_url, mark_url)] == ["frozen"]


def test_a_mark_under_another_name_freezes_its_account(
    running: Bench, backup: Restore, database_url: str, mark_url: str
) -> None:
    """W11: an older mark is genuine, but does not record the lost charge."""
    marks = open_marks(mark_url)
    (older,) = marks.names()
    content = marks.read(older)
    running.run("job_2", costing(1.0))
    (newer,) = marks.names()
    assert newer.sequence > older.sequence
    backup()
    marks.put(newer, content)
    assert [each.outcome for each in reconcile(database_url, mark_url)] == ["frozen"]


def test_a_mark_that_cannot_be_written_blocks_the_effect(
    running: Bench, database_url: str, mark_url: str, tmp_path: Path
) -> None:
    """W11: the effect follows the mark, so a charge that a restore loses had no effect."""
    blocked = tmp_path / "a file"
    blocked.touch()
    bench = guarded(database_url, (blocked / "below").as_uri())
    with pytest.raises(DependencyUnavailable):
        bench.checkpoint()
    bench.database.dispose()


def test_other_files_among_marks_are_ignored(running: Bench, mark_url: str, tmp_path: Path) -> None:
    if mark_url.startswith("file"):
        (Path(urlsplit(mark_url).path) / "README").write_text("not a mark")
    running.run("job_2", costing(0.1))
    with running.database.read() as session:
        newest = session.scalar(sa.text("SELECT max(sequence) FROM ledger_checkpoints"))
    assert [name.sequence for name in open_marks(mark_url).names()] == [newest]
