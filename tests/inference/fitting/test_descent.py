"""The gradient of the divergence through the mode, against differences of the divergence itself."""

from dataclasses import replace

import numpy as np
import pytest

from app.inference.core.model import Array64
from app.inference.fitting.descent import compute_divergence_gradient, minimise_divergence
from app.inference.fitting.mode import compute_distance, find_mode
from app.inference.fitting.parametrisation import Parametrisation
from app.inference.fitting.points import Points
from app.inference.fitting.regions import Box, read_region
from app.inference.fitting.starts import find_starts
from app.inference.fitting.target import Target, compute_inverse_root
from tests.inference.fitting.givens import Givens, posterior

FAMILIES = [
    ("logistic-regression", None),
    ("probit-regression", None),
    ("poisson-regression", None),
    ("negative-binomial-regression", None),
    ("linear-regression", 0.5),
    ("linear-regression", None),
    ("student-t-regression", 0.5),
    ("student-t-regression", None),
    ("multinomial-logistic", None),
]


def make_unrelated_points(givens: Givens, size: int) -> Points:
    """Make points that are unrelated to the posterior."""
    rng = np.random.default_rng(9)
    u = givens.design.sample(rng, size)
    y = givens.model.sample_targets(rng, u, givens.mean)
    return Points(u, y, rng.uniform(1, 9, size))


@pytest.mark.parametrize(("family", "noise_scale"), FAMILIES)
def test_the_gradient_matches_finite_differences(family: str, noise_scale: float | None) -> None:
    givens = posterior(family, noise_scale=noise_scale, rows=300)
    target = Target(givens.mean, givens.precision)
    size, rng = 30, np.random.default_rng(4)
    shape = (size, givens.design.width)
    problem, _ = find_starts(givens.model, givens.prior, target, shape, rng, heaviest=np.inf, region=None)
    points = make_unrelated_points(givens, size)
    mode = find_mode(givens.model, points, givens.prior, target.mean)
    assert mode is not None
    information = givens.model.expand(givens.model.fold(points.u, points.y), points.weight, mode).information
    root = compute_inverse_root(information + givens.prior.precision(mode))
    assert root is not None
    found = compute_divergence_gradient(problem, points, mode, root)

    def change(**moves: Array64) -> float:
        """Compute the central difference along a move of rows, targets or weights."""
        (name, move), h = next(iter(moves.items())), 1e-5
        ends = [replace(points, **{name: getattr(points, name) + sign * h * move}) for sign in (1, -1)]
        values = [compute_distance(givens.model, end, givens.prior, target) for end in ends]
        return (values[0] - values[1]) / (2 * h)

    rows = rng.standard_normal(points.u.shape) * (np.arange(givens.design.width) < givens.design.width - 1)
    weights = rng.standard_normal(size)
    assert change(u=rows) == pytest.approx(float(np.sum(found.u * rows)), rel=1e-5, abs=1e-5)
    assert change(weight=weights) == pytest.approx(float(found.weight @ weights), rel=1e-5, abs=1e-5)
    if problem.moving_targets is not None:
        targets = rng.standard_normal(size)
        assert change(y=targets) == pytest.approx(float(found.y @ targets), rel=1e-5, abs=1e-5)


@pytest.mark.parametrize("within", [True, False])
def test_a_parametrisation_pulls_gradients_back(within: bool) -> None:
    givens = posterior("poisson-regression")
    start = make_unrelated_points(givens, 5)
    region = read_region(givens.design) if within else Box(givens.design.width, 30.0)
    parametrisation = Parametrisation(start, region, (0.0, None))
    rng = np.random.default_rng(2)
    position = parametrisation.position() + 0.1 * rng.standard_normal(len(parametrisation.bounds))
    weights, rows, targets = rng.standard_normal(5), rng.standard_normal(start.u.shape), rng.standard_normal(5)

    def value(at: Array64) -> float:
        points = parametrisation.points(at)
        return float(weights @ points.weight + np.sum(rows * points.u) + targets @ points.y)

    found = parametrisation.pull_back(position, Points(rows, targets, weights))
    steps = 1e-6 * np.eye(len(position))
    differences = [(value(position + step) - value(position - step)) / 2e-6 for step in steps]
    np.testing.assert_allclose(found, differences, rtol=1e-6, atol=1e-6)


def test_a_parametrisation_keeps_its_start_and_bounds_weights() -> None:
    givens = posterior("logistic-regression")
    start = make_unrelated_points(givens, 6)
    parametrisation = Parametrisation(start, read_region(givens.design), None, heaviest=float(np.max(start.weight)) / 2)
    found = parametrisation.points(parametrisation.position())
    np.testing.assert_allclose(found.u, start.u, atol=1e-4)  # shares of exactly 0 and 1 are outside the region
    np.testing.assert_allclose(found.weight, start.weight)
    heaviest = start.weight * np.exp([high or 0 for _, high in parametrisation.bounds[:6]])
    assert np.all(heaviest <= np.maximum(start.weight, np.max(start.weight) / 2) * (1 + 1e-12))


def test_descent_lowers_the_divergence() -> None:
    givens = posterior("logistic-regression", rows=300)
    target = Target(givens.mean, givens.precision)
    start, rng = make_unrelated_points(givens, 12), np.random.default_rng(0)
    shape = start.u.shape
    problem, _ = find_starts(givens.model, givens.prior, target, shape, rng, heaviest=np.inf, region=None)
    found = minimise_divergence(problem, Parametrisation(start, Box(shape[1], 30.0), None), 50)
    assert found is not None
    before, after = (compute_distance(givens.model, each, givens.prior, target) for each in (start, found))
    assert after < 0.1 * before
