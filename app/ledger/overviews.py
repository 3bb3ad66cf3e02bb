"""Overviews of many accounts in a fixed number of queries: balance, pace, and room for more of the last job.

Nothing is priced here. The room is computed from the amounts that the last reservation charged. The pace is computed
from the used share of the budget, which grows in proportion to equal jobs.
"""

from bisect import bisect_left
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from math import ceil

from sqlalchemy import func, select, tuple_

from app.db import ReadSession, now
from app.ledger.account import locked_account
from app.ledger.entries import admission
from app.ledger.entries.balance import RESERVED, Balance
from app.ledger.entries.charge import Pinned
from app.ledger.entries.meter import Pot
from app.ledger.models import Account, Entry, LedgerDataset
from app.ledger.views import Amount, Budget, compute_used_share, make_budget
from app.privacy.accounting import INFINITE

_LEAST_SPAN = timedelta(hours=1)
"""Shorter histories state no pace."""
_LONGEST = timedelta(days=100 * 365)
_ROUNDING = 1e-12
"""Relative margin for rounding errors."""


@dataclass(frozen=True, slots=True)
class Overview:
    """A dataset's budget, and how long it may last."""

    budget: Budget
    frozen_at: datetime | None
    more_like_last: int | None
    """Further jobs like the dataset's last one that fit; None if there was none."""
    lasts: timedelta | None
    """Time until the account is used up, at its pace since its first job; None if there is no pace."""


@dataclass(frozen=True, slots=True)
class AccountDatasets:
    """Visible datasets of one account, at least one; ``active`` ones are not deleted."""

    all: tuple[str, ...]
    active: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class AccountOverview:
    """An account and how long it may last.

    It is for a caller who sees some datasets of the account.

    Attributes:
        limit: the highest limit of these datasets: the account's, if one of them has no cap.
        remaining: the largest job that one of the active datasets admits.
        frozen_at: None if the account is not frozen.
        more_like_last: further jobs like the last one on an active dataset; None if there was none.
        lasts: time until the account is used up, at its pace since its first job; None if there is no pace.
        limits: the limit on epsilon of each dataset: the account's, or its cap where that is lower.
    """

    limit: Amount
    spent: Amount
    reserved: Amount
    remaining: Amount
    used_share: float
    frozen_at: datetime | None
    more_like_last: int | None
    lasts: timedelta | None
    limits: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class _Pace:
    first: datetime
    jobs: int


@dataclass(frozen=True, slots=True)
class _Reservations:
    """The reservations of one dataset: the sequence of the newest, the time of the first, and their number."""

    dataset_id: str
    account_id: str
    newest: int
    first: datetime
    jobs: int


def list_overviews(
    session: ReadSession, dataset_ids: Collection[str], caller_id: str | None = None
) -> dict[str, Overview]:
    """Map each dataset that has an account to its overview.

    ``caller_id``: whose allocation bounds ``remaining`` and the room, if there is one.
    """
    joined = select(LedgerDataset.dataset_id, Account).join(Account, Account.id == LedgerDataset.account_id)
    rows = session.execute(joined.where(LedgerDataset.dataset_id.in_(dataset_ids))).all()
    accounts = {account.id: account for _, account in rows}
    balances = {account.id: locked_account.read_balance(account) for account in accounts.values()}
    refused, reservations = _count_refused(session, accounts), _read_reservations(session, accounts)
    paces, last = _measure_paces(reservations), _read_last(session, reservations)
    return {
        dataset_id: Overview(
            budget := make_budget(account, balances[account.id], dataset_id, caller_id, refused.get(account.id, 0)),
            account.frozen_at,
            _count_room(balances[account.id], dataset_id, last.get(dataset_id), caller_id),
            _extrapolate(budget.used_share, paces.get(account.id)),
        )
        for dataset_id, account in rows
    }


def list_accounts(
    session: ReadSession, accounts: Collection[AccountDatasets], caller_id: str | None = None
) -> dict[str, AccountOverview]:
    """Map the first dataset of each account to the account's overview; ``caller_id`` as for :func:`list_overviews`."""
    shown = {each.all[0]: each for each in accounts}
    joined = select(LedgerDataset.dataset_id, Account).join(Account, Account.id == LedgerDataset.account_id)
    rows = session.execute(joined.where(LedgerDataset.dataset_id.in_(shown))).all()
    reservations = _read_reservations(session, [account.id for _, account in rows])
    active = {dataset_id for each in accounts for dataset_id in each.active}
    last = _read_last_of_accounts(session, [each for each in reservations if each.dataset_id in active])
    paces = _measure_paces(reservations)
    return {
        first: _overview_account(account, shown[first], caller_id, last.get(account.id), paces.get(account.id))
        for first, account in rows
    }


