"""Planning: from an analyst's request to a plan with its price; it reads no rows."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from decimal import ROUND_CEILING, Context

from app.errors import InvalidRequest
from app.inference import registry
from app.inference.core.facts import DeclaredFacts
from app.inference.core.plan import MechanismPlan, PlanRequest
from app.ledger.entries.charge import Charge
from app.privacy.calibration import Unreachable, calibrate
from app.privacy.events import PrivacyEvent
from app.recently_used import LeastRecentlyUsed

PROBE_NOISE = 1.0
MARGIN = 0.05
"""Largest relative increase of a job's noise above its target's, so that the job fits into the account."""

BISECTIONS = 5
"""Steps of the search for the increase, to 1/32 of ``MARGIN``; each step prices a mechanism."""

_CACHED = 4096

Events = tuple[PrivacyEvent, ...]


@dataclass(frozen=True, slots=True)
class Wish:
    """A validated request.

    It has a mechanism in ``request`` or a target ``epsilon`` for the calibration; on public data it may have neither.
    """

    request: PlanRequest
    epsilon: float | None


class NoiseCache:
    """Calibrated noise multipliers by (epsilon, delta, events at :data:`PROBE_NOISE`); thread-safe.

    Plans with equal events at that noise may differ at another noise, because a method may choose more than the noise
    from it. Therefore a cached value is used only if the events at that value are equal too.
    """

    def __init__(self) -> None:
        self._results = LeastRecentlyUsed[tuple[float, float, Events], tuple[float, Events]](_CACHED)

    def noise(self, events: Callable[[float], Events], epsilon: float, delta: float) -> float:
        """Return the smallest noise multiplier whose cost alone is at most ``epsilon``.

        Raises:
            InvalidRequest: no noise multiplier reaches ``epsilon``.
        """
        key = (epsilon, delta, events(PROBE_NOISE))
        cached = self._results.get(key)
        if cached is not None and events(cached[0]) == cached[1]:
            return cached[0]
        try:
            noise = calibrate(events, epsilon, delta)
        except Unreachable as refusal:
            raise InvalidRequest.at("/privacy/epsilon", _suggest_target(refusal.least)) from None
        self._results.put(key, (noise, events(noise)))
        return noise


def _suggest_target(least: float) -> str:
    """Suggest a target epsilon of at least ``least``.

    ``least`` depends only on declared facts and the request.
    """
    if not math.isfinite(least):
        return "This job cannot reach any epsilon at the dataset's delta. Choose another method or other parameters."
    enough = Context(prec=2, rounding=ROUND_CEILING).create_decimal(least)
    return f"Use a number of at least {enough:f}: no amount of noise makes this job cost less at the dataset's delta."


def make_charge(plan: MechanismPlan) -> Charge:
    """Return the charge that the ledger prices."""
    return Charge(plan.events)


def make_plan(
    wish: Wish, facts: DeclaredFacts, delta: float, cache: NoiseCache, admits: Callable[[Charge], bool]
) -> MechanismPlan:
    """Make the plan for ``wish``, calibrated for the job alone.

    If the account does not admit this plan, but admits one with up to ``MARGIN`` more noise, the plan gets that noise.

    Args:
        wish: the request.
        facts: the declared facts of the table.
        delta: the delta of a target epsilon.
        cache: earlier results of the calibration.
        admits: whether the account would admit a charge; called for targets only.

    Raises:
        InvalidRequest: with a pointer to the faulty member of the request.
        MethodNotAllowedOnPrivateData: the method has no privacy, and the table is private.
    """
    method = registry.find_method(wish.request.method)
    if wish.epsilon is None or not method.private:
        return registry.make_plan(wish.request, facts)

    def plan_at(noise: float) -> MechanismPlan:
        return registry.make_plan(_with_noise(wish.request, noise), facts)

    least = cache.noise(lambda noise: plan_at(noise).events, wish.epsilon, delta)
    return plan_at(find_admitted(lambda noise: admits(make_charge(plan_at(noise))), least))


def _with_noise(request: PlanRequest, noise: float) -> PlanRequest:
    return PlanRequest(request.method, request.size, request.model, request.parameters, None, noise)


def find_admitted(is_admitted: Callable[[float], bool], least: float) -> float:
    """Return the smallest admitted noise from ``least`` to ``MARGIN`` above it, or else ``least``."""
    low, high = least, least * (1 + MARGIN)
    if is_admitted(low) or not is_admitted(high):
        return least
    for _ in range(BISECTIONS):
        middle = (low + high) / 2
        low, high = (low, middle) if is_admitted(middle) else (middle, high)
    return high
