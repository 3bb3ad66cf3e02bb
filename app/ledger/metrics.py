"""Metrics of the ledger for operators; sums over all accounts, so that they name no account."""

from collections.abc import Mapping
from typing import Final

from sqlalchemy import func, select

from app.db import ReadSession
from app.ledger.account.causes import count_causes
from app.ledger.models import LedgerDataset, Reservation

__all__ = ["count_causes", "count_refusals", "count_reservations"]

LIVE_STATES: Final = ("reserved", "opened")


def count_reservations(session: ReadSession) -> Mapping[str, int]:
    """The number of reservations in each state that is not final."""
    query = (
        select(Reservation.state, func.count()).where(Reservation.state.in_(LIVE_STATES)).group_by(Reservation.state)
    )
    counts = [(row[0], row[1]) for row in session.execute(query)]
    return dict.fromkeys(LIVE_STATES, 0) | dict(counts)


def count_refusals(session: ReadSession) -> int:
    """The number of jobs that budgets have refused since the start."""
    return session.scalar(select(func.sum(LedgerDataset.refused))) or 0
