"""The full audit: it recomputes everything from the entries, without cache or snapshot."""

from collections.abc import Iterator
from dataclasses import dataclass, field

from sqlalchemy import select

from app.db import ReadSession, WriteSession
from app.hashchain import digest
from app.ledger.account import locked_account, opening
from app.ledger.context import LedgerContext
from app.ledger.entries.balance import FROZEN, RESERVED, UNFROZEN, Balance
from app.ledger.integrity import chain, checkpoints, snapshots
from app.ledger.integrity.chain import Head, Link, Mismatch
from app.ledger.models import Account, Checkpoint, Entry, LedgerDataset, Reservation
from app.vault.signing import Signer


def verify(context: LedgerContext, session: ReadSession) -> tuple[str, ...]:
    """The ids of all accounts that do not verify.

    The check covers chains, checkpoints, balances and index rows.
    """
    suspects = set(_broken_checkpoints(session, context.signer)) | set(_orphans(session))
    for account_id in session.scalars(select(Account.id).order_by(Account.id)).all():
        query = select(Account).where(Account.id == account_id).with_for_update(read=True)
        account = session.scalars(query.execution_options(populate_existing=True)).one()
        if not is_balanced(session, context.signer, account):
            suspects.add(account_id)
    return tuple(sorted(suspects))


def verify_and_freeze(context: LedgerContext, tx: WriteSession) -> tuple[str, ...]:
    """Verify all accounts and freeze the faulty ones. Accounts are locked in the order of their ids."""
    for account_id in tx.scalars(select(Account.id).order_by(Account.id)).all():
        locked_account.lock_account(tx, account_id)
    suspects = verify(context, tx)
    for account_id in suspects:
        account = tx.get(Account, account_id)
        if account is not None:
            locked_account.freeze(tx, account, opening.find_any_dataset(tx, account_id) or "")
    return suspects


@dataclass(slots=True)
class _Trail:
    """Facts collected by a replay: states of jobs, and the heads that checkpoints and the snapshot name."""

    wanted: frozenset[int]
    jobs: dict[str, tuple[str, str, int]] = field(default_factory=dict)
    points: dict[int, tuple[str, str]] = field(default_factory=dict)
    frozen_at: object = None
    within: bool = True
    used: float = 0.0

    def record(self, entry: Link, balance: Balance) -> None:
        if entry.job_id is not None:
            self.jobs[entry.job_id] = (entry.kind, entry.dataset_id, entry.sequence)
        if entry.kind == RESERVED:
            self.within = self.within and balance.holds(entry.dataset_id)
        self.used = entry.epsilon_after
        if entry.kind in {FROZEN, UNFROZEN}:
            self.frozen_at = entry.at if entry.kind == FROZEN else None
        if entry.sequence in self.wanted:
            self.points[entry.sequence] = (entry.entry_hash, digest(balance.to_json()))


def is_balanced(session: ReadSession, signer: Signer, account: Account) -> bool:
    """Whether the locked account equals the sum of its entries.

    Replays the chain from its first entry, then compares all that was derived from it.
    """
    marks = session.scalars(select(Checkpoint).where(Checkpoint.account_id == account.id)).all()
    try:
        snapshots.verify_account(session, signer, account)
        taken = snapshots.read_sequence(account)
        trail = _Trail(frozenset({taken, *(mark.account_sequence for mark in marks)}))
        balance = _replay(session, account, trail)
    except Mismatch:
        return False
    kept = (account.snapshot["head"], digest(account.snapshot["balance"]))
    marked = all(trail.points.get(mark.account_sequence) == (mark.account_head, mark.balance_hash) for mark in marks)
    return (
        trail.within
        and marked
        and trail.points.get(taken) == kept
        and account.frozen_at == trail.frozen_at
        and (account.epsilon_used, account.epsilon_limit) == (trail.used, balance.total.epsilon)
        and balance.to_columns() == account.stored
        and _jobs(session, account.id) == trail.jobs
        and _datasets(session, account.id) == set(balance.datasets)
    )


def _replay(session: ReadSession, account: Account, trail: _Trail) -> Balance:
    head = Head()
    for entry, reached in chain.replay(head, chain.read_after(session, account.id, 0)):
        head = reached
        assert head.balance is not None
        trail.record(entry, head.balance)
    if head.balance is None or (head.sequence, head.entry_hash) != (account.sequence, account.head_hash):
        raise Mismatch
    return head.balance


def _jobs(session: ReadSession, account_id: str) -> dict[str, tuple[str, str, int]]:
    columns = (Reservation.job_id, Reservation.state, Reservation.dataset_id, Reservation.sequence)
    rows = session.execute(select(*columns).where(Reservation.account_id == account_id))
    return {job_id: (state, dataset_id, sequence) for job_id, state, dataset_id, sequence in rows}


def _datasets(session: ReadSession, account_id: str) -> set[str]:
    return set(session.scalars(select(LedgerDataset.dataset_id).where(LedgerDataset.account_id == account_id)))


def _broken_checkpoints(session: ReadSession, signer: Signer) -> Iterator[str]:
    """The accounts of broken checkpoints, by the account's id and by its head."""
    for row, holds in checkpoints.audit(session, signer):
        if not holds:
            yield row.account_id
            yield from session.scalars(select(Entry.account_id).where(Entry.entry_hash == row.account_head))


def _orphans(session: ReadSession) -> Iterator[str]:
    """The ids of missing accounts that other rows name."""
    existing = select(Account.id)
    for column in (Entry.account_id, Checkpoint.account_id, Reservation.account_id, LedgerDataset.account_id):
        yield from session.scalars(select(column).where(column.not_in(existing)).distinct())
