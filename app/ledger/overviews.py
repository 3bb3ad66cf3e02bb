"""Overviews of many accounts in a fixed number of queries: balance, pace, and room for more of the last job.

Nothing is priced here. The room is computed from the amounts that the last reservation charged. The pace is computed
from the used share of the budget, which grows in proportion to equal jobs.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlalchemy import func, select, tuple_

from app.db import ReadSession, now
from app.ledger.account import locked_account
from app.ledger.entries.balance import RESERVED, Balance
from app.ledger.entries.charge import Pinned
from app.ledger.models import Account, Entry, LedgerDataset
from app.ledger.views import Budget, make_budget

_LEAST_SPAN = timedelta(hours=1)
"""Shorter histories state no pace."""
_LONGEST = timedelta(days=100 * 365)


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
    tranche, share = balance.tranches[last.tranche], balance.datasets[dataset_id]
    alike = [pot for pot in balance.tranches if pot.orders == tranche.orders]
    rooms = [sum(pot.meter.room(last.tranche_amounts) for pot in alike), balance.total.meter.room(last.amounts)]
    if share.cap is not None:
        rooms.append(share.cap.meter.room(last.cap_amounts))
    if caller_id is not None and last.caller_id == caller_id and caller_id in share.allocations:
        rooms.append(share.allocations[caller_id].meter.room(last.caller_amounts))
    return min(rooms)


def _extrapolate(used_share: float, pace: _Pace | None) -> timedelta | None:
    if pace is None or pace.jobs < 2 or used_share <= 0:
        return None
    elapsed = now() - pace.first
    if elapsed < _LEAST_SPAN or elapsed * (1 - used_share) > _LONGEST * used_share:
        return None
    return elapsed * ((1 - used_share) / used_share)
