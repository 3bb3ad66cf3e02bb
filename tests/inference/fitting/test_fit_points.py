"""Fitted points: exact if their number allows, else close to the bound, with the true divergence."""

import numpy as np
import pytest

from app.inference.core.bounds import project
from app.inference.core.plan import PriorSpec
from app.inference.fitting.fit import Fitted, fit_points
from app.inference.fitting.subspaces import compute_direction_costs
from tests.inference.fitting.givens import (
    HIERARCHICAL,
    NORMAL,
    Givens,
    collinear_design,
    normal_design,
    plain_divergence,
    posterior,
)

ONE_PREDICTOR = [
    ("logistic-regression", None),
    ("probit-regression", None),
    ("poisson-regression", None),
    ("negative-binomial-regression", None),
    ("linear-regression", 0.5),
    ("linear-regression", None),
    ("student-t-regression", 0.5),
    ("gaussian-mean", 1.5),
]
UNKNOWN_SCALE = ("student-t-regression", None)


def fit(givens: Givens, size: int, *, within_bounds: bool = False, total: float | None = None) -> Fitted:
    rng = np.random.default_rng(5)
    found = fit_points(*givens, size, rng, within_bounds=within_bounds, total=total)
    assert found.u.shape == (size, givens.design.width)
    assert found.weight.shape == (size,)
    assert np.all(found.weight >= 0)
    if givens.design.intercept:
        assert np.all(found.u[:, -1] == 1)
    return found


def compute_least_loss(givens: Givens, size: int) -> float:
    """Compute the nats lost with the whitened directions that ``size`` labelled points cannot span."""
    root = np.linalg.cholesky(givens.prior.precision(givens.mean))
    whitened = np.linalg.solve(root, np.linalg.solve(root, givens.precision).T)
    values, vectors = np.linalg.eigh(whitened)
    costs = np.sort(compute_direction_costs(values, vectors.T @ (root.T @ givens.mean)))
    return float(costs[: len(costs) - size + 1].sum())


@pytest.mark.slow
@pytest.mark.parametrize("prior", [NORMAL, HIERARCHICAL], ids=["normal", "hierarchical"])
@pytest.mark.parametrize(("family", "noise_scale"), ONE_PREDICTOR)
def test_points_are_exact_from_the_smallest_exact_size_on(
    family: str, noise_scale: float | None, prior: PriorSpec
) -> None:
    givens = posterior(family, prior=prior, noise_scale=noise_scale)
    smallest = givens.model.smallest_exact
    for size in (smallest, smallest + 1, 2 * smallest, 50):
        found = fit(givens, size)
        assert found.kl < 1e-12
        assert plain_divergence(givens, found.u, found.y, found.weight) < 1e-8
        assert np.all(found.weight > 0)
        assert np.max(np.abs(found.u)) < 5
    if smallest > 1:
        assert fit(givens, smallest - 1).kl > 0.05


def test_a_wide_design_is_exact_with_one_point_more_than_parameters() -> None:
    givens = normal_design(51, 20_000)
    for size in (52, 100, 300):
        found = fit(givens, size)
        assert found.kl < 1e-12
        assert np.max(np.abs(found.u)) < 6
        assert np.max(found.weight) < 50 * np.min(found.weight)


def test_directions_without_information_need_no_points() -> None:
    givens = collinear_design(20, 4000)
    unknown = int(np.count_nonzero(np.linalg.eigvalsh(givens.precision) < 1 + 1e-9))
    assert unknown >= 3
    assert fit(givens, len(givens.mean) + 1 - unknown).kl < 1e-9
    assert fit(givens, 2 * len(givens.mean)).kl < 1e-9


@pytest.mark.parametrize("left", [0.0, 1e-12, 1e-4])
@pytest.mark.parametrize("family", ["poisson-regression", "negative-binomial-regression"])
def test_a_mean_away_from_the_prior_needs_no_information_there(family: str, left: float) -> None:
    """Noise may leave a direction no information, but a mean off the prior's. Counts cannot be negative."""
    givens = posterior(family)
    prior = givens.prior.precision(givens.mean)
    away = np.eye(len(prior))[0] - np.eye(len(prior))[1]
    data, mean = givens.precision - prior, givens.mean + 0.3 * away
    seen = data @ away
    blind = prior + data - (1 - left) * np.outer(seen, seen) / (away @ seen)
    found = fit(givens._replace(mean=mean, precision=blind), 50, total=3000.0)
    assert found.kl < 1e-3
    assert found.y is not None
    assert np.max(found.y) < 100


