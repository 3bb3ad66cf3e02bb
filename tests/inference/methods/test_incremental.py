"""The incremental schedule: points are added one by one, with the same planned queries."""

from itertools import groupby, pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.errors import InvalidRequest
from app.inference.core.plan import Mechanism, MechanismPlan, PlanRequest
from app.inference.methods.dp_psvi.incremental import INCREMENTAL, JOINT, choose_point, count_points
from app.inference.methods.dp_psvi.method import DpPsvi
from app.inference.methods.dp_psvi.state import State
from app.inference.post.gradients import compute_centred_potentials
from app.inference.private_zone.rng import make_monte_carlo_generator
from app.inference.registry import find_method
from tests.inference.support import DESIGN, MODEL, SPEC, WIDTH, facts, oracle, table


def _plan(schedule: str, size: int = 8, iterations: int = 40) -> MechanismPlan:
    parameters = {"posterior_draws": 20, "schedule": schedule}
    request = PlanRequest("dp-psvi", size, SPEC, parameters, Mechanism(1.0, 0.5, iterations))
    return find_method("dp-psvi").plan(request, facts(500))


@given(size=st.integers(1, 60), more=st.integers(0, 100))
def test_points_have_equal_shares_of_the_iterations(size: int, more: int) -> None:
    """Shares follow each other and differ by at most one iteration."""
    steps = size + more
    points = [count_points(INCREMENTAL, size, steps, done) for done in range(steps)]
    shares = [(point, len(list(share))) for point, share in groupby(points)]
    assert [point for point, _ in shares] == list(range(1, size + 1))
    assert all(abs(share - steps / size) < 1 for _, share in shares)
    assert {count_points(JOINT, size, steps, done) for done in range(steps)} == {size}


def test_a_new_point_is_the_most_correlated_candidate() -> None:
    """For the residual of one row, the new point is nearly that row."""
    rng = np.random.default_rng(4)
    draws = rng.standard_normal((200, WIDTH))
    wanted, label = DESIGN.sample(rng, 1), np.ones(1)
    residual = compute_centred_potentials(MODEL, MODEL.fold(wanted, label), draws)[0]
    u, y = choose_point(rng, MODEL, DESIGN, draws, residual)
    found = compute_centred_potentials(MODEL, MODEL.fold(u, y), draws)[0]
    assert u.shape == (1, WIDTH)
    assert np.corrcoef(found, residual)[0, 1] > 0.9


def test_a_residual_of_zero_gives_a_point() -> None:
    u, y = choose_point(np.random.default_rng(0), MODEL, DESIGN, np.zeros((1, WIDTH)), np.zeros(1))
    assert np.all(np.isfinite(u))
    assert y.shape == (1,)


def test_queries_and_price_do_not_depend_on_the_schedule() -> None:
    """W4: all events are planned beforehand, and the executed events are the planned ones."""
    joint, incremental = _plan(JOINT), _plan(INCREMENTAL)
    assert joint.queries == incremental.queries
    assert "schedule" not in joint.parameters
    states = _run(incremental)
    assert [len(state.u) for state in states[1:]] == [1 + done * 8 // 40 for done in range(40)]


def test_only_the_newest_point_and_the_weights_move() -> None:
    """Earlier points do not move, bit by bit."""
    states = _run(_plan(INCREMENTAL))
    for before, after in pairwise(states[1:]):
        settled = len(after.u) - 1
        np.testing.assert_array_equal(after.u[:settled], before.u[:settled])
        assert settled == 0 or np.any(after.weights[:settled] != before.weights[:settled])
        if len(after.u) == len(before.u):
            assert np.any(after.u[settled] != before.u[settled])


def _run(planned: MechanismPlan) -> list[State]:
    """Carry out a run and return every state."""
    asked, psvi, rng = oracle(table(480, slots=500), planned), DpPsvi(), make_monte_carlo_generator()
    states = [psvi.init(planned, facts(500), rng)]
    for _ in range(planned.steps):
        states.append(psvi.step(rng, states[-1], asked))
    assert asked.executed == planned.events
    assert psvi.finish(states[-1]).u.shape == (planned.size, WIDTH)
    return states


@pytest.mark.parametrize("schedule", [INCREMENTAL, "later", 3])
def test_a_schedule_with_too_few_iterations_is_refused(schedule: Any) -> None:
    with pytest.raises(InvalidRequest) as caught:
        _plan(schedule, size=41)
    assert caught.value.faults[0].pointer == "/parameters/schedule"
