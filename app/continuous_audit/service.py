"""The state of the continuous audit: tickets for batches, their results, the alarm, and resets.

One batch is drawn at a time. A worker takes a ticket *before* it draws the answers, and only the worker with the newest
ticket may record answers. So all workers share one e-process, and the position of a batch in it does not depend on its
answers. If a worker dies with its batch, the evidence does not change.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from sqlalchemy import delete, func, or_, select, update
from sqlalchemy.orm import defer

from app.audit.journal import record_command
from app.audit.models import AuditEntry
from app.continuous_audit.bookkeeping import Capitals, Damaged, compute_design, dump_capitals, load_capitals
from app.continuous_audit.models import ROW_ID, AuditState
from app.db import ReadSession, WriteSession, now, read_time
from app.errors import PrivacyAlarm, StateConflict
from app.privacy.audit.continuous import Capital, compute_log_evidence, compute_log_threshold
from app.privacy.audit.laws import AnswerLaw, Array64

TICKET: Final = timedelta(minutes=2)
"""Time that a worker has to draw a batch. After it, another worker may take a ticket."""
RESET: Final = "reset-audit"
"""Name of the operator's command in the audit log."""
_RECENT: Final = 0.1
"""Weight of the newest interval in the moving average of intervals."""
_DAMAGED: Final = (
    "The state of the continuous privacy audit cannot be read, so it is unknown whether there is an alarm. No private "
    "data is opened until an administrator acts. This call charged nothing."
)
_NO_ALARM: Final = "There is no alarm, and the state of the audit is not damaged. A reset would only remove evidence."


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


def find_state(session: ReadSession) -> AuditState | None:
    """Find the state; None if it is missing, damaged, or contradicts itself."""
    try:
        state = session.get(AuditState, ROW_ID, options=[defer(AuditState.capitals)])  # most callers need no capitals
    except (ValueError, TypeError):  # a stored time is malformed
        return None
    return state if state is not None and _is_sound(state) else None


def check(session: ReadSession) -> None:
    """Check that private data may be opened.

    Raises:
        PrivacyAlarm: the audit has raised an alarm, or its state is damaged.
    """
    if "audit_is_quiet" in session.shared:
        return
    state = find_state(session)
    if state is None:
        raise PrivacyAlarm(_DAMAGED)
    if is_alarmed(state):
        raise PrivacyAlarm
    session.shared["audit_is_quiet"] = True


def is_alarmed(state: AuditState) -> bool:
    """Whether the evidence has reached the threshold since the last reset."""
    return state.alarmed_at is not None or state.log_largest >= compute_log_threshold(state.resets)


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
        capitals = _read_capitals(state, outcome.weights)
    except Damaged:
        state.damaged, state.ticket_until = True, None
        return False
    capital = capitals.get(outcome.stream, Capital()).bet(outcome.claim, outcome.answers, outcome.present)
    capitals[outcome.stream] = capital
    _write(state, capitals, outcome, read_time(tx))
    return state.alarmed_at is not None


def reset(tx: WriteSession, reason: str) -> int:
    """Start the e-process again at 1, with a doubled threshold.

    The audit log records it.

    Returns:
        The number of resets so far.

    Raises:
        StateConflict: there is neither an alarm nor damage.
    """
    state = find_state(tx)
    if state is not None and not is_alarmed(state):
        raise StateConflict(_NO_ALARM)
    earlier = tx.scalar(select(func.count()).where(AuditEntry.action == f"corevaultd {RESET}")) or 0
    tx.execute(delete(AuditState))
    tx.add(make_state(resets=earlier + 1))
    tx.flush()
    record_command(tx, RESET, reason=reason)
    return earlier + 1


def make_state(resets: int = 0) -> AuditState:
    """Make the state of an e-process that has not begun."""
    at = now()
    return AuditState(
        id=ROW_ID,
        resets=resets,
        started_at=at,
        design="",
        carried=0.0,
        capitals={},
        log_evidence=0.0,
        log_largest=0.0,
        answers=0,
        batches=0,
        interval_seconds=0.0,
        damaged=False,
        ticket=int(1000 * at.timestamp()),  # larger than all earlier ones, so that no old batch is recorded
    )


def _is_sound(state: AuditState) -> bool:
    numbers = (state.carried, state.log_evidence, state.log_largest, state.interval_seconds)
    counts = (state.resets, state.answers, state.batches, state.ticket)
    return (
        not state.damaged
        and all(isinstance(each, float) and math.isfinite(each) for each in numbers)
        and all(isinstance(each, int) and each >= 0 for each in counts)
        and state.log_largest >= max(0.0, state.log_evidence)
    )


def _read_capitals(state: AuditState, weights: Mapping[str, float]) -> Capitals:
    """Read the capitals. After a change of the design, the evidence is kept and the bets start again.

    Raises:
        Damaged: the state is not sound, or contradicts its capitals.
    """
    if not _is_sound(state):
        raise Damaged
    if state.design != compute_design(weights):
        state.design, state.carried = compute_design(weights), state.log_evidence
        return {}
    capitals = load_capitals(state.capitals, weights)
    if not math.isclose(state.carried + compute_log_evidence(capitals, weights), state.log_evidence, abs_tol=1e-6):
        raise Damaged
    return capitals


def _write(state: AuditState, capitals: Capitals, outcome: Outcome, at: datetime) -> None:
    state.capitals = dump_capitals(capitals)
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
