"""The evidence of the continuous audit: tickets for batches, and their results.

One batch is drawn at a time. A worker takes a ticket *before* it draws the answers, and only the worker with the newest
ticket may record answers. So all workers share one e-process, and the position of a batch in it does not depend on its
answers. If a worker dies with its batch, the evidence does not change.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from sqlalchemy import or_, update

from app.continuous_audit.bookkeeping import Capitals, Damaged, compute_design, dump_capitals, read_capitals
from app.continuous_audit.models import ROW_ID, AuditState
from app.db import WriteSession, read_time
from app.privacy.audit.continuous import Capital, compute_log_evidence
from app.privacy.audit.laws import AnswerLaw, Array64
from app.privacy.audit.thresholds import compute_log_threshold

TICKET: Final = timedelta(minutes=2)
"""How long a worker may take to draw a batch. Later, another worker may take a ticket."""
_RECENT: Final = 0.1
"""Share of the newest interval in the recent mean."""


@dataclass(frozen=True, slots=True)
class Ticket:
    """The right to draw one batch. ``token`` is the fencing token, and ``number`` counts batches."""

    token: int
    number: int


@dataclass(frozen=True, slots=True)
class Outcome:
    """The aligned answers of one batch of ``stream``, and their claimed distribution.

    ``answers`` and ``present`` are ``(n,)``; ``present`` states whether the canary was in. ``weights`` has the weights
    of all streams.
    """

    stream: str
    claim: AnswerLaw
    answers: Array64
    present: Array64
    weights: Mapping[str, float]


def take_ticket(tx: WriteSession) -> Ticket | None:
    """Take the ticket for the next batch.

    The result is None while another worker has a ticket, and after an alarm or damage.
    """
    at = read_time(tx)
    free = or_(
        AuditState.ticket_until.is_(None), AuditState.ticket_until < at, AuditState.ticket_until > at + 2 * TICKET
    )
    taken = (
        update(AuditState)
        .where(AuditState.id == ROW_ID, free, AuditState.alarmed_at.is_(None), AuditState.damaged.is_(False))
        .values(ticket=AuditState.ticket + 1, ticket_until=at + TICKET)
        .returning(AuditState.ticket, AuditState.batches)
    )
    row = tx.execute(taken, execution_options={"synchronize_session": False}).one_or_none()
    return None if row is None else Ticket(row[0], row[1])


def record_batch(tx: WriteSession, ticket: Ticket, outcome: Outcome) -> bool:
    """Add a batch to the evidence, and return whether this raises the alarm.

    Without the newest ticket, nothing is recorded.
    """
    state = tx.get(AuditState, ROW_ID, with_for_update=True, populate_existing=True)
    if state is None or state.ticket != ticket.token or state.ticket_until is None:
        return False
    try:
        capitals, state.carried = read_capitals(state, outcome.weights)
    except Damaged:
        state.damaged, state.ticket_until = True, None
        return False
    capital = capitals.get(outcome.stream, Capital()).bet(outcome.claim, outcome.answers, outcome.present)
    capitals[outcome.stream] = capital
    _write(state, capitals, outcome, read_time(tx))
    return state.alarmed_at is not None


def _write(state: AuditState, capitals: Capitals, outcome: Outcome, at: datetime) -> None:
    state.design, state.capitals = compute_design(outcome.weights), dump_capitals(capitals)
    state.log_evidence = state.carried + compute_log_evidence(capitals, outcome.weights)
    state.log_largest = max(state.log_largest, state.log_evidence)
    state.answers += len(outcome.answers)
    state.batches += 1
    if state.last_at is not None:
        interval = max(0.0, (at - state.last_at).total_seconds())
        is_first = state.interval_seconds == 0
        state.interval_seconds = interval if is_first else _mix(state.interval_seconds, interval)
    state.last_at, state.ticket_until = at, None
    if state.log_largest >= compute_log_threshold(state.resets):
        state.alarmed_at = at


def _mix(mean: float, newest: float) -> float:
    return (1 - _RECENT) * mean + _RECENT * newest
