"""W9, W11: someone who writes to the database cannot forge entries before the next checkpoint."""

import shutil
from collections.abc import Callable, Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from app.db import Database, WriteSession, make_engine, now
from app.errors import StateConflict
from app.ledger import Cause, Ledger
from app.ledger.account import limits, locked_account, opening
from app.ledger.account.locked_account import LockedAccount
from app.ledger.entries.balance import (
    CONTENT_REPLACED,
    LIMIT_CHANGED,
    OPENED,
    SETTLED,
    UNFROZEN,
    VOIDED,
    LedgerEvent,
    apply,
)
from app.ledger.integrity import chain, snapshots
from app.ledger.integrity.chain import Head
from app.ledger.models import Account, Entry, Reservation
from app.vault.signing import Signer
from tests.ledger.support import DELTA, SEED, Bench, costing

pytestmark = pytest.mark.sqlite


@pytest.fixture
def bench(migrated_file: Path, tmp_path: Path) -> Iterator[Bench]:
    """An account without triggers, whose limit was lowered once."""
    path = shutil.copy(migrated_file, tmp_path)
    bench = Bench(Database(make_engine(f"sqlite:///{path}")), Ledger(Signer(SEED), max_epsilon=20.0))
    bench.open_account("ds_a")
    lower_limit(bench, 1.5)
    with bench.database.write() as tx:
        for name in tx.scalars(sa.text("SELECT name FROM sqlite_master WHERE type = 'trigger'")).all():
            tx.execute(sa.text(f"DROP TRIGGER {name}"))
    yield bench
    bench.database.dispose()


@pytest.fixture
def spent(bench: Bench) -> Bench:
    """The account with a settled and a reserved job."""
    bench.run("job_1", costing(0.2))
    bench.reserve("job_2", costing(0.2))
    return bench


def lower_limit(bench: Bench, epsilon: float) -> None:
    bench.write(lambda tx: bench.ledger.change_limit(tx, "ds_a", epsilon=epsilon, delta=None))


def restart(bench: Bench) -> Bench:
    """Another process, which has verified nothing yet."""
    return Bench(bench.database, Ledger(Signer(SEED), max_epsilon=20.0))


def forge(bench: Bench, kind: str, body: dict[str, Any], job_id: str | None = None) -> None:
    """Append an entry to all rows that the attacker can write: chain, account and index."""

    def append(tx: WriteSession) -> None:
        account = tx.scalars(sa.select(Account)).one()
        *_, (_, head) = chain.replay(Head(), chain.read_after(tx, account.id, 0))
        event = LedgerEvent(account.sequence + 1, kind, "ds_a", job_id, body)
        balance = apply(head.balance, event)
        entry = chain.link(account.id, head, event, now(), account.epsilon_used)
        tx.add(Entry(**asdict(entry)))
        stored = balance.to_columns()
        account.sequence, account.head_hash = entry.sequence, entry.entry_hash
        account.limits, account.balance = stored.limits, stored.amounts
        account.epsilon_limit = balance.total.epsilon
        if kind == UNFROZEN:
            account.frozen_at = None
        if job_id is not None:
            row = tx.get_one(Reservation, job_id)
            row.state, row.sequence = kind, entry.sequence

    bench.write(append)


def raise_limit(bench: Bench) -> None:
    with bench.database.read() as session:
        account = session.scalars(sa.select(Account)).one()
        balance = locked_account.read_balance(account)
        locked = LockedAccount(session, bench.ledger, account, balance)  # type: ignore[arg-type]  # only read
        tranche = opening.make_design_pot(9.0, DELTA, 20.0, "/epsilon")
        body = limits._body(locked, balance.total.epsilon + 9.0, 2 * DELTA, tranche)
    forge(bench, LIMIT_CHANGED, body)


def end_freeze(bench: Bench) -> None:
    bench.write(lambda tx: bench.ledger.freeze(tx, "ds_a", Cause.MISMATCH))
    forge(bench, UNFROZEN, {"reason": "forged"})


