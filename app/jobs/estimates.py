"""Expected accuracies of quotes: one estimate at a time, and each only once."""

import hashlib
import threading
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
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
_CACHED: Final = 1024
MOST_WAITING: Final = 3
"""Most callers who wait for an estimate. Each of them holds a thread and a connection of the database."""
WAIT_SECONDS: Final = 5.0


class Busy(RateLimited):
    """Other estimates are being made. An estimate takes about a second."""

    default = "Other accuracies are being estimated. Ask again after the seconds in Retry-After, or ask without one."

    def __init__(self) -> None:
        super().__init__()
        self.headers = {"Retry-After": "2"}


class Estimates:
    """Estimates by plan and declaration; thread-safe.

    An estimate takes about a second of a core, so a process makes one at a time. A few callers wait for their turn,
    first come, first served. A caller has one turn at a time, so no caller can hold all of them.
    """

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._callers = deque[str]()
        self._results = LeastRecentlyUsed[bytes, ExpectedAccuracy | str](_CACHED)

    def find(self, plan: MechanismPlan, facts: DeclaredFacts, caller_id: str) -> ExpectedAccuracy | str:
        """Return the estimate, or a sentence that states why there is none.

        Raises:
            RateLimited: the caller has a turn already, or other estimates take too long.
        """
        if not expected_accuracy.is_estimated(plan, facts):
            return NOT_ESTIMATED
        key = _digest(plan, facts)
        known = self._results.get(key)
        if known is not None:
            return known
        with self._take_turn(caller_id):
            made = self._results.get(key) or _estimate(plan, facts)
            self._results.put(key, made)
        return made

    @contextmanager
    def _take_turn(self, caller_id: str) -> Iterator[None]:
        """Wait for this caller's turn, and end it afterwards."""
        with self._changed:
            if caller_id in self._callers or len(self._callers) > MOST_WAITING:
                raise Busy
            self._callers.append(caller_id)
            if not self._changed.wait_for(lambda: self._callers[0] == caller_id, WAIT_SECONDS):
                self._callers.remove(caller_id)
                raise Busy
        try:
            yield
        finally:
            with self._changed:
                self._callers.popleft()
                self._changed.notify_all()


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
