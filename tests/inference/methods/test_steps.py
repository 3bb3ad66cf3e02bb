"""Schedules of steps: their lengths, and the published ones in PSVI, in DP-PSVI and in the greedy methods."""

from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from app.errors import InvalidRequest
from app.inference.core.plan import Mechanism, MechanismPlan, PlanRequest
from app.inference.core.problems import make_problem
from app.inference.methods.dp_psvi.method import DpPsvi
from app.inference.methods.dp_psvi.state import State
from app.inference.methods.dp_psvi.updates import update_points, update_weights
from app.inference.methods.psvi.descent import LinearScale, descend, make_step_geometry
from app.inference.methods.psvi.greedy import ALL, NEWEST, iterate_rounds
from app.inference.methods.psvi.residuals import Points
from app.inference.methods.psvi.residuals.choice import make_residuals
from app.inference.methods.public_table import PublicTable
from app.inference.methods.steps import COSINE, GRADIENT, PUBLISHED, Schedule
from app.inference.post.optimisers import start_adam
from app.inference.registry import find_method
from app.inference.runner import run_public
from tests.inference.methods.test_public_methods import PUBLIC, _divergence, _run
from tests.inference.populations import SPECS, population
from tests.inference.support import SPEC, facts, oracle, table

GAUSSIAN = SPECS[6]


def test_published_lengths_decay_as_the_inverse_of_the_iteration() -> None:
    for kind in (PUBLISHED, GRADIENT):
        assert [Schedule(kind, 0.6, 3).length(done) for done in range(3)] == pytest.approx([0.6, 0.3, 0.2])
    assert Schedule(COSINE, 0.6, 2).length(1) == pytest.approx(0.3)


def test_only_gradient_steps_have_the_length_of_the_gradient() -> None:
    gradient = np.array([30.0, -0.2, 0.0])
    turned = {kind: Schedule(kind, 1.0, 5).turn(start_adam((3,)), gradient.copy())[1] for kind in (GRADIENT, PUBLISHED)}
    np.testing.assert_array_equal(turned[GRADIENT], gradient)
    np.testing.assert_allclose(turned[PUBLISHED], np.sign(gradient))


def test_a_gradient_step_is_that_of_algorithm_1() -> None:
    """One step in units of columns: ``u - a s^2 grad`` and ``max(0, w - a grad)``, with exact gradients."""
    problem = make_problem(GAUSSIAN, PUBLIC)
    rows = PublicTable(population(), problem.design)
    residuals = make_residuals(problem, rows, np.random.default_rng(0), draws=10, minibatch=10)
    x, _ = rows.read(np.arange(3))
    start = Points(x.astype(float), np.zeros(3), np.array([0.001, 900.0, 2000.0]))
    geometry, rate = make_step_geometry(rows), 1e-3
    moved = descend(residuals, start, geometry, LinearScale(1.0), Schedule(GRADIENT, rate, 1), moving=slice(None))
    residual = residuals.at(start)
    by_u, _ = residual.moves(start.u, start.y)
    np.testing.assert_allclose(
        moved.u, start.u + rate * np.square(geometry.unit) * start.weights[:, None] * by_u, rtol=1e-12
    )
    np.testing.assert_allclose(moved.weights, np.maximum(0, start.weights + rate * residual.own), rtol=1e-12)
    assert not np.allclose(moved.u, start.u)


def test_published_psvi_starts_at_the_weight_of_the_table() -> None:
    """With a tiny step, weights stay where they start: at N/M, not far below it."""
    points = _run(population(), PUBLIC, SPECS[0], "psvi", 8, steps="published", learning_rate=1e-9, iterations=1)
    np.testing.assert_allclose(points.weight, 4000 / 8, rtol=1e-6)
    ours = _run(population(), PUBLIC, SPECS[0], "psvi", 8, learning_rate=1e-9, iterations=1)
    assert ours.weight.max() < 0.01 * 4000 / 8


def test_published_psvi_approaches_the_posterior() -> None:
    example = population(), PUBLIC, SPECS[0]
    found, prior = _divergence(*example, _run(*example, "psvi", 40, steps="published", iterations=1000))
    assert found < 0.02 * prior


@pytest.mark.parametrize("steps", [PUBLISHED, GRADIENT])
def test_an_absurd_published_step_still_gives_finite_points(steps: str) -> None:
    points = _run(population(), PUBLIC, SPECS[0], "psvi", 5, steps=steps, iterations=20, learning_rate=10.0)
    assert np.isfinite(points.u).all()
    assert np.isfinite(points.weight).all()
    assert points.weight.min() >= 0


def _plan(size: int = 6, iterations: int = 12, **parameters: Any) -> MechanismPlan:
    chosen = {"posterior_draws": 20, **parameters}
    return DpPsvi().plan(PlanRequest("dp-psvi", size, SPEC, chosen, Mechanism(1.0, 0.5, iterations)), facts(500))


def _states(plan: MechanismPlan) -> list[State]:
    asked, rng = oracle(table(480, slots=500), plan), np.random.default_rng(3)
    states = [DpPsvi().init(plan, facts(500), rng)]
    for _ in range(plan.steps):
        states.append(DpPsvi().step(rng, states[-1], asked))
    assert asked.executed == plan.events
    return states