def _charge(bench: Bench) -> dict[str, Any]:
    with bench.database.read() as session:
        body = session.scalars(sa.select(Entry.body).where(Entry.job_id == "job_2")).one()
    return {"charge": body["charge"]}


def void_job(bench: Bench) -> None:
    forge(bench, VOIDED, _charge(bench), "job_2")


def open_job(bench: Bench) -> None:
    forge(bench, OPENED, _charge(bench), "job_2")


def settle_job(bench: Bench) -> None:
    bench.open("job_2")
    forge(bench, SETTLED, {"executed": []}, "job_2")


def replace_content(bench: Bench) -> None:
    forge(bench, CONTENT_REPLACED, {"version": 2})


FORGERIES = [raise_limit, end_freeze, void_job, open_job, settle_job, replace_content]


@pytest.mark.parametrize("forgery", FORGERIES)
@pytest.mark.parametrize("has_cached_head", [True, False])
def test_forged_entry_freezes_the_account(
    spent: Bench, forgery: Callable[[Bench], None], has_cached_head: bool
) -> None:
    forgery(spent)
    process = spent if has_cached_head else restart(spent)
    assert len(process.verify()) == 1
    with pytest.raises(StateConflict, match="frozen"):
        process.reserve("job_3", costing(0.1))


def test_rewritten_entry_does_not_follow_an_older_snapshot(spent: Bench) -> None:
    """The attacker undoes a lower limit, and raises the limit instead."""
    accounts = Account.metadata.tables[Account.__tablename__]
    with spent.database.read() as session:
        before = dict(session.execute(sa.select(accounts)).mappings().one())
    lower_limit(spent, 1.0)
    with spent.database.write() as tx:
        tx.execute(sa.delete(Entry).where(Entry.sequence > before["sequence"]))
        tx.execute(sa.update(accounts).values(before))
    raise_limit(spent)
    with pytest.raises(StateConflict, match="frozen"):
        spent.reserve("job_3", costing(0.1))


def open_reserved(bench: Bench) -> None:
    bench.open("job_2")


def run_another(bench: Bench) -> None:
    bench.run("job_3", costing(0.1))


def freeze_and_unfreeze(bench: Bench) -> None:
    bench.write(lambda tx: bench.ledger.freeze(tx, "ds_a", Cause.RUN))
    restart(bench).write(lambda tx: bench.ledger.unfreeze(tx, "ds_a", "repaired"))


@pytest.mark.parametrize("change", [open_reserved, run_another, freeze_and_unfreeze])
def test_genuine_entry_is_accepted_by_a_process_without_a_cache(spent: Bench, change: Callable[[Bench], None]) -> None:
    change(spent)
    process = restart(spent)
    process.reserve("job_4", costing(0.01))
    assert process.verify() == ()


def sign_as_earlier_versions(bench: Bench) -> None:
    """Give the account a snapshot of its first entry that is not strict."""
    with bench.database.write() as tx:
        account = tx.scalars(sa.select(Account)).one()
        (first, head), *_ = chain.replay(Head(), chain.read_after(tx, account.id, 0))
        assert head.balance is not None
        whole = head.balance.to_json()
        statement = snapshots._statement(account.id, first.sequence, head.entry_hash, whole, 0, strict=False)
        kept = {"sequence": first.sequence, "head": head.entry_hash, "balance": whole, "checkpoint": 0}
        account.snapshot = kept | bench.ledger.signer.sign_detached(statement)._asdict()


def test_snapshot_of_an_earlier_version_accepts_entries_of_every_kind(bench: Bench) -> None:
    """It did not cover the limit that was lowered. The next such entry has a snapshot, and ends this."""
    sign_as_earlier_versions(bench)
    process = restart(bench)
    assert process.verify() == ()
    lower_limit(process, 1.0)
    raise_limit(process)
    with pytest.raises(StateConflict, match="frozen"):
        restart(bench).reserve("job_1", costing(0.1))
