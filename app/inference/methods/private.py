"""Common parts of methods behind a Gaussian mechanism: parameters, mechanism, events, warnings."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from app.errors import InvalidRequest
from app.inference.core.facts import DeclaredFacts
from app.inference.core.knobs import Knob, Parameter
from app.inference.core.model import Model
from app.inference.core.plan import Mechanism, MechanismPlan, PlannedQuery, PlanRequest
from app.inference.core.problems import make_problem
from app.inference.methods.requests import check_size, check_values
from app.inference.private_zone.mechanisms import GRID_BITS, MAX_SCALE
from app.privacy.events import AtomicEvent, GaussianEvent, PoissonSampledEvent

MAX_ITERATIONS = 100_000
NOISE = Parameter(
    "noise_multiplier", "number", 0.05, 1e6, "Standard deviation of the noise, divided by the clipping norm."
)
_STATED = frozenset({"iterations", "rounds", "sampling_rate"})


def make_iterations_parameter(default: int) -> Parameter:
    """Make the parameter of the number T of queries."""
    description = "Number of iterations; each asks one query."
    return Parameter("iterations", "integer", 1, MAX_ITERATIONS, description, default=default)


def make_rate_parameter(batch: int, least: float) -> Parameter:
    """Make the parameter of the sampling rate q; :func:`compute_usual_rate` takes the same numbers."""
    description = (
        f"Poisson sampling rate: the probability that a slot is in a batch. By default, a batch has {batch:,} slots on "
        f"average, and the rate is at least {least:g}."
    )
    return Parameter("sampling_rate", "number", 0, 1, description, exclusive_minimum=True)


def check_parameters(request: PlanRequest, knobs: Iterable[Knob]) -> None:
    """Raise :class:`InvalidRequest` for a parameter that the method or the mechanism does not allow.

    It may be unknown, out of range, or stated by the mechanism already.
    """
    check_values(request.parameters, knobs, stated=() if request.mechanism is None else _STATED)


def compute_usual_rate(slots: int, batch: int, least: float) -> float:
    """Compute the rate at which a batch has ``batch`` slots on average.

    It is clamped to ``least`` and 1.
    """
    return min(1.0, max(least, batch / slots))


def make_mechanism(request: PlanRequest, *, rate: Parameter, count: Parameter, usual: float) -> Mechanism:
    """Read the stated mechanism, or make one from the calibrated noise multiplier.

    The latter has the sampling rate ``usual`` unless the request has one.

    Raises:
        InvalidRequest: pointing into ``/privacy``.
    """
    if request.mechanism is not None:
        NOISE.check(request.mechanism.noise_multiplier, "/privacy/noise_multiplier")
        rate.check(request.mechanism.sampling_rate, "/privacy/sampling_rate")
        count.check(request.mechanism.iterations, "/privacy/iterations")
        return request.mechanism
    if request.noise_multiplier is None or not 0 < request.noise_multiplier <= MAX_SCALE:
        raise InvalidRequest.at("/privacy", "State a target epsilon that can be reached, or a mechanism.")
    parameters: dict[str, Any] = {rate.name: usual, count.name: count.default, **request.parameters}
    return Mechanism(request.noise_multiplier, float(parameters[rate.name]), int(parameters[count.name]))


def read_request(
    request: PlanRequest,
    facts: DeclaredFacts,
    knobs: Iterable[Knob],
    *,
    rate: Parameter,
    count: Parameter,
    usual: float,
) -> tuple[Model, Mechanism]:
    """Check a request; return its model, and its mechanism as :func:`make_mechanism`.

    Raises:
        InvalidRequest: pointing at the member of the request that is at fault.
    """
    check_size(request.size)
    model = make_problem(request.model, facts).model
    check_parameters(request, knobs)
    return model, make_mechanism(request, rate=rate, count=count, usual=usual)


def make_plan(
    method_id: str,
    request: PlanRequest,
    model: Model,
    mechanism: Mechanism,
    *,
    parameters: Mapping[str, Any],
    clipping: str,
    queries: tuple[PlannedQuery, ...],
    warnings: tuple[str, ...] = (),
) -> MechanismPlan:
    """Make the plan of a method with one step for each iteration of ``mechanism``."""
    return MechanismPlan(
        method=method_id,
        size=request.size,
        model=request.model,
        parameters=parameters,
        mechanism=mechanism,
        clipping=clipping,
        grid_bits=GRID_BITS,
        queries=queries,
        steps=mechanism.iterations,
        warnings=(*warn_of_size(request.size, model), *warnings),
    )


def make_event(mechanism: Mechanism) -> AtomicEvent:
    """Make the event of one query under ``mechanism``."""
    return make_sampled_event(mechanism.noise_multiplier, mechanism.sampling_rate)


def make_sampled_event(noise_multiplier: float, rate: float) -> AtomicEvent:
    """Make the event of one query on a Poisson subsample with sampling rate ``rate``."""
    event = GaussianEvent(noise_multiplier)
    return event if rate == 1 else PoissonSampledEvent(rate, event)


def shorten_plan(plan: MechanismPlan, model: Model) -> MechanismPlan:
    """Shorten ``plan`` to each query at most twice.

    Its size is at most the least exact size of ``model``.
    """
    return replace(shorten_queries(plan), size=min(plan.size, model.smallest_exact))


def shorten_queries(plan: MechanismPlan) -> MechanismPlan:
    """Shorten ``plan`` to each query at most twice."""
    queries = tuple(replace(query, count=min(query.count, 2)) for query in plan.queries)
    return replace(plan, queries=queries, steps=sum(query.count for query in queries))


def warn_of_size(size: int, model: Model) -> tuple[str, ...]:
    """Warn if ``size`` points cannot represent every posterior of ``model``."""
    if size >= model.smallest_exact:
        return ()
    return (f"fewer than {model.smallest_exact} points cannot represent this model's posterior exactly",)
