"""Read-only views of the ledger: previews, budgets, entries and the guarantee of certificates."""

from collections.abc import Collection
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from sqlalchemy import Select, func, select

from app.db import ReadSession
from app.ledger.account import locked_account
from app.ledger.account.causes import parse_cause
from app.ledger.account.locked_account import Cause
from app.ledger.entries import admission
from app.ledger.entries.admission import Preview
from app.ledger.entries.balance import FROZEN, RESERVED, SETTLED, Balance
from app.ledger.entries.charge import Charge
from app.ledger.entries.meter import Pot
from app.ledger.models import Account, Entry, LedgerDataset
from app.privacy.accounting import ACCOUNTANT, UNIT_BITS


@dataclass(frozen=True, slots=True)
class Amount:
    epsilon: float
    delta: float


@dataclass(frozen=True, slots=True)
class JobCounts:
    """Numbers of jobs of the whole account; ``reserved`` counts jobs that have not ended."""

    settled: int
    reserved: int
    refused: int


@dataclass(frozen=True, slots=True)
class Budget:
    """The account behind a dataset: ``spent + reserved`` is the composed total of its population."""

    dataset_id: str
    population: str
    accountant: str
    relation: str
    unit: str
    slots: int
    limit: Amount
    spent: Amount
    reserved: Amount
    remaining: Amount
    used_share: float
    jobs: JobCounts
    version: int
    allocations: tuple["Allocation", ...] | None = None
    """None if there is no allocation that the reader may see."""

    def restrict_to(self, caller_id: str | None) -> "Budget":
        """The budget with the allocation of one caller only; with all allocations for None."""
        own = [each for each in self.allocations or () if caller_id in {None, each.key_id}]
        return replace(self, allocations=tuple(own) or None)


@dataclass(frozen=True, slots=True)
class Allocation:
    """A caller's part of the dataset's limit, and its use by the caller's jobs."""

    key_id: str
    limit: Amount
    spent: Amount
    reserved: Amount


@dataclass(frozen=True, slots=True)
class Standing:
    """The figures of a budget that lists show; see :class:`Budget`."""

    limit: Amount
    spent: Amount
    reserved: Amount
    remaining: Amount


@dataclass(frozen=True, slots=True)
class LedgerEntry:
    """One entry of the account's chain; ``event`` is the reserved or executed privacy event.

    ``cause``: why the account was frozen, for entries of that kind.
    """

    sequence: int
    at: datetime
    kind: str
    dataset_id: str
    job_id: str | None
    event: dict[str, Any] | None
    epsilon_after: float
    entry_hash: str
    previous_hash: str
    cause: Cause | None = None


@dataclass(frozen=True, slots=True)
class LedgerStep:
    """The part of an entry that a chart of many entries needs; see :class:`LedgerEntry`."""

    sequence: int
    at: datetime
    kind: str
    job_id: str | None
    epsilon_after: float


@dataclass(frozen=True, slots=True)
class EntryFilter:
    """The filter of a list of entries; None matches every value. It excludes ``until``."""

    kind: str | None = None
    since: datetime | None = None
    until: datetime | None = None

    def restrict(self, query: Select[Entry]) -> Select[Entry]:
        """Add the conditions to a query."""
        if self.kind is not None:
            query = query.where(Entry.kind == self.kind)
        if self.since is not None:
            query = query.where(Entry.at >= self.since)
        return query if self.until is None else query.where(Entry.at < self.until)


@dataclass(frozen=True, slots=True)
class Exposure:
    """The composed Rényi amounts (units of 2**-40 nats) of charges that opened the data."""

    amounts: tuple[int, ...]
    orders: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Guarantee:
    """The highest limit of the account so far, and its filters. It bounds all releases together.

    Each tranche is ``{"epsilon", "delta", "orders", "weights", "bounds"}``, bounds in units of 2**-40 nats.
    """

    epsilon: float
    delta: float
    tranches: tuple[dict[str, Any], ...]
    accountant: str
    sequence: int


