"""Calls of the ledger that find nothing to do, or nothing to do it to, change nothing."""

import pytest
from sqlalchemy import select

from app.errors import NotFound, StateConflict
from app.ledger import LedgerEntry
from app.ledger.models import Account
from tests.ledger.support import Bench


def entries(bench: Bench, dataset_id: str = "ds_a") -> list[LedgerEntry]:
    with bench.database.read() as session:
        return bench.ledger.entries(session, dataset_id, limit=100, before=None)


def account_id(bench: Bench) -> str:
    with bench.database.read() as session:
        return session.scalars(select(Account.id)).first() or ""


def test_dataset_without_an_account_is_not_found(bench: Bench) -> None:
    with pytest.raises(NotFound):
        bench.write(lambda tx: bench.ledger.content_replaced(tx, "ds_unknown", 2))


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
