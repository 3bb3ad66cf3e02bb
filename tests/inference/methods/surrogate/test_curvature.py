"""How information changes along the parameter, against Monte Carlo, closed forms and finite differences."""

import numpy as np
import pytest
from scipy.special import expit

from app.inference.core.model import Array64
from app.inference.methods.surrogate.curvature import Curvature
from app.inference.methods.surrogate.memory import congruent
from app.inference.methods.surrogate.population import Population
from app.inference.methods.surrogate.winsorised import Winsorised
from support.surrogate_tables import Case

RNG = np.random.default_rng(2)
COVARIANCE = np.zeros((4, 4))
COVARIANCE[:3, :3] = np.cov(RNG.normal(size=(3, 30)) * 0.7)
LAW = Population(100.0, np.array([0.3, -0.4, 0.1, 1.0]), COVARIANCE)
THETA, PRIOR = np.array([1.0, -1.5, 0.5, 0.3]), np.eye(4)
LOGISTIC = Curvature(Case(features=3).problem.model, 4)


def _curvature(family: str) -> Curvature:
    return Curvature(Case(family, features=3).problem.model, 4)


def test_one_rows_information_is_the_models() -> None:
    t = np.linspace(-5, 5, 12).reshape(3, 4)
    np.testing.assert_allclose(LOGISTIC(t), expit(t) * expit(-t), rtol=1e-5)
    np.testing.assert_allclose(_curvature("poisson-regression")(t), np.exp(t), rtol=1e-5)


def test_a_rows_information_is_minus_the_slope_of_its_score() -> None:
    """By central differences of the logistic mean, in which scores are linear."""
    t, h = np.linspace(-3, 3, 7), 1e-5
    np.testing.assert_allclose(LOGISTIC(t), (expit(t + h) - expit(t - h)) / (2 * h), rtol=1e-5)


@pytest.mark.parametrize("family", ["logistic-regression", "probit-regression", "poisson-regression"])
def test_the_populations_information_is_that_of_a_large_sample(family: str) -> None:
    curvature = _curvature(family)
    x = LAW.rows(RNG, 400_000)
    sampled = 100 * (x * curvature(x @ THETA)[:, None]).T @ x / len(x)
    found = curvature.information(LAW, THETA)
    assert np.linalg.norm(found - sampled) < 0.03 * np.linalg.norm(sampled)


def test_poisson_information_has_a_closed_form() -> None:
    """The law tilted by ``exp(x'theta)`` is normal with its mean moved by ``S theta``."""
    found = _curvature("poisson-regression").information(LAW, THETA)
    mean = LAW.mean + COVARIANCE @ THETA
    mass = 100 * np.exp(LAW.mean @ THETA + 0.5 * THETA @ COVARIANCE @ THETA)
    np.testing.assert_allclose(found, mass * (COVARIANCE + np.outer(mean, mean)), rtol=1e-4, atol=1e-3)


@pytest.mark.parametrize("family", ["logistic-regression", "probit-regression", "poisson-regression"])
def test_an_intercepts_information_at_scaled_parameters_is_that_of_the_whole(family: str) -> None:
    curvature, scales = _curvature(family), np.array([0.0, 0.5, 1.0, 1.7])
    whole = [curvature.information(LAW, scale * THETA)[-1, -1] / LAW.count for scale in scales]
    np.testing.assert_allclose(curvature.levels(LAW, THETA, scales), whole, rtol=1e-5)


def test_at_zero_it_is_the_second_moments() -> None:
    np.testing.assert_allclose(LOGISTIC.information(LAW, np.zeros(4)), 25 * LAW.second_moments, rtol=1e-4, atol=1e-6)


def _carried(belief: Array64, start: Array64, end: Array64) -> Array64:
    return congruent(belief, LOGISTIC.change(LAW, start, end, PRIOR), PRIOR, PRIOR)


