"""What methods behind a Gaussian mechanism share: their knobs, and the mechanism that a request comes down to."""

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from app.errors import InvalidRequest
from app.inference.core.knobs import Knob, Parameter
from app.inference.core.model import Model
from app.inference.core.plan import Mechanism, MechanismPlan, PlanRequest
from app.inference.methods.requests import check_values
from app.inference.private_zone.mechanisms import MAX_SCALE
from app.privacy.events import AtomicEvent, GaussianEvent, PoissonSampledEvent

MAX_ITERATIONS = 100_000
NOISE = Parameter("noise_multiplier", "number", 0.05, 1e6, "Noise standard deviation over the clip.")
_STATED = frozenset({"iterations", "rounds", "sampling_rate"})


def iterations(default: int) -> Parameter:
    """The knob of the number T of queries."""
    return Parameter("iterations", "integer", 1, MAX_ITERATIONS, "Iterations T.", default=default)


def sampling_rate(batch: int, least: float) -> Parameter:
    """The knob of the rate q; :func:`usual_rate` takes the same two numbers."""
    description = f"Poisson sampling rate q; the default expects {batch:,} slots a batch and is never below {least:g}."
    return Parameter("sampling_rate", "number", 0, 1, description, exclusive_minimum=True)


def check_parameters(request: PlanRequest, knobs: Iterable[Knob]) -> None:
    """Raise :class:`InvalidRequest` for an unknown parameter, one out of range, or one that the mechanism states."""
    check_values(request.parameters, knobs, stated=() if request.mechanism is None else _STATED)


def usual_rate(slots: int, batch: int, least: float) -> float:
    """The rate at which ``batch`` of the ``slots`` are expected, between ``least`` and 1."""
    return min(1.0, max(least, batch / slots))


def mechanism_of(request: PlanRequest, *, rate: Parameter, count: Parameter, usual: float) -> Mechanism:
    """The caller's own mechanism, or one of the calibrated noise, by default at the sampling rate ``usual``.

    Raises:
        InvalidRequest: pointing into ``/privacy``.
    """
    if request.mechanism is not None:
        NOISE.check(request.mechanism.noise_multiplier, "/privacy/noise_multiplier")
        rate.check(request.mechanism.sampling_rate, "/privacy/sampling_rate")
        count.check(request.mechanism.iterations, "/privacy/iterations")
        return request.mechanism
    if request.noise_multiplier is None or not 0 < request.noise_multiplier <= MAX_SCALE:
        raise InvalidRequest.at("/privacy", "name a target epsilon within reach, or a mechanism")
    parameters: dict[str, Any] = {rate.name: usual, count.name: count.default, **request.parameters}
    return Mechanism(request.noise_multiplier, float(parameters[rate.name]), int(parameters[count.name]))


def event_of(mechanism: Mechanism) -> AtomicEvent:
    """One query under ``mechanism``."""
    return sampled_event(mechanism.noise_multiplier, mechanism.sampling_rate)


def sampled_event(noise_multiplier: float, rate: float) -> AtomicEvent:
    """One query on a Poisson subsample of that rate."""
    event = GaussianEvent(noise_multiplier)
    return event if rate == 1 else PoissonSampledEvent(rate, event)


def shortened(plan: MechanismPlan, model: Model) -> MechanismPlan:
    """``plan`` with each query at most twice, and no more points than represent a posterior of ``model``."""
    queries = tuple(replace(query, count=min(query.count, 2)) for query in plan.queries)
    steps = sum(query.count for query in queries)
    return replace(plan, queries=queries, steps=steps, size=min(plan.size, model.smallest_exact))


def size_warnings(size: int, model: Model) -> tuple[str, ...]:
    """A warning below the least size that can represent a posterior of ``model``."""
    if size >= model.smallest_exact:
        return ()
    return (f"a pseudocoreset of fewer than {model.smallest_exact} points cannot represent this model's posterior",)
