"""Verification of one account on request, without locks."""

from collections.abc import Callable
from typing import Any

import pytest
import sqlalchemy as sa

from app.db import WriteSession
from app.errors import NotFound
from tests.factories.tampering import drop_triggers, rewrite_newest_entry, table
from tests.ledger.support import Bench, costing

Change = Callable[[WriteSession, str], Any]


def _verifies(bench: Bench, dataset_id: str = "ds_a") -> bool:
    with bench.database.read() as session:
        return bench.ledger.verify_account(session, dataset_id)


@pytest.fixture
def spent(bench: Bench) -> Bench:
    """An account with a settled job, an open reservation and a checkpoint."""
    bench.reserve("job_a", costing(0.2))
    bench.open("job_a")
    bench.settle("job_a")
    bench.reserve("job_b", costing(0.3))
    bench.write(lambda tx: bench.ledger.checkpoint(tx, "ds_a"))
    return bench


def _set(name: str, where: str, **values: Any) -> Change:
    def change(tx: WriteSession, account_id: str) -> None:
        drop_triggers(tx)
        own = sa.column("id" if name == "ledger_accounts" else "account_id") == account_id
        tx.execute(sa.update(table(name)).where(own, sa.text(where)).values(**values))

    return change


def _truncate(tx: WriteSession, account_id: str) -> None:
    """Remove the newest entry, and let the account's row end before it."""
    drop_triggers(tx)
    entries, accounts = table("ledger_entries"), table("ledger_accounts")
    newest, before = tx.execute(
        sa.select(entries).where(entries.c.account_id == account_id).order_by(entries.c.sequence.desc()).limit(2)
    ).all()
    tx.execute(sa.delete(entries).where(entries.c.account_id == account_id, entries.c.sequence == newest.sequence))
    values = {"sequence": before.sequence, "head_hash": before.entry_hash}
    tx.execute(sa.update(accounts).where(accounts.c.id == account_id).values(values))


def _cut_charge(tx: WriteSession, account_id: str) -> None:
    rewrite_newest_entry(tx, account_id, lambda body: {**body, "charge": {**body["charge"], "amounts": ""}})


def _forge_balance(tx: WriteSession, account_id: str) -> None:
    accounts = table("ledger_accounts")
    stored = tx.scalars(sa.select(accounts.c.balance).where(accounts.c.id == account_id)).one()
    forged = {**stored, "settled": 0}
    tx.execute(sa.update(accounts).where(accounts.c.id == account_id).values(balance=forged))


def test_an_honest_account_verifies(spent: Bench) -> None:
    assert _verifies(spent)
    spent.void("job_b")
    assert _verifies(spent)


def test_an_account_is_verified_while_another_reserves(spent: Bench) -> None:
    """A reservation after the row was read does not disturb the check."""
    with spent.database.read() as session:
        assert spent.ledger.verify_account(session, "ds_a")
        spent.reserve("job_c", costing(0.1))
        assert spent.ledger.verify_account(session, "ds_a")


@pytest.mark.parametrize(
    "tamper",
    [
        _set("ledger_entries", "sequence = 2", epsilon_after=0.0001),
        _set("ledger_entries", "sequence = 2", job_id="job_x"),
        _set("ledger_accounts", "1 = 1", head_hash="0" * 64),
        _set("ledger_checkpoints", "1 = 1", signature="AAAA"),
        _set("ledger_checkpoints", "1 = 1", balance_hash="0" * 64),
        _truncate,
        _cut_charge,
        _forge_balance,
    ],
    ids=["amount", "job", "head", "signature", "balance-hash", "truncated", "rewritten", "balance"],
)
def test_tampering_is_found(spent: Bench, tamper: Change) -> None:
    """W11: committed entries cannot be altered or lost without detection."""
    with spent.database.write() as tx:
        account_id = tx.scalars(sa.select(table("ledger_accounts").c.id)).one()
        tamper(tx, account_id)
    assert not _verifies(spent)


def test_a_dataset_without_an_account_is_not_found(bench: Bench) -> None:
    with pytest.raises(NotFound):
        _verifies(bench, "ds_none")