def _overview_account(
    account: Account, shown: AccountDatasets, caller_id: str | None, last: Entry | None, pace: _Pace | None
) -> AccountOverview:
    balance = locked_account.read_balance(account)
    delta, spent = balance.total.delta, admission.convert_at_limit(balance, balance.total.meter.spent)
    limits = {dataset_id: balance.limit(dataset_id) for dataset_id in shown.all}
    largest = admission.find_largest_on_any(balance, shown.active, caller_id) if shown.active else 0.0
    used_share = compute_used_share(balance)
    return AccountOverview(
        limit=Amount(max(limits.values()), delta),
        spent=Amount(spent, delta),
        reserved=Amount(max(0.0, admission.compose(balance) - spent), delta),
        remaining=Amount(largest, delta),
        used_share=used_share,
        frozen_at=account.frozen_at,
        more_like_last=None if last is None else _count_room(balance, last.dataset_id, _parse(last), caller_id),
        lasts=_extrapolate(used_share, pace),
        limits=limits,
    )


def _count_refused(session: ReadSession, account_ids: Collection[str]) -> Mapping[str, int]:
    query = select(LedgerDataset.account_id, func.sum(LedgerDataset.refused))
    query = query.where(LedgerDataset.account_id.in_(account_ids)).group_by(LedgerDataset.account_id)
    return {row[0]: row[1] for row in session.execute(query)}


def _read_reservations(session: ReadSession, account_ids: Collection[str]) -> list[_Reservations]:
    query = select(
        Entry.dataset_id, Entry.account_id, func.max(Entry.sequence), func.min(Entry.at), func.count()
    ).where(Entry.account_id.in_(account_ids), Entry.kind == RESERVED)
    return [_Reservations(*row) for row in session.execute(query.group_by(Entry.account_id, Entry.dataset_id))]


def _measure_paces(reservations: Collection[_Reservations]) -> Mapping[str, _Pace]:
    paces = dict[str, _Pace]()
    for each in reservations:
        known = paces.get(each.account_id, _Pace(each.first, 0))
        paces[each.account_id] = _Pace(min(known.first, each.first), known.jobs + each.jobs)
    return paces


def _read_last(session: ReadSession, reservations: Collection[_Reservations]) -> Mapping[str, Pinned | None]:
    """The amounts of each dataset's last reservation."""
    heads = [(each.account_id, each.newest) for each in reservations]
    query = select(Entry).where(tuple_(Entry.account_id, Entry.sequence).in_(heads))
    return {entry.dataset_id: _parse(entry) for entry in session.scalars(query)}


def _read_last_of_accounts(session: ReadSession, reservations: Collection[_Reservations]) -> Mapping[str, Entry]:
    """Each account's last reservation among these."""
    newest = dict[str, int]()
    for each in reservations:
        newest[each.account_id] = max(each.newest, newest.get(each.account_id, 0))
    query = select(Entry).where(tuple_(Entry.account_id, Entry.sequence).in_(list(newest.items())))
    return {entry.account_id: entry for entry in session.scalars(query)}


def _parse(entry: Entry) -> Pinned | None:
    try:
        return Pinned.from_json(entry.body["charge"])
    except (KeyError, TypeError, ValueError, AttributeError):  # the row was altered; verification reports it
        return None


def _count_room(balance: Balance, dataset_id: str, last: Pinned | None, caller_id: str | None) -> int | None:
    if last is None:
        return None
    if balance.frozen:
        return 0
    share, tranche = balance.datasets[dataset_id], balance.tranches[last.tranche]
    amounts = dict(zip(balance.total.orders, last.amounts, strict=True))
    amounts |= zip(tranche.orders, last.tranche_amounts, strict=True)
    pots = [] if share.cap is None else [share.cap]
    if caller_id is not None and caller_id in share.allocations:
        pots.append(share.allocations[caller_id])
    in_tranches = sum(_count_in_pot(pot, amounts) for pot in balance.tranches)
    return min(in_tranches, balance.total.meter.room(last.amounts), *(_count_in_pot(pot, amounts) for pot in pots))


def _count_in_pot(pot: Pot, amounts: Mapping[float, int]) -> int:
    """How many charges still fit into a pot with other orders."""
    return pot.meter.room([bound_amount(amounts, order) for order in pot.orders])


def bound_amount(amounts: Mapping[float, int], order: float) -> int:
    """The amount at ``order``, or a bound from above if ``amounts`` lacks it.

    ``(order - 1)`` times the divergence is convex in the order (van Erven & Harremoes 2014, Corollary 2), so the bound
    is between the neighbours. Thus a count of jobs is never too high.
    """
    if order in amounts:
        return amounts[order]
    orders = sorted(amounts)
    place = bisect_left(orders, order)
    if place in {0, len(orders)}:
        return INFINITE
    low, high = orders[place - 1], orders[place]
    share = (order - low) / (high - low)
    moments = ((1 - share) * (low - 1) * amounts[low], share * (high - 1) * amounts[high])
    return min(ceil(sum(moments) / (order - 1) * (1 + _ROUNDING)), INFINITE)


def _extrapolate(used_share: float, pace: _Pace | None) -> timedelta | None:
    if pace is None or pace.jobs < 2 or used_share <= 0:
        return None
    elapsed = now() - pace.first
    if elapsed < _LEAST_SPAN or elapsed * (1 - used_share) > _LONGEST * used_share:
        return None
    return elapsed * ((1 - used_share) / used_share)