def test_published_steps_do_not_change_queries_and_price() -> None:
    """W4: the steps are post-processing. The certificate's rule of clipping changes."""
    usual, published = _plan(), _plan(steps="published")
    assert usual.queries == published.queries
    assert "C is 3 times the median" in usual.clipping
    assert "C is 1 times the median" in published.clipping
    assert "steps" not in usual.parameters


def test_first_published_steps_have_the_stated_lengths() -> None:
    """Adam's first step has the length of the rate in each coordinate; the second is at most half as long."""
    states = _states(_plan(steps="published", learning_rate=0.5))
    np.testing.assert_allclose(states[0].weights, 500 / 6)
    first, second = (np.abs(after.weights - before.weights) for before, after in pairwise(states[:3]))
    np.testing.assert_allclose(first, 0.5, rtol=1e-6)
    assert second.max() < 0.25 * 1.01
    moved = np.abs(states[1].u - states[0].u)
    np.testing.assert_allclose(moved[:, :-1], 0.5, rtol=1e-6)
    np.testing.assert_array_equal(moved[:, -1], 0)


def test_absurd_gradient_steps_of_a_private_run_end_with_a_finite_release() -> None:
    """W14: once the charge is made, no step fails, however long it is."""
    states = _states(_plan(steps="gradient", learning_rate=100.0, iterations=30))
    assert any(np.any(state.weights == 0) for state in states)
    released = DpPsvi().finish(states[-1])
    assert np.isfinite(released.u).all()
    assert np.isfinite(released.weight).all()
    assert released.reliability is not None
    assert not released.reliability.is_calibrated


@pytest.mark.parametrize("steps", [PUBLISHED, GRADIENT])
def test_gradients_that_overflow_leave_a_private_run_finite(steps: str) -> None:
    state = _states(_plan(steps=steps, iterations=1))[1]
    gradient = np.array([np.nan, np.inf, -np.inf, 0.0, 1e300, -1e300])
    weights, _ = update_weights(state, gradient.copy())
    assert np.isfinite(weights).all()
    u, _ = update_points(state, np.outer(gradient, np.ones(state.u.shape[1])))
    assert np.isfinite(u).all()


@pytest.mark.parametrize("parameters", [{"learning_rate": 0.5}, {"learning_rate": 0.5, "steps": "cosine"}])
def test_a_learning_rate_of_cosine_steps_is_refused(parameters: dict[str, Any]) -> None:
    with pytest.raises(InvalidRequest) as caught:
        _plan(**parameters)
    assert caught.value.faults[0].pointer == "/parameters/learning_rate"


@pytest.mark.parametrize("value", ["later", 3, None])
@pytest.mark.parametrize("method_id", ["psvi", "dp-psvi"])
def test_unknown_steps_are_refused(method_id: str, value: object) -> None:
    method = find_method(method_id)
    declared, mechanism = (facts(500), Mechanism(1.0, 0.5, 5)) if method.private else (PUBLIC, None)
    with pytest.raises(InvalidRequest) as caught:
        method.plan(PlanRequest(method_id, 5, SPEC, {"steps": value}, mechanism), declared)
    assert caught.value.faults[0].pointer == "/parameters/steps"


@pytest.mark.parametrize("moving", ["newest", "all"])
def test_points_move_in_the_second_half_of_the_steps(moving: str) -> None:
    """With one step, there is no second half before it, so the point moves; with a still half it is at a row."""
    plan = find_method("incremental-psvi").plan(
        PlanRequest("incremental-psvi", 4, SPECS[0], {"iterations": 6, "moving": moving}), PUBLIC
    )
    chosen = {"all": ALL, "newest": NEWEST}[moving]
    rounds = [each.points for each in iterate_rounds(plan, PUBLIC, population(), np.random.default_rng(1), chosen)]
    assert [len(each.weights) for each in rounds] == [0, 1, 2, 3, 4]
    for before, after in pairwise(rounds[1:]):
        same = np.array_equal(before.u, after.u[:-1])
        assert same == (moving == "newest")
    released = run_public(plan, PUBLIC, population(), np.random.default_rng(1))
    np.testing.assert_array_equal(released.u, rounds[-1].u)


def test_a_point_is_still_while_weights_settle() -> None:
    """Without weight, a point would move to explain the whole residual."""
    problem = make_problem(SPECS[0], PUBLIC)
    rows = PublicTable(population(), problem.design)
    x, y = rows.read(np.arange(2))
    start = Points(x.astype(float), y, np.zeros(2))
    for still, moves in ((5, False), (4, True)):
        residuals = make_residuals(problem, rows, np.random.default_rng(0), draws=10, minibatch=50)
        moved = descend(
            residuals,
            start,
            make_step_geometry(rows),
            LinearScale(2000.0),
            Schedule(COSINE, 0.1, 5),
            moving=slice(None),
            still=still,
        )
        assert moved.weights.max() > 0
        assert np.array_equal(moved.u, start.u) is not moves


@pytest.mark.long
def test_moving_all_points_beats_rows_and_moving_the_newest() -> None:
    """Fig. 8 of the supplement, on counts: the ratio of the medians is about 40."""
    example = population(), PUBLIC, SPECS[4]

    def median(method_id: str, **parameters: Any) -> float:
        runs = [_run(*example, method_id, 6, draw, **parameters) for draw in range(3)]
        return float(np.median([_divergence(*example, each)[0] for each in runs]))

    everything = median("incremental-psvi")
    assert everything < 0.2 * min(median("incremental-psvi", moving="newest"), median("sparse-vi"))
