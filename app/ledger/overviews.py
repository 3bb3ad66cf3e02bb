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
from app.ledger.entries.balance import RESERVED, Balance
from app.ledger.entries.charge import Pinned
from app.ledger.entries.meter import Pot
from app.ledger.models import Account, Entry, LedgerDataset
from app.ledger.views import Budget, make_budget
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
class _Pace:
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
    refused, paces, last = _count_refused(session, accounts), _read_paces(session, accounts), _read_last(session, rows)
    return {
        dataset_id: Overview(
            budget := make_budget(account, balances[account.id], dataset_id, caller_id, refused.get(account.id, 0)),
            account.frozen_at,
            _count_room(balances[account.id], dataset_id, last.get(dataset_id), caller_id),
            _extrapolate(budget.used_share, paces.get(account.id)),
        )
        for dataset_id, account in rows
    }


def _count_refused(session: ReadSession, account_ids: Collection[str]) -> Mapping[str, int]:
    query = select(LedgerDataset.account_id, func.sum(LedgerDataset.refused))
    query = query.where(LedgerDataset.account_id.in_(account_ids)).group_by(LedgerDataset.account_id)
    return {row[0]: row[1] for row in session.execute(query)}


def _read_paces(session: ReadSession, account_ids: Collection[str]) -> Mapping[str, _Pace]:
    query = select(Entry.account_id, func.min(Entry.at), func.count())
    query = query.where(Entry.account_id.in_(account_ids), Entry.kind == RESERVED).group_by(Entry.account_id)
    return {account_id: _Pace(first, jobs) for account_id, first, jobs in session.execute(query)}


def _read_last(session: ReadSession, rows: Collection[tuple[str, Account]]) -> Mapping[str, Pinned | None]:
    """The amounts of each dataset's last reservation."""
    top = select(Entry.account_id, func.max(Entry.sequence))
    top = top.where(Entry.account_id.in_({account.id for _, account in rows}), Entry.kind == RESERVED)
    heads = [tuple(each) for each in session.execute(top.group_by(Entry.account_id, Entry.dataset_id))]
    query = select(Entry).where(tuple_(Entry.account_id, Entry.sequence).in_(heads))
    return {entry.dataset_id: _parse(entry) for entry in session.scalars(query)}


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
