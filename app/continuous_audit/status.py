"""Figures of the continuous audit for metrics and the dashboard."""

import math
from dataclasses import dataclass, replace

from app.continuous_audit.alarm import find_state, is_alarmed
from app.continuous_audit.bookkeeping import Damaged, read_capitals
from app.db import ReadSession, now
from app.inference.audit.batches import ANSWERS, BATCHES_PER_TURN, CANARIES, list_weights
from app.privacy.audit.continuous import Capital, expect_batches
from app.privacy.audit.thresholds import compute_log_threshold


@dataclass(frozen=True, slots=True)
class Status:
    """Figures of the current e-process.

    Suppose that a defect of the size :data:`~app.privacy.audit.continuous.DEFECT` starts now. ``expected_seconds`` is
    the expected time until it raises the alarm. It is computed from the recent time between batches, or from the age of
    the last batch if that is longer.

    ``is_damaged``: the evidence cannot be read. ``is_unnoticed``: runs do not read the damaged part, so private data is
    opened until the next sweep or batch of a worker notices it.
    """

    answers: int
    evidence: float
    largest: float
    threshold: float
    has_alarm: bool
    is_damaged: bool
    age_seconds: float
    expected_seconds: float
    is_unnoticed: bool = False


UNKNOWN = Status(0, 0.0, 0.0, 0.0, has_alarm=False, is_damaged=True, age_seconds=0.0, expected_seconds=math.inf)


def read_status(session: ReadSession) -> Status:
    """Read the figures; :data:`UNKNOWN` if the state is damaged, with its alarm if this can be read."""
    state = find_state(session)
    if state is None:
        return UNKNOWN
    try:
        capitals, carried = read_capitals(state, list_weights())
    except Damaged:
        return replace(UNKNOWN, has_alarm=is_alarmed(state), is_unnoticed=not is_alarmed(state))
    missing = compute_log_threshold(state.resets) - carried
    batches = expect_batches(capitals.get(CANARIES, Capital()), list_weights()[CANARIES], missing, ANSWERS)
    age = max(0.0, (now() - (state.last_at or state.started_at)).total_seconds())
    return Status(
        state.answers,
        _raise_to_power(state.log_evidence),
        _raise_to_power(state.log_largest),
        _raise_to_power(compute_log_threshold(state.resets)),
        is_alarmed(state),
        is_damaged=False,
        age_seconds=age,
        expected_seconds=max(age, state.interval_seconds) * BATCHES_PER_TURN * batches,
    )


def _raise_to_power(logarithm: float) -> float:
    return math.exp(logarithm) if logarithm < 700 else math.inf