@pytest.mark.parametrize("family", ["logistic-regression", "student-t-regression"])
def test_rounding_errors_are_no_information(family: str) -> None:
    """Other columns determine the first one."""
    givens = posterior(family)
    prior = givens.prior.precision(givens.mean)
    data, mean = givens.precision - prior, givens.mean.copy()
    data[0], data[:, 0], mean[0] = 0, 0, 6e-5 / np.sqrt(prior[0, 0])
    data[0, 0] = -1e-8 * prior[0, 0]
    assert fit(givens._replace(mean=mean, precision=prior + data), 13, total=3000.0).kl < 1e-3


@pytest.mark.parametrize("size", [4, 13, 26, 38, 50])
def test_fewer_points_are_close_to_the_least_possible_loss(size: int) -> None:
    givens = normal_design(51, 20_000)
    found = fit(givens, size)
    assert found.kl < 1.25 * compute_least_loss(givens, size)
    assert plain_divergence(givens, found.u, found.y, found.weight) == pytest.approx(found.kl, rel=1e-6)


@pytest.mark.parametrize("size", [1, 2, 5])
@pytest.mark.parametrize(("family", "noise_scale"), [*ONE_PREDICTOR[:-1], UNKNOWN_SCALE])
def test_any_number_of_points_is_as_close_as_the_prior(family: str, noise_scale: float | None, size: int) -> None:
    givens = posterior(family, noise_scale=noise_scale)
    found = fit(givens, size)
    prior = plain_divergence(givens, found.u, found.y, np.zeros(size))
    assert found.kl <= prior * (1 + 1e-9)
    assert plain_divergence(givens, found.u, found.y, found.weight) == pytest.approx(found.kl, rel=1e-6)


@pytest.mark.long
@pytest.mark.parametrize(
    ("degrees", "rows"),
    [
        *((1.0, 100), (1.0, 3000), (4.0, 3000), (100.0, 3000)),
        *(pytest.param(degrees, 100, marks=pytest.mark.sweep) for degrees in (2.0, 4.0, 30.0, 100.0)),
        *(pytest.param(degrees, 3000, marks=pytest.mark.sweep) for degrees in (2.0, 30.0)),
    ],
)
def test_unknown_scales_are_close_at_one_point_more_than_parameters(degrees: float, rows: int) -> None:
    givens = posterior("student-t-regression", rows=rows, degrees_of_freedom=degrees)
    smallest = givens.model.smallest_exact
    assert smallest == len(givens.mean) + 1
    for size in (smallest, 2 * smallest):
        found = fit(givens, size)
        assert found.kl < 1e-3
        assert np.all(found.weight > 0)
        assert np.max(np.abs(found.u)) < 5
        assert plain_divergence(givens, found.u, found.y, found.weight) == pytest.approx(found.kl, rel=1e-3)
    assert fit(givens, smallest - 2).kl > 0.05


@pytest.mark.slow
@pytest.mark.long
def test_several_classes_are_close_at_one_point_more_than_parameters() -> None:
    givens = posterior("multinomial-logistic")
    found = fit(givens, givens.model.smallest_exact)
    assert found.kl < 1e-2
    assert plain_divergence(givens, found.u, found.y, found.weight) == pytest.approx(found.kl, rel=1e-5)
    assert fit(givens, 2 * len(givens.mean)).kl < 1e-3


@pytest.mark.parametrize(("family", "noise_scale"), [*ONE_PREDICTOR, UNKNOWN_SCALE, ("multinomial-logistic", None)])
@pytest.mark.long
def test_points_within_bounds_are_inside_and_close(family: str, noise_scale: float | None) -> None:
    givens = posterior(family, noise_scale=noise_scale)
    found = fit(givens, 3 * givens.model.smallest_exact, within_bounds=True)
    np.testing.assert_allclose(project(givens.design, found.u), found.u, atol=1e-12)
    assert found.kl < 0.05
    assert plain_divergence(givens, found.u, found.y, found.weight) == pytest.approx(found.kl, rel=1e-5, abs=1e-9)


def test_weights_are_limited_by_the_number_of_units() -> None:
    givens = posterior("logistic-regression")
    far = givens._replace(mean=40 * givens.mean)
    assert np.sum(fit(far, 20).weight) > 1e5
    found = fit(far, 20, total=3000)
    assert np.max(found.weight) <= 30_000
    assert np.isfinite(found.kl)


def test_points_for_the_prior_have_no_weight() -> None:
    givens = posterior("logistic-regression")
    found = fit(givens._replace(mean=np.zeros(7), precision=givens.prior.precision(np.zeros(7))), 3)
    assert found.kl < 1e-12
    np.testing.assert_array_equal(found.weight, 0)
