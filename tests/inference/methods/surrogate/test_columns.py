"""Information by columns: what is asked for where whole matrices would drown in noise."""

import numpy as np
import pytest

from app.inference.core.plan import MechanismPlan, ModelSpec, PlanRequest
from app.inference.methods.surrogate.columns import no_columns
from app.inference.private_zone.rng import make_monte_carlo_generator
from app.inference.registry import find_private_method
from app.inference.runner import run
from support.surrogate_tables import declare_plain
from tests.inference.support import SPEC, WIDTH, NullNoise, facts, oracle, table

SLOTS = 300


def _plan(noise_multiplier: float) -> MechanismPlan:
    request = PlanRequest("dp-psvi-surrogate", WIDTH + 1, SPEC, {}, None, noise_multiplier)
    return find_private_method("dp-psvi-surrogate").plan(request, facts(SLOTS))


def test_answers_without_noise_give_the_moments_by_column() -> None:
    rng = np.random.default_rng(0)
    x, weights = np.column_stack([rng.uniform(-1, 1, (500, 3)), np.ones(500)]), rng.uniform(0, 0.25, 500)
    z = x[:, :-1] / 0.5
    answer = weights @ np.column_stack([np.ones(500), z, z**2])
    found = no_columns(7).with_answer(answer, 1e-12).with_answer(answer, 1e-12).information(0.5, 500, declare_plain(3))
    whole = (x * weights[:, None]).T @ x
    np.testing.assert_allclose(found[-1], whole[-1], rtol=1e-9)
    np.testing.assert_allclose(found.diagonal(), whole.diagonal(), rtol=1e-9)


def test_noise_averages_out_over_answers() -> None:
    once = no_columns(3).with_answer(np.ones(3), 1.0)
    often = once
    for _ in range(30):
        often = often.with_answer(np.ones(3), 1.0)
    assert once.squared_noise / once.weight**2 == 1
    assert often.squared_noise / often.weight**2 == pytest.approx(0.15 / 1.85, rel=0.02)


@pytest.mark.parametrize(("noise_multiplier", "kind"), [(5.0, "information_sum"), (50.0, "information_moment_sum")])
def test_the_plan_decides_from_noise_slots_and_parameters(noise_multiplier: float, kind: str) -> None:
    """W4: the kind is planned, and priced, before the first row is read."""
    asked = {query.kind for query in _plan(noise_multiplier).queries}
    assert kind in asked
    assert len(asked & {"information_sum", "information_moment_sum"}) == 1


def test_a_release_says_that_it_knows_no_correlations() -> None:
    plan = _plan(50.0)
    asked = oracle(table(250, slots=SLOTS), plan, noise=NullNoise())
    points = run(plan, facts(SLOTS), asked, make_monte_carlo_generator(), lambda _: None)
    assert asked.executed == plan.events
    assert points.diagnostics["knows_correlations"] is False
    assert points.diagnostics["trusted"] is False


def test_other_models_ask_for_whole_matrices_however_noisy() -> None:
    spec = ModelSpec("linear-regression", ("age", "colour", "smoker"), "hours")
    plan = find_private_method("dp-psvi-surrogate").plan(
        PlanRequest("dp-psvi-surrogate", 9, spec, {}, None, 50.0), facts(SLOTS)
    )
    assert "information_moment_sum" not in {query.kind for query in plan.queries}
