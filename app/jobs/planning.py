"""From what an analyst asks for to a plan with its price: nothing here reads a row or changes anything."""

import math
import threading
from collections import OrderedDict
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

PROBE_NOISE = 1.0
HAIR = 0.05
"""How much more noise than its target needs a job may get to fit into what is left of an account."""

BISECTIONS = 5
"""The noise is found to a 32nd of the hair: each question prices a mechanism anew."""

_CACHED = 4096

Events = tuple[PrivacyEvent, ...]


@dataclass(frozen=True, slots=True)
class Wish:
    """A validated request: ``request.mechanism``, or a target ``epsilon`` to calibrate to, or (public only) neither."""

    request: PlanRequest
    epsilon: float | None


class NoiseCache:
    """Calibrated noise multipliers by (epsilon, delta, shape of the plan); safe to share between threads.

    Plans of one shape at :data:`PROBE_NOISE` may differ at other noises, where a method chooses more than the noise by
    it. So what was found is used again only for the very events that it was found for.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._found: OrderedDict[tuple[float, float, Events], tuple[float, Events]] = OrderedDict()

    def noise(self, events: Callable[[float], Events], epsilon: float, delta: float) -> float:
        """The least noise multiplier that costs at most ``epsilon`` alone.

        Raises:
            InvalidRequest: if no noise does.
        """
        key = (epsilon, delta, events(PROBE_NOISE))
        with self._lock:
            known = self._found.get(key)
        if known is not None and events(known[0]) == known[1]:
            return known[0]
        try:
            found = calibrate(events, epsilon, delta)
        except Unreachable as refusal:
            raise InvalidRequest.at("/privacy/epsilon", _advice(refusal.least)) from None
        with self._lock:
            self._found[key] = found, events(found)
            if len(self._found) > _CACHED:
                self._found.popitem(last=False)
        return found


def _advice(least: float) -> str:
    """What to ask for instead of a target below ``least``, which declared facts and the request decide alone."""
    if not math.isfinite(least):
        return "no amount of noise reaches this target"
    enough = Context(prec=2, rounding=ROUND_CEILING).create_decimal(least)
    return f"Use a number of at least {enough:f}: at the dataset's delta no amount of noise makes this job cost less."


def charge_of(plan: MechanismPlan) -> Charge:
    """What the ledger prices."""
    return Charge(plan.events)


def make_plan(
    wish: Wish, facts: DeclaredFacts, delta: float, cache: NoiseCache, admits: Callable[[Charge], bool]
) -> MechanismPlan:
    """The plan that carries out ``wish``: calibrated for the job alone, unless a hair more noise gets it admitted.

    ``delta`` is the one that a target epsilon is meant at. ``admits`` says whether the account would take a charge;
    it is asked about targets only.

    Raises:
        InvalidRequest: pointing at the member of the request that is at fault.
        MethodNotAllowedOnPrivateData: for a method without privacy on a private table.
    """
    method = registry.method(wish.request.method)
    registry.family(wish.request.model.family)
    if wish.epsilon is None or not method.private:
        return method.plan(wish.request, facts)

    def at(noise: float) -> MechanismPlan:
        return method.plan(_with_noise(wish.request, noise), facts)

    least = cache.noise(lambda noise: at(noise).events, wish.epsilon, delta)
    return at(_least_admitted(lambda noise: admits(charge_of(at(noise))), least))


def _with_noise(request: PlanRequest, noise: float) -> PlanRequest:
    return PlanRequest(request.method, request.size, request.model, request.parameters, None, noise)


def _least_admitted(admitted: Callable[[float], bool], least: float) -> float:
    """``least``, or the smallest noise up to ``HAIR`` above it that is admitted where ``least`` is not."""
    low, high = least, least * (1 + HAIR)
    if admitted(low) or not admitted(high):
        return least
    for _ in range(BISECTIONS):
        middle = (low + high) / 2
        low, high = (low, middle) if admitted(middle) else (middle, high)
    return high