def preview(session: ReadSession, dataset_id: str, charge: Charge, *, caller_id: str | None = None) -> Preview:
    """Price a charge against the cached balance.

    Raises:
        NotFound: the dataset has no account.
        MethodNotAllowedOnPrivateData, InvalidRequest, Internal: the charge has no price.
    """
    balance = locked_account.read_balance(locked_account.read_account(session, dataset_id))
    return admission.decide(balance, dataset_id, charge, caller_id).preview


def is_admissible(session: ReadSession, dataset_id: str, charge: Charge, *, caller_id: str | None = None) -> bool:
    """Whether a reservation of the charge would succeed now; faster than a preview of a refused charge."""
    balance = locked_account.read_balance(locked_account.read_account(session, dataset_id))
    return admission.is_admissible(balance, dataset_id, charge, caller_id)


def read_standings(session: ReadSession, dataset_ids: Collection[str], caller_id: str) -> dict[str, Standing]:
    """Map datasets to their standings, in one query; datasets without an account are left out.

    ``remaining`` respects the allocation of ``caller_id``, if there is one.
    """
    query = select(LedgerDataset.dataset_id, Account).join(Account, LedgerDataset.account_id == Account.id)
    balances = dict[str, Balance]()
    standings = dict[str, Standing]()
    for dataset_id, account in session.execute(query.where(LedgerDataset.dataset_id.in_(dataset_ids))):
        if account.id not in balances:
            balances[account.id] = locked_account.read_balance(account)
        standings[dataset_id] = _standing(balances[account.id], dataset_id, caller_id)
    return standings


def _standing(balance: Balance, dataset_id: str, caller_id: str | None) -> Standing:
    delta = balance.total.delta
    spent = admission.convert_at_limit(balance, balance.total.meter.spent)
    return Standing(
        limit=Amount(balance.limit(dataset_id), delta),
        spent=Amount(spent, delta),
        reserved=Amount(max(0.0, admission.compose(balance) - spent), delta),
        remaining=Amount(admission.find_largest_gaussian(balance, dataset_id, caller_id), delta),
    )


def read_budget(session: ReadSession, dataset_id: str, caller_id: str | None = None) -> Budget:
    """The budget of the dataset's account; ``remaining`` respects the allocation of ``caller_id``, if there is one."""
    account = locked_account.read_account(session, dataset_id)
    balance = locked_account.read_balance(account)
    return make_budget(account, balance, dataset_id, caller_id, _count_refused(session, account.id))


def make_budget(account: Account, balance: Balance, dataset_id: str, caller_id: str | None, refused: int) -> Budget:
    """Make the budget of a dataset from its account and the account's balance."""
    standing = _standing(balance, dataset_id, caller_id)
    return Budget(
        dataset_id=dataset_id,
        population=balance.population,
        accountant=ACCOUNTANT,
        relation=balance.relation,
        unit=balance.unit["kind"],
        slots=balance.datasets[dataset_id].slots,
        limit=standing.limit,
        spent=standing.spent,
        reserved=standing.reserved,
        remaining=standing.remaining,
        used_share=compute_used_share(balance),
        jobs=JobCounts(balance.settled, account.balance["unended"], refused),
        version=account.sequence,
        allocations=tuple(_allocation(*each) for each in balance.datasets[dataset_id].allocations.items()) or None,
    )


def _allocation(key_id: str, pot: Pot) -> Allocation:
    """The allocation, converted at the orders and weights of its filter."""
    spent, used = (_convert(pot, vector) for vector in (pot.meter.spent, pot.meter.used))
    return Allocation(
        key_id=key_id,
        limit=Amount(pot.epsilon, pot.delta),
        spent=Amount(spent, pot.delta),
        reserved=Amount(max(0.0, used - spent), pot.delta),
    )


def _convert(pot: Pot, vector: tuple[int, ...]) -> float:
    """The least epsilon at which the filter would admit ``vector``."""
    if not any(vector):
        return 0.0
    missing = min(used - bound for used, bound in zip(vector, pot.meter.bounds, strict=True))
    return max(0.0, pot.epsilon + missing * 2.0**-UNIT_BITS)


def read_limit(session: ReadSession, dataset_id: str) -> tuple[float, float]:
    """The dataset's limit: (epsilon, delta)."""
    balance = locked_account.read_balance(locked_account.read_account(session, dataset_id))
    return balance.limit(dataset_id), balance.total.delta


