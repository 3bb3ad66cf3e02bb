"""Expected accuracies of quotes: one estimate at a time, and each only once."""

import hashlib
import threading
from typing import Final

import numpy as np
import structlog

from app.errors import RateLimited
from app.inference import expected_accuracy
from app.inference.core.facts import DeclaredFacts
from app.inference.core.plan import MechanismPlan
from app.inference.expected_accuracy import ExpectedAccuracy
from app.recently_used import LeastRecentlyUsed

NOT_ESTIMATED: Final = (
    "The expected accuracy is estimated for the default method only, and for models of at most "
    f"{expected_accuracy.LARGEST} parameters."
)
NOT_FINITE: Final = "The expected accuracy could not be estimated: the simulated run has no finite error."
_BUSY: Final = "Another accuracy is being estimated, and this takes about a second. Try again then."
_CACHED: Final = 1024


class Estimates:
    """Estimates by plan and declaration; thread-safe.

    An estimate takes about a second of a core. So a process makes one at a time, and refuses further ones.
    """

    def __init__(self) -> None:
        self._turn = threading.Lock()
        self._results = LeastRecentlyUsed[bytes, ExpectedAccuracy | str](_CACHED)

    def find(self, plan: MechanismPlan, facts: DeclaredFacts) -> ExpectedAccuracy | str:
        """Return the estimate, or a sentence that states why there is none.

        Raises:
            RateLimited: another estimate is being made.
        """
        if not expected_accuracy.is_estimated(plan, facts):
            return NOT_ESTIMATED
        key = _digest(plan, facts)
        known = self._results.get(key)
        if known is not None:
            return known
        if not self._turn.acquire(blocking=False):
            raise RateLimited(_BUSY)
        try:
            made = _estimate(plan, facts)
        finally:
            self._turn.release()
        self._results.put(key, made)
        return made


def _estimate(plan: MechanismPlan, facts: DeclaredFacts) -> ExpectedAccuracy | str:
    try:
        return expected_accuracy.estimate(plan, facts)
    except (ArithmeticError, np.linalg.LinAlgError):
        return NOT_FINITE
    except MemoryError:
        raise
    except Exception:  # noqa: BLE001  (a price is quoted without an estimate, too)
        structlog.get_logger().error("estimate failed", method=plan.method, family=plan.model.family)
        return NOT_FINITE


def _digest(plan: MechanismPlan, facts: DeclaredFacts) -> bytes:
    """Hash the parts of plan and declaration that decide an estimate; the number of points does not."""
    chosen = (plan.method, plan.model, sorted(plan.parameters.items()), plan.mechanism, plan.queries)
    declared = (facts.columns, facts.slots, dict(facts.unit))
    return hashlib.sha256(repr((chosen, declared)).encode()).digest()