def test_the_populations_own_matrix_is_carried_to_its_own() -> None:
    """Within the limits of the change of any direction."""
    start, end = THETA, 0.6 * THETA
    carried = _carried(LOGISTIC.information(LAW, start) + PRIOR, start, end)
    np.testing.assert_allclose(carried, LOGISTIC.information(LAW, end) + PRIOR, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("size", [0.0, 1.0, 30.0, 1e4])
def test_what_is_carried_stays_positive_definite_and_symmetric(size: float) -> None:
    for seed in range(5):
        rng = np.random.default_rng(seed)
        root = rng.normal(size=(4, 4))
        belief = root @ root.T + 1e-3 * np.eye(4)
        start, end = rng.normal(0, size, (2, 4))
        carried = _carried(belief, start, end)
        np.linalg.cholesky(carried)
        np.testing.assert_allclose(carried, carried.T, rtol=1e-9)


def test_nothing_is_carried_nowhere() -> None:
    belief = 7 * np.eye(4)
    np.testing.assert_allclose(_carried(belief, THETA, THETA), belief, atol=1e-9)


@pytest.mark.parametrize("step", [0 * THETA, 1e-6 * THETA, THETA, -THETA, 50 * THETA, np.eye(4)[3]])
def test_a_step_is_stretched_and_never_shortened(step: Array64) -> None:
    for family in ("logistic-regression", "probit-regression", "poisson-regression"):
        assert 1 <= _curvature(family).stretch(LAW, np.zeros(4), step) <= 2


def test_the_stretch_makes_up_for_information_that_falls() -> None:
    """The mean score falls from ``F step`` to zero at the end of the stretched step: simulated rows that follow it."""
    x, truth = LAW.rows(RNG, 200_000), 1.2 * THETA
    gradient = 100 * x.T @ (expit(x @ truth) - 0.5) / len(x)
    step = np.linalg.solve(LOGISTIC.information(LAW, np.zeros(4)), gradient)
    stretch = LOGISTIC.stretch(LAW, np.zeros(4), step)
    assert stretch > 1.1
    assert np.linalg.norm(stretch * step - truth) < 0.35 * np.linalg.norm(step - truth)


def _with_tails() -> Population:
    """A rare level beside two normal columns."""
    sums = np.array([[0.0625, 1, 1], [0.25, 1, 1], [-0.0375, 0, 0]]) * 1000 / np.array([[6.25], [25], [5]])
    tails = Winsorised(sums, 1000.0, 0.0, np.zeros(3)).tails(np.random.default_rng(0))
    return Population(100.0, LAW.mean, COVARIANCE, tails)


def test_rows_with_tails_have_the_information_of_their_own_mean() -> None:
    law = _with_tails()
    x = law.tailed_rows
    assert x is not None
    p = expit(x @ THETA)
    np.testing.assert_allclose(
        LOGISTIC.information(law, THETA), 100 * (x * (p * (1 - p))[:, None]).T @ x / len(x), rtol=1e-4, atol=1e-6
    )
    assert not np.allclose(LOGISTIC.information(law, THETA), LOGISTIC.information(LAW, THETA), rtol=0.05)


def test_an_intercepts_information_with_tails_is_that_of_the_whole() -> None:
    law, scales = _with_tails(), np.array([0.0, 0.5, 1.0, 1.7])
    whole = [LOGISTIC.information(law, scale * THETA)[-1, -1] / law.count for scale in scales]
    np.testing.assert_allclose(LOGISTIC.levels(law, THETA, scales), whole, rtol=2e-3)


def test_a_step_is_stretched_until_rows_with_tails_would_have_moved_as_far() -> None:
    law, step = _with_tails(), np.array([0.6, -0.4, 0.2, 0.1])
    long = LOGISTIC.stretch(law, THETA, step)
    assert 1 < long < 2
    ways = [step @ LOGISTIC.information(law, THETA + s * long * step) @ step for s in np.linspace(0, 1, 201)]
    goal = step @ LOGISTIC.information(law, THETA) @ step
    assert long * np.mean(ways) == pytest.approx(goal, rel=0.02)
