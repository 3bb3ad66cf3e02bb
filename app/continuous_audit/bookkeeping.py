"""Conversion of capitals to JSON and back."""

import hashlib
from collections.abc import Mapping
from typing import Any

from app.privacy.audit.continuous import ALTERNATIVES, Capital

Capitals = dict[str, Capital]


class Damaged(ValueError):
    """Stored capitals cannot be read."""


def compute_design(weights: Mapping[str, float]) -> str:
    """Compute the digest of streams, weights and alternatives. Capitals of another design have another meaning."""
    text = repr((sorted(weights.items()), ALTERNATIVES))
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def dump_capitals(capitals: Capitals) -> dict[str, Any]:
    """Convert capitals to JSON."""
    return {name: {"batches": each.batches, "bets": list(each.bets)} for name, each in capitals.items()}


def load_capitals(document: Mapping[str, Any], weights: Mapping[str, float]) -> Capitals:
    """Read capitals from JSON.

    Raises:
        Damaged: the document is not a map from known streams to capitals.
    """
    try:
        return {name: _load(document[name]) for name in document if weights[name]}
    except (KeyError, TypeError, ValueError, AttributeError):
        raise Damaged from None


def _load(stored: Any) -> Capital:
    if not isinstance(stored["batches"], int) or set(stored) != {"batches", "bets"}:
        raise ValueError
    return Capital(stored["batches"], tuple(float(each) for each in stored["bets"]))