def list_datasets(session: ReadSession, dataset_id: str) -> list[str]:
    """The ids of the datasets that share the account of ``dataset_id``, itself included."""
    account = locked_account.read_account(session, dataset_id)
    return list(session.scalars(select(LedgerDataset.dataset_id).where(LedgerDataset.account_id == account.id)))


def list_entries(
    session: ReadSession,
    dataset_id: str,
    *,
    limit: int,
    before: int | None,
    criteria: EntryFilter | None = None,
) -> list[LedgerEntry]:
    """The account's entries that match, newest first, from the one below ``before`` on."""
    account = locked_account.read_account(session, dataset_id)
    query = select(Entry).where(Entry.account_id == account.id)
    if before is not None:
        query = query.where(Entry.sequence < before)
    if criteria is not None:
        query = criteria.restrict(query)
    return [_entry(row) for row in session.scalars(query.order_by(Entry.sequence.desc()).limit(limit))]


def list_steps(session: ReadSession, dataset_id: str, *, limit: int, until: datetime | None = None) -> list[LedgerStep]:
    """The account's newest ``limit`` entries before ``until``, oldest first, without bodies and hashes."""
    account = locked_account.read_account(session, dataset_id)
    query = select(Entry.sequence, Entry.at, Entry.kind, Entry.job_id, Entry.epsilon_after)
    query = query.where(Entry.account_id == account.id)
    if until is not None:
        query = query.where(Entry.at < until)
    rows = session.execute(query.order_by(Entry.sequence.desc()).limit(limit)).all()
    return [LedgerStep(*row) for row in reversed(rows)]


def read_exposure(session: ReadSession, dataset_id: str) -> Exposure:
    """Read the spent amounts of the dataset's account."""
    total = locked_account.read_balance(locked_account.read_account(session, dataset_id)).total
    return Exposure(total.meter.spent, total.orders)


def compute_guarantee(session: ReadSession, dataset_id: str) -> Guarantee:
    """The bound on all releases of the dataset's account together."""
    account = locked_account.read_account(session, dataset_id)
    balance = locked_account.read_balance(account)
    tranches = tuple(map(_tranche, balance.tranches))
    return Guarantee(balance.guaranteed_epsilon, balance.total.delta, tranches, ACCOUNTANT, account.sequence)


def _tranche(pot: Pot) -> dict[str, Any]:
    lists = {"orders": list(pot.orders), "weights": list(pot.weights), "bounds": list(pot.meter.bounds)}
    return {"epsilon": pot.epsilon, "delta": pot.delta, **lists}


def _entry(row: Entry) -> LedgerEntry:
    member = {RESERVED: "events", SETTLED: "executed"}.get(row.kind)
    events = row.body.get(member) if member else None  # missing in a body that cannot be read
    event = None if events is None else _event(events)
    cause = parse_cause(row.body) if row.kind == FROZEN else None
    return LedgerEntry(
        sequence=row.sequence,
        at=row.at,
        kind=row.kind,
        dataset_id=row.dataset_id,
        job_id=row.job_id,
        event=event,
        epsilon_after=row.epsilon_after,
        entry_hash=row.entry_hash,
        previous_hash=row.previous_hash,
        cause=cause,
    )


def _event(events: list[dict[str, Any]]) -> dict[str, Any]:
    return events[0] if len(events) == 1 else {"kind": "composed", "events": events}


def compute_used_share(balance: Balance) -> float:
    """The used share of the budget.

    At the main orders of all tranches, or at the best order of the current limit if that share is larger.
    """
    mains = [(pot.meter.used[pot.main], pot.meter.bounds[pot.main]) for pot in balance.tranches]
    of_tranches = _divide(sum(used for used, _ in mains), sum(bound for _, bound in mains))
    in_force = zip(balance.total.meter.used, balance.total.meter.bounds, strict=True)
    return max(of_tranches, min(_divide(used, bound) for used, bound in in_force))


def _divide(used: int, bound: int) -> float:
    return min(1.0, used / bound) if bound > 0 else 1.0


def _count_refused(session: ReadSession, account_id: str) -> int:
    query = select(func.sum(LedgerDataset.refused)).where(LedgerDataset.account_id == account_id)
    return session.scalar(query) or 0
