"""DP-PSVI: its plan, and the accuracy of a run."""

from typing import Any

import numpy as np
import pytest
from randomgen import ChaCha

from app.errors import InvalidRequest
from app.inference.core.plan import Mechanism, PlanRequest
from app.inference.core.problems import make_problem
from app.inference.post.laplace import Laplace, fit_laplace
from app.inference.private_zone.oracle import ClippedGaussianOracle
from app.inference.registry import compute_smallest_exact, find_method
from app.inference.runner import run_points
from app.privacy.events import GaussianEvent, PoissonSampledEvent, SelfComposedEvent
from support.divergence import compute_divergence
from support.table import Table
from tests.inference.support import SPEC, WIDTH, NullNoise, facts, table


def _request(**fields: Any) -> PlanRequest:
    return PlanRequest("dp-psvi", fields.pop("size", 20), SPEC, **fields)


def _events(slots: int, **fields: Any) -> tuple[Any, ...]:
    return find_method("dp-psvi").plan(_request(**fields), facts(slots)).events


def test_defaults_for_a_target_follow_from_the_slots() -> None:
    """W13: the default rate expects 2,500 slots and never falls below 0.02."""
    noise = GaussianEvent(9.0)
    assert _events(2000, noise_multiplier=9.0) == (SelfComposedEvent(noise, 1000),)
    assert _events(10_000, noise_multiplier=9.0) == (SelfComposedEvent(PoissonSampledEvent(0.25, noise), 1000),)
    assert _events(10**8, noise_multiplier=9.0) == (SelfComposedEvent(PoissonSampledEvent(0.02, noise), 1000),)


def test_parameters_override_the_defaults() -> None:
    parameters = {"iterations": 7, "sampling_rate": 1, "posterior_draws": 13}
    plan = find_method("dp-psvi").plan(_request(noise_multiplier=9.0, parameters=parameters), facts(10_000))
    assert plan.mechanism == Mechanism(9.0, 1.0, 7)
    assert plan.answer_length == 13


@pytest.mark.parametrize(
    ("fields", "pointer"),
    [
        ({}, "/privacy"),
        ({"noise_multiplier": 1e12}, "/privacy"),
        ({"mechanism": Mechanism(0.0, 0.1, 5)}, "/privacy/noise_multiplier"),
        ({"mechanism": Mechanism(float("nan"), 0.1, 5)}, "/privacy/noise_multiplier"),
        ({"mechanism": Mechanism(1.0, 0.0, 5)}, "/privacy/sampling_rate"),
        ({"mechanism": Mechanism(1.0, 1.1, 5)}, "/privacy/sampling_rate"),
        ({"mechanism": Mechanism(1.0, 0.1, 0)}, "/privacy/iterations"),
        ({"mechanism": Mechanism(1.0, 0.1, 10**9)}, "/privacy/iterations"),
        ({"mechanism": Mechanism(1.0, 0.1, 5), "parameters": {"iterations": 5}}, "/parameters/iterations"),
        ({"noise_multiplier": 1.0, "parameters": {"iterations": 10**9}}, "/parameters/iterations"),
        ({"noise_multiplier": 1.0, "parameters": {"iterations": 2.0}}, "/parameters/iterations"),
        ({"noise_multiplier": 1.0, "parameters": {"iterations": True}}, "/parameters/iterations"),
        ({"noise_multiplier": 1.0, "parameters": {"sampling_rate": 0}}, "/parameters/sampling_rate"),
        ({"noise_multiplier": 1.0, "parameters": {"posterior_draws": 1}}, "/parameters/posterior_draws"),
        ({"noise_multiplier": 1.0, "parameters": {"posterior_draws": "9"}}, "/parameters/posterior_draws"),
    ],
)
def test_a_faulty_request_is_refused_with_its_pointer(fields: dict[str, Any], pointer: str) -> None:
    with pytest.raises(InvalidRequest) as caught:
        find_method("dp-psvi").plan(_request(**fields), facts(100))
    assert caught.value.faults[0].pointer == pointer


def test_a_size_below_the_smallest_exact_one_gives_a_warning() -> None:
    exact = compute_smallest_exact(SPEC, facts(10))
    assert exact == WIDTH + 1
    for size, warned in ((exact - 1, True), (exact, False)):
        plan = find_method("dp-psvi").plan(_request(size=size, noise_multiplier=1.0), facts(10))
        assert bool(plan.warnings) is warned


def _full_posterior(source: Table) -> Laplace:
    columns = source.columns
    x = np.stack(
        [
            (columns["age"] - 50) / 30,
            columns["hours"] / 50 - 1,
            columns["colour"] == 1,
            columns["colour"] == 2,
            2 * columns["smoker"] - 1,
            np.ones(source.slots),
        ],
        axis=1,
    )
    model, _, prior = make_problem(SPEC, facts(source.slots))
    rows = np.asarray(model.fold(x, columns["ill"]))
    return fit_laplace(model, rows, columns["_present"].astype(float), prior, np.zeros(WIDTH))


class _RoundedNoise:
    """A noise source of floating-point noise with the planned scale."""

    def __init__(self, seed: int) -> None:
        self._rng = np.random.default_rng(seed)

    def perturb(self, sums: Any, scale: float) -> Any:
        return sums + np.rint(scale * self._rng.standard_normal(len(sums))).astype(np.int64)


@pytest.mark.long
@pytest.mark.parametrize(
    ("noise", "schedule", "iterations", "bound"),
    [
        (NullNoise(), "joint", 400, 0.1),
        (_RoundedNoise(0), "joint", 400, 0.2),
        (_RoundedNoise(0), "incremental", 1000, 0.2),
    ],
)
def test_a_run_approximates_the_full_posterior(noise: Any, schedule: str, iterations: int, bound: float) -> None:
    """The KL to the full posterior is a small share of the prior's; usually it is below 0.05.

    The noise is that of an epsilon of about 1.

    The same draws each time: one run in ten of the incremental schedule ends far away.
    """
    sampling = np.random.Generator(ChaCha(key=2))
    source = table(4000, slots=4200)
    parameters = {"posterior_draws": 40, "schedule": schedule}
    request = _request(mechanism=Mechanism(0.6 * iterations**0.5, 0.2, iterations), parameters=parameters)
    plan = find_method("dp-psvi").plan(request, facts(4200))
    logistic, _, prior_of_it = make_problem(SPEC, facts(4200))
    asked = ClippedGaussianOracle(logistic, plan, facts(4200), source, noise=noise, sampling=sampling)
    points = run_points(plan, facts(4200), asked, np.random.default_rng(2), lambda _: None)
    assert points.y is not None
    rows = np.asarray(logistic.fold(points.u, points.y))
    found = fit_laplace(logistic, rows, points.weight, prior_of_it, np.zeros(WIDTH))
    exact = _full_posterior(source)
    prior = Laplace(np.zeros(WIDTH), np.eye(WIDTH))
    assert compute_divergence(found, exact) < bound * compute_divergence(prior, exact)
