"""The evidence of the continuous audit: tickets for batches, and their results.

One batch is drawn at a time. A worker takes a ticket *before* it draws the answers, and only the worker with the newest
ticket may record answers. So all workers share one e-process, and the position of a batch in it does not depend on its
answers. After an error, a stream loses its bets. If a worker dies with its batch, the evidence does not change.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from sqlalchemy import or_, update

from app.continuous_audit.bookkeeping import Damaged, compute_design, dump_capitals, read_capitals
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


def take_ticket(tx: WriteSession) -> int | None:
    """Take the ticket for the next batch: a fencing token, which is also the number of the batch.

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
        .returning(AuditState.ticket)
    )
    return tx.execute(taken, execution_options={"synchronize_session": False}).scalar_one_or_none()


def record_batch(tx: WriteSession, ticket: int, outcome: Outcome) -> bool:
    """Add a batch to the evidence, and return whether this raises the alarm.

    Without the newest ticket, nothing is recorded.
    """
    state = _change_capital(
        tx,
        ticket,
        outcome.stream,
        outcome.weights,
        lambda capital: capital.bet(outcome.claim, outcome.answers, outcome.present),
    )
    if state is None:
        return False
    at = read_time(tx)
    state.answers += len(outcome.answers)
    state.batches += 1
    if state.last_at is not None:
        interval = max(0.0, (at - state.last_at).total_seconds())
        is_first = state.interval_seconds == 0
        state.interval_seconds = interval if is_first else _mix(state.interval_seconds, interval)
    state.last_at = at
    if state.log_largest >= compute_log_threshold(state.resets):
        state.alarmed_at = at
    return state.alarmed_at is not None


def forfeit_batch(tx: WriteSession, ticket: int, stream: str, weights: Mapping[str, float]) -> None:
    """Give a ticket back after an error, which may depend on answers: ``stream`` loses its bets.

    The batch is in no count, so the age of the last batch shows an audit that always fails.
    """
    _change_capital(tx, ticket, stream, weights, Capital.forfeit)


def mark_damage(tx: WriteSession, weights: Mapping[str, float]) -> None:
    """Mark the state as damaged if its capitals cannot be read: from now on, no private data is opened."""
    state = tx.get(AuditState, ROW_ID, with_for_update=True, populate_existing=True)
    if state is not None:
        try:
            read_capitals(state, weights)
        except Damaged:
            state.damaged = True


def _change_capital(
    tx: WriteSession, ticket: int, stream: str, weights: Mapping[str, float], change: Callable[[Capital], Capital]
) -> AuditState | None:
    """Change the capital of one stream, and take the ticket back; None without a valid ticket or after damage."""
    state = tx.get(AuditState, ROW_ID, with_for_update=True, populate_existing=True)
    if state is None or state.ticket != ticket or state.ticket_until is None:
        return None
    state.ticket_until = None
    try:
        capitals, state.carried = read_capitals(state, weights)
    except Damaged:
        state.damaged = True
        return None
    capitals[stream] = change(capitals.get(stream, Capital()))
    state.design, state.capitals = compute_design(weights), dump_capitals(capitals)
    state.log_evidence = state.carried + compute_log_evidence(capitals, weights)
    state.log_largest = max(state.log_largest, state.log_evidence)
    return state


def _mix(mean: float, newest: float) -> float:
    return (1 - _RECENT) * mean + _RECENT * newest
