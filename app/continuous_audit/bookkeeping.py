"""Conversion of the capitals of an e-process to JSON and back.

:mod:`app.privacy.audit.continuous` explains streams, bets and capitals.
"""

import hashlib
import math
from collections.abc import Mapping
from typing import Any

from app.continuous_audit.alarm import is_sound
from app.continuous_audit.models import AuditState
from app.privacy.audit.continuous import ALTERNATIVES, Capital, compute_log_evidence

Capitals = dict[str, Capital]


class Damaged(ValueError):
    """Stored capitals cannot be read."""


def compute_design(weights: Mapping[str, float]) -> str:
    """Compute a digest of the streams, their weights and the alternatives.

    Stored capitals are valid only for the design under which they were computed.
    """
    text = repr((sorted(weights.items()), ALTERNATIVES))
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def dump_capitals(capitals: Capitals) -> dict[str, Any]:
    """Convert capitals to JSON."""
    return {name: {"batches": each.batches, "bets": list(each.bets)} for name, each in capitals.items()}


def read_capitals(state: AuditState, weights: Mapping[str, float]) -> tuple[Capitals, float]:
    """Read the capitals, and the log-evidence before them.

    After a change of the design, the evidence is kept and the bets start again.

    Raises:
        Damaged: the state is not sound, or contradicts its capitals.
    """
    if not is_sound(state):
        raise Damaged
    if state.design != compute_design(weights):
        return {}, state.log_evidence
    capitals = load_capitals(state.capitals, weights)
    if not math.isclose(state.carried + compute_log_evidence(capitals, weights), state.log_evidence, abs_tol=1e-6):
        raise Damaged
    return capitals, state.carried


def load_capitals(document: Mapping[str, Any], weights: Mapping[str, float]) -> Capitals:
    """Read capitals from JSON.

    Raises:
        Damaged: the document is not a map from known streams to capitals.
    """
    try:
        return {name: _load(document[name]) for name in document if weights[name]}
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError):
        raise Damaged from None


def _load(stored: Any) -> Capital:
    if not isinstance(stored["batches"], int) or set(stored) != {"batches", "bets"}:
        raise ValueError
    return Capital(stored["batches"], tuple(float(each) for each in stored["bets"]))
