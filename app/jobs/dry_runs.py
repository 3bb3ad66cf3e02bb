"""Dry runs of requested plans, before a price is quoted or reserved."""

import hashlib
from typing import Final

import structlog

from app.errors import InvalidRequest
from app.inference import dry_run, registry
from app.inference.core.facts import DeclaredFacts
from app.inference.core.plan import MechanismPlan
from app.recently_used import LeastRecentlyUsed

IMPOSSIBLE: Final = (
    "The method cannot fit this model to the declared columns. Choose other features, another size or another method."
)
_CACHED: Final = 4096


class DryRuns:
    """Results of dry runs by the structure of plan and declaration; thread-safe."""

    def __init__(self) -> None:
        self._results = LeastRecentlyUsed[bytes, bool](_CACHED)

    def check(self, plan: MechanismPlan, facts: DeclaredFacts) -> None:
        """Dry-run ``plan`` without its last step, unless its model is large.

        A worker dry-runs every plan completely before it opens the reservation.

        Raises:
            InvalidRequest: at ``/model``, for a plan that fails in every run.
        """
        if not registry.find_method(plan.method).private or dry_run.is_large(plan, facts):
            return
        key = _structure(plan, facts)
        possible = self._results.get(key)
        if possible is None:
            possible = _is_possible(plan, facts)
            self._results.put(key, possible)
        if not possible:
            raise InvalidRequest.at("/model", IMPOSSIBLE)


def _is_possible(plan: MechanismPlan, facts: DeclaredFacts) -> bool:
    try:
        dry_run.carry_out(plan, facts, to_the_end=False)
    except MemoryError:
        raise
    except Exception:  # noqa: BLE001  (any error here follows from the request and would fail every run)
        structlog.get_logger().error("dry run failed", method=plan.method, family=plan.model.family)
        return False
    return True


def _structure(plan: MechanismPlan, facts: DeclaredFacts) -> bytes:
    """Hash the parts of plan and declaration that decide array shapes.

    The noise is left out, because each request calibrates it again.
    """
    queries = [(query.kind, query.length, query.count, query.event.sampling_rate) for query in plan.queries]
    chosen = (plan.method, plan.size, plan.model, sorted(plan.parameters.items()), queries)
    declared = (facts.columns, facts.slots, dict(facts.unit))
    return hashlib.sha256(repr((chosen, declared)).encode()).digest()
