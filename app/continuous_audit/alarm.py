"""The alarm of the continuous audit, as the API and runs check it.

It loads no numerical library, because the API loads them late.
"""

import math
from typing import Final

from sqlalchemy.orm import defer

from app.continuous_audit.models import ROW_ID, AuditState
from app.db import ReadSession
from app.errors import PrivacyAlarm
from app.privacy.audit.thresholds import compute_log_threshold

_DAMAGED: Final = (
    "The state of the continuous privacy audit cannot be read, so it is unknown whether there is an alarm. No private "
    "data is opened until an administrator acts. This call charged nothing."
)


def find_state(session: ReadSession) -> AuditState | None:
    """Find the state; None if it is missing or its numbers contradict each other."""
    try:
        state = session.get(AuditState, ROW_ID, options=[defer(AuditState.capitals)])  # most callers need no capitals
    except (ValueError, TypeError):  # a stored time has another form
        return None
    return state if state is not None and is_sound(state) else None


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
    """Whether the evidence has reached the threshold since the last fresh start."""
    return state.alarmed_at is not None or state.log_largest >= compute_log_threshold(state.resets)


def is_sound(state: AuditState) -> bool:
    """Whether the numbers of a state are possible."""
    numbers = (state.carried, state.log_evidence, state.log_largest, state.interval_seconds)
    counts = (state.resets, state.answers, state.batches, state.ticket)
    return (
        not state.damaged
        and all(isinstance(each, float) and math.isfinite(each) for each in numbers)
        and all(isinstance(each, int) and each >= 0 for each in counts)
        and state.log_largest >= max(0.0, state.log_evidence)
    )
