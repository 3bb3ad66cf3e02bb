"""Calls of the ledger without effect or without an object change nothing."""

from unittest.mock import patch

import pytest
from sqlalchemy import select

from app.errors import NotFound, StateConflict
from app.ledger import Cause, HighWaterMark, LedgerEntry
from app.ledger.models import Account
from app.vault.marks import open_marks
from app.vault.signing import Signer
from tests.ledger.support import SEED, Bench


def entries(bench: Bench, dataset_id: str = "ds_a") -> list[LedgerEntry]:
    with bench.database.read() as session:
        return bench.ledger.entries(session, dataset_id, limit=100, before=None)


def account_id(bench: Bench) -> str:
    with bench.database.read() as session:
        return session.scalars(select(Account.id)).first() or ""


def test_second_account_of_a_dataset_is_refused(bench: Bench) -> None:
    before = entries(bench)
    with pytest.raises(StateConflict):
        bench.open_account("ds_a")
    assert entries(bench) == before


def test_cap_that_stays_the_same_leaves_no_entry(bench: Bench) -> None:
    bench.open_account("ds_b", epsilon=0.5)
    before = entries(bench, "ds_b")
    bench.write(lambda tx: bench.ledger.change_limit(tx, "ds_b", 0.5, None))
    assert entries(bench, "ds_b") == before


def test_reconciliation_without_a_mark_is_refused(bench: Bench) -> None:
    with pytest.raises(StateConflict, match="No mark is kept"):
        bench.write(lambda tx: bench.ledger.reconcile(tx, adopt=False))


def test_freeze_without_a_mark_is_marked_nowhere(bench: Bench) -> None:
    before = entries(bench)
    bench.write(lambda tx: bench.ledger.mark_freeze(tx, account_id(bench)))
    assert entries(bench) == before


@pytest.mark.parametrize("known", [True, False])
def test_account_that_is_not_frozen_is_not_marked_so(running: Bench, known: bool) -> None:
    before = entries(running)
    identifier = account_id(running) if known else "acc_unknown"
    running.write(lambda tx: running.ledger.mark_freeze(tx, identifier))
    assert entries(running) == before
    with running.database.read() as session:
        assert running.ledger.unmarked_freezes(session) == []


@pytest.mark.parametrize("call", ["content_replaced", "dataset_deleted", "change_limit", "checkpoint", "lock"])
def test_call_for_an_unknown_dataset_is_not_found(bench: Bench, call: str) -> None:
    arguments: dict[str, tuple[object, ...]] = {"content_replaced": (2,), "change_limit": (0.5, None)}
    with pytest.raises(NotFound):
        bench.write(lambda tx: getattr(bench.ledger, call)(tx, "ds_unknown", *arguments.get(call, ())))


def test_mark_that_is_begun_twice_stays_as_it_is(running: Bench, mark_url: str) -> None:
    mark = HighWaterMark(open_marks(mark_url), Signer(SEED))
    before = mark.names()
    assert before
    mark.begin("acc_later")
    assert mark.names() == before


def test_mark_of_a_frozen_account_is_read_once(running: Bench, mark_url: str) -> None:
    """W11: a marked freeze needs no second mark and is not read again."""
    running.write(lambda tx: running.ledger.freeze(tx, "ds_a", Cause.RUN))
    running.write(lambda tx: running.ledger.mark_freeze(tx, account_id(running)))
    mark, accounts = HighWaterMark(open_marks(mark_url), Signer(SEED)), [account_id(running), "acc_unknown"]
    assert mark.without_freeze(accounts) == ["acc_unknown"]
    with patch.object(mark, "read", return_value=None):
        assert mark.without_freeze(accounts) == ["acc_unknown"]
