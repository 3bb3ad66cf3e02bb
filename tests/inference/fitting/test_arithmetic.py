"""Links against their models, divergences against the textbook, and isometries against their definition."""

import numpy as np
import pytest

from app.inference.core.priors import NormalPrior
from app.inference.fitting.isometries import find_isometries
from app.inference.fitting.links import LogisticLink, ProbitLink, make_link
from app.inference.fitting.moment_equations import FARTHEST, Moments, apportion, solve_labelled, solve_unlabelled
from app.inference.fitting.subspaces import find_subspace
from app.inference.fitting.target import (
    Target,
    compute_divergence,
    compute_inverse_root,
    is_well_conditioned,
    make_target,
)
from tests.inference.fitting.givens import normal_design, posterior

RNG = np.random.default_rng(8)


@pytest.mark.parametrize(
    ("family", "noise_scale"),
    [
        ("logistic-regression", None),
        ("probit-regression", None),
        ("poisson-regression", None),
        ("negative-binomial-regression", None),
        ("linear-regression", 0.5),
        ("linear-regression", None),
        ("student-t-regression", 0.5),
        ("student-t-regression", None),
    ],
)
def test_a_link_matches_its_model_along_the_predictor(family: str, noise_scale: float | None) -> None:
    givens = posterior(family, noise_scale=noise_scale)
    model, theta, width = givens.model, givens.mean, givens.design.width
    link = make_link(model, theta, givens.prior)
    u = givens.design.sample(RNG, 20)
    y = model.sample_targets(RNG, u, theta)
    curve = link.curve(u @ theta[:width], y)
    for row, target, slope, curvature in zip(u, y, curve.slope, curve.curvature, strict=True):
        found = model.expand(model.fold(row[None, :], np.array([target])), np.ones(1), theta)
        np.testing.assert_allclose(found.gradient[:width], slope * row, rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose(found.information[:width, :width], curvature * np.outer(row, row), atol=1e-9)


@pytest.mark.parametrize("link", [LogisticLink(), ProbitLink()], ids=["logistic", "probit"])
def test_curvature_slopes_match_finite_differences(link: LogisticLink | ProbitLink) -> None:
    a, h = np.linspace(-6, 6, 41), 1e-5
    for y in (np.zeros(41), np.ones(41)):
        above, below = link.curve(a + h, y), link.curve(a - h, y)
        np.testing.assert_allclose(
            link.curve(a, y).curvature_slope, (above.curvature - below.curvature) / (2 * h), atol=1e-6
        )
        np.testing.assert_allclose(link.curve(a, y).curvature, (below.slope - above.slope) / (2 * h), atol=1e-6)


@pytest.mark.parametrize("link", [LogisticLink(), ProbitLink()], ids=["logistic", "probit"])
@pytest.mark.parametrize("size", [3, 4, 5, 40])
def test_labelled_points_have_the_required_moments(link: LogisticLink | ProbitLink, size: int) -> None:
    for _ in range(40):
        asked = Moments(RNG.uniform(1, 1e4), RNG.uniform(-4, 4), RNG.uniform(0.01, 2), *RNG.uniform(-0.1, 0.1, 2))
        found = solve_labelled(link, asked, size)
        assert found is not None
        assert found.ratio is not None
        assert np.all(found.mass > 0)
        steps = found.a - asked.centre
        moments = [found.mass.sum(), found.mass @ steps, found.mass @ steps**2]
        np.testing.assert_allclose(moments, [asked.n, 0, asked.n * asked.spread**2], rtol=1e-8, atol=1e-8 * asked.n)
        scores = [found.mass @ found.ratio, found.mass @ (found.ratio * found.a)]
        np.testing.assert_allclose(scores, [asked.g0, asked.g1], atol=1e-7 * asked.n)


@pytest.mark.parametrize("size", [3, 4, 9])
def test_continuous_targets_have_the_required_moments_and_squares(size: int) -> None:
    asked = Moments(50.0, 0.4, 0.7, 0.3, -0.2)
    found = solve_unlabelled(asked, size, squares=12.0)
    assert found is not None
    assert found.ratio is not None
    moments = [found.mass.sum(), found.mass @ found.a, found.mass @ (found.a - 0.4) ** 2]
    np.testing.assert_allclose(moments, [50, 20, 50 * 0.49])
    scores = [found.mass @ found.ratio, found.mass @ (found.ratio * found.a), found.mass @ found.ratio**2]
    np.testing.assert_allclose(scores, [0.3, -0.2, 12.0], atol=1e-12)


def test_predictors_out_of_range_are_refused() -> None:
    assert solve_labelled(LogisticLink(), Moments(1.0, FARTHEST, 1.0, 0.0, 0.0), 9) is None
    assert solve_unlabelled(Moments(1.0, -FARTHEST, 1.0, 0.0, 0.0), 9) is None


def test_counts_are_proportional_to_shares() -> None:
    np.testing.assert_array_equal(apportion(np.array([0.7, 0.2, 0.1]), 10), [7, 2, 1])
    np.testing.assert_array_equal(apportion(np.array([0.99, 0.005, 0.005]), 4), [2, 1, 1])
    np.testing.assert_array_equal(apportion(np.array([0.5, 0.3, 0.2]), 2), [1, 1, 0])


def test_isometries_map_sources_to_images() -> None:
    true, _ = np.linalg.qr(RNG.standard_normal((9, 5)))
    sources = RNG.standard_normal((5, 3)) @ np.diag([1, 1e3, 1])
    sources = np.column_stack((sources, sources[:, 0] - 2 * sources[:, 1]))  # linearly dependent on the others
    every = find_isometries(sources, true @ sources)
    wanted = RNG.standard_normal((9, 5))
    frames = [every.random(RNG), every.random(RNG), every.nearest(wanted, every.random(RNG))]
    for frame in frames:
        np.testing.assert_allclose(frame.T @ frame, np.eye(5), atol=1e-12)
        np.testing.assert_allclose(frame @ sources, true @ sources, atol=1e-9)
    scores = [np.sum(frame * wanted) for frame in (*frames, *(every.random(RNG) for _ in range(50)))]
    assert scores[2] == max(scores)
    assert np.max(np.abs(frames[0] - frames[1])) > 0.01


def test_the_divergence_matches_the_textbook_formula() -> None:
    a, b = (RNG.standard_normal((4, 9)) for _ in range(2))
    precision, other = a @ a.T, b @ b.T
    mean, gap = RNG.standard_normal(4), RNG.standard_normal(4)
    root = compute_inverse_root(precision)
    assert root is not None
    textbook = 0.5 * (
        np.trace(np.linalg.solve(precision, other))
        + gap @ other @ gap
        - 4
        + np.linalg.slogdet(precision)[1]
        - np.linalg.slogdet(other)[1]
    )
    assert compute_divergence(mean + gap, root, Target(mean, other)) == pytest.approx(textbook)
    assert compute_divergence(mean, root, Target(mean, precision)) < 1e-25


def test_a_nearly_singular_posterior_is_ill_conditioned() -> None:
    direction = np.array([3.0, -1.0, 2.0]) / np.sqrt(14)
    for sharpness, expected in ((1e8, True), (1e15, False)):
        posterior_precision = sharpness * np.outer(direction, direction) + np.eye(3)
        root = compute_inverse_root(posterior_precision)
        assert (root is not None and is_well_conditioned(posterior_precision, root)) == expected
    units = np.diag([1e-6, 1.0, 1e6])
    plain = units @ np.array([[2.0, 1, 0], [1, 2, 1], [0, 1, 2]]) @ units
    root = compute_inverse_root(plain)
    assert root is not None
    assert is_well_conditioned(plain, root)
    assert compute_inverse_root(-np.eye(3)) is None


def test_an_invalid_target_is_replaced_by_one_near() -> None:
    prior = np.eye(2)
    np.testing.assert_array_equal(
        make_target(np.zeros(2), np.full((2, 2), np.nan), np.zeros(2), prior).precision, prior
    )
    np.testing.assert_array_equal(make_target(np.array([np.nan, 2.0]), prior, np.zeros(2), prior).mean, [0, 2])
    found = make_target(np.zeros(2), np.diag([-5.0, 7.0]), np.zeros(2), prior)
    np.testing.assert_allclose(found.precision, np.diag([1.0, 7.0]))


def test_a_subspace_has_at_most_the_given_directions() -> None:
    givens = normal_design(9, 4000)
    target = Target(givens.mean, givens.precision)
    assert find_subspace(target, givens.prior, 9).basis.shape == (9, 9)
    for most in (0, 1, 4):
        subspace = find_subspace(target, givens.prior, most)
        assert subspace.basis.shape == (9, most)
        assert most == 0 or abs(subspace.basis[-1] @ (subspace.information * subspace.basis[-1])) > 0
    nothing = Target(np.zeros(9), np.eye(9))
    assert find_subspace(nothing, NormalPrior(np.ones(9)), 9).basis.shape == (9, 0)
