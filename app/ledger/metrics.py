"""Numbers of the ledger that an operator watches: of all accounts together, so that they name none."""

from collections.abc import Mapping
from typing import Final

from sqlalchemy import func, select

from app.db import ReadSession
from app.ledger.models import Account, LedgerDataset, Reservation

UNENDED: Final = ("reserved", "opened")


def reservations(session: ReadSession) -> Mapping[str, int]:
    """How many reservations are in each state that is not final."""
    query = select(Reservation.state, func.count()).where(Reservation.state.in_(UNENDED)).group_by(Reservation.state)
    counted = [(row[0], row[1]) for row in session.execute(query)]
    return dict.fromkeys(UNENDED, 0) | dict(counted)


def refusals(session: ReadSession) -> int:
    """How many jobs budgets have refused since the beginning."""
    return session.scalar(select(func.sum(LedgerDataset.refused))) or 0


def count_frozen(session: ReadSession) -> int:
    """How many accounts are frozen."""
    return session.scalar(select(func.count()).select_from(Account).where(Account.frozen_at.is_not(None))) or 0
