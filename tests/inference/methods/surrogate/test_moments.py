"""Moments of columns, from noised sums and declared facts."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.inference.core.model import Array64
from app.inference.methods.surrogate.moments import Declared, Moments, Population, choose_centre
from app.inference.private_zone.queries.moments import CENTRE_GRID

RNG = np.random.default_rng(4)
X = RNG.normal((0.5, -0.2, 0.0), (0.3, 0.1, 0.5), (400, 3))
LEVEL = RNG.choice(4, 400, p=(0.1, 0.6, 0.25, 0.05))
MIXED = np.column_stack((X[:, 0], np.eye(4)[LEVEL][:, 1:], np.where(X[:, 2] > 0, 1.0, -1.0)))
KNOWN = Declared(np.array([-1, 1, 1, 1, 2]), np.array([-1.0, 0.0, 0.0, 0.0, -1.0]))
WIDE = 1e9


def compute_sums(x: Array64, scale: float) -> Array64:
    """Compute the sums of ``(1, z, z * z)`` over rows ``(n, k)``."""
    return np.concatenate(([len(x)], (x / scale).sum(axis=0), ((x / scale) ** 2).sum(axis=0)))


def estimate(answer: Array64, scale: float, noise: float, known: Declared) -> Population:
    """Estimate the rows in 500 places."""
    return Moments(answer, scale, noise, known, 0.0, 1.0, WIDE).estimate(500)


def estimate_around(x: Array64, scale: float, noise: float, known: Declared, centre: Array64) -> Population:
    """Estimate the same from sums around ``centre`` ``(k,)``, with noise of that standard deviation."""
    answer = compute_sums(x - centre, scale)
    answer += noise * RNG.standard_normal(len(answer))
    return Moments(answer, scale, noise, known, centre, 1.0, WIDE).estimate(500)


def declare_plain(columns: int) -> Declared:
    """Make the declaration of columns with bounds only."""
    return Declared(np.full(columns, -1), np.full(columns, -1.0))


def test_exact_moments_are_found_without_noise() -> None:
    found = estimate(compute_sums(X, 0.7), 0.7, 0.0, declare_plain(3))
    assert found.count == len(X)
    np.testing.assert_allclose(found.mean, X.mean(axis=0), atol=1e-12)
    np.testing.assert_allclose(found.covariance.diagonal(), X.var(axis=0), atol=1e-12)


@pytest.mark.parametrize(("x", "known"), [(X, declare_plain(3)), (MIXED, KNOWN)])
def test_moments_around_any_centre_are_the_same(x: Array64, known: Declared) -> None:
    """For numbers, indicators and a binary column, and any centre."""
    expected = estimate(compute_sums(x, 0.7), 0.7, 0.0, known)
    for centre in (x.mean(axis=0), np.linspace(-0.9, 0.9, x.shape[1])):
        found = estimate_around(x, 0.3, 0.0, known, centre)
        np.testing.assert_allclose(found.mean, expected.mean, atol=1e-12)
        np.testing.assert_allclose(found.covariance, expected.covariance, atol=1e-12)


def test_squares_around_means_show_small_variances() -> None:
    x = RNG.normal(0.95, 0.02, (400, 3))
    noise, known = 20.0, declare_plain(3)
    plainly = estimate(compute_sums(x, 1.0) + noise * RNG.standard_normal(7), 1.0, noise, known)
    around = estimate_around(x, 0.05, noise, known, x.mean(axis=0) + 0.01)
    assert np.all(plainly.covariance.diagonal() > 50 * x.var(axis=0))
    assert np.all(around.covariance.diagonal() < 2 * x.var(axis=0))


def test_centre_is_a_clear_mean_within_the_bounds() -> None:
    answer = np.array([100.0, 50.0, -1.0, 500.0])
    np.testing.assert_allclose(choose_centre(answer, 1.0, 2.0, 1.0), [0.5 * (1 - 0.04**2), 0, 1], atol=1 / CENTRE_GRID)
    assert np.all(np.isfinite(choose_centre(np.zeros(4), 1.0, 0.0, 1.0)))


def test_means_within_noise_are_shrunk_and_variances_raised() -> None:
    found = estimate(compute_sums(X, 1.0), 1.0, 0.15 * len(X), declare_plain(3))
    assert found.mean[2] == 0
    assert 0 < found.mean[0] < X[:, 0].mean()
    np.testing.assert_allclose(found.covariance.diagonal(), np.maximum(X.var(axis=0), 0.15), rtol=0.3)


@pytest.mark.parametrize(
    ("counted", "noise", "count"), [(900, 1.0, 500), (-50, 1.0, 5), (-50, 40.0, 80), (3, 1e9, 500)]
)
def test_count_is_between_its_noise_and_the_places(counted: float, noise: float, count: float) -> None:
    found = estimate(np.concatenate(([counted], np.zeros(6))), 1.0, noise, declare_plain(3))
    assert found.count == pytest.approx(count)
    assert np.all(np.isfinite(found.covariance))


def test_indicators_of_one_category_exclude_each_other() -> None:
    found = estimate(compute_sums(MIXED, 0.7), 0.7, 0.0, KNOWN)
    exact = np.cov(MIXED.T, bias=True)
    np.testing.assert_allclose(found.covariance[1:4, 1:4], exact[1:4, 1:4], atol=1e-12)
    np.testing.assert_allclose(found.covariance.diagonal(), exact.diagonal(), atol=1e-12)
    assert np.all(found.covariance[0, 1:4] == 0)
    assert np.all(found.covariance[4, :4] == 0)


def test_declared_facts_reduce_errors() -> None:
    """A column of two values follows from its mean."""
    noise, exact = 8.0, np.cov(MIXED.T, bias=True)
    rng = np.random.default_rng(1)

    def measure_errors(known: Declared, answer: Array64) -> tuple[float, float]:
        found = estimate(answer, 0.7, noise, known).covariance
        return float(np.square(found[1:4, 1:4] - exact[1:4, 1:4]).sum()), float((found[4, 4] - exact[4, 4]) ** 2)

    answers = [compute_sums(MIXED, 0.7) + noise * rng.standard_normal(11) for _ in range(200)]
    indicators, signs = np.mean([measure_errors(KNOWN, answer) for answer in answers], axis=0)
    without, without_signs = np.mean([measure_errors(declare_plain(5), answer) for answer in answers], axis=0)
    assert indicators < 0.1 * without
    assert signs < 0.6 * without_signs


@pytest.mark.parametrize("least", [-1.0, 0.0])
@pytest.mark.parametrize("share", [0.002, 0.03, 0.5])
def test_share_of_a_rare_value_is_found_from_shortened_rows(least: float, share: float) -> None:
    """W16: a clipping norm for the other rows shortens those with the rare value; the belief is not surer for it."""
    rows, clip, scale, noise = 20_000, 4.0, 0.02, 90.0
    flags = np.where(np.arange(rows) < share * rows, 1.0, least)
    other = RNG.normal(0.0, scale / 2, rows)
    centre = np.array([least + 0.005, 0.0])
    z = (np.column_stack((flags, other)) - centre) / scale
    parts = np.column_stack((np.ones(rows), z, z * z))
    parts *= np.minimum(1, clip / np.linalg.norm(parts, axis=1))[:, None]
    known = Declared(np.array([0, -1]), np.array([least, -1.0]))
    exact, errors = parts.sum(axis=0), []
    exact[0] = rows
    for _ in range(40):
        answer = exact + noise * RNG.standard_normal(5)
        found = Moments(answer, scale, noise, known, centre, 1.0, clip).estimate(rows)
        errors.append(found.error[0])
        allowed = 5 * found.error[0] + 0.15 * (1 - least) ** 2 * share
        assert abs(found.covariance[0, 0] - (1 - least) ** 2 * share * (1 - share)) < allowed
    assert max(errors) < 3 * (1 - least) ** 2 * noise / clip / rows


@given(
    answer=st.lists(st.floats(-1e4, 1e4), min_size=11, max_size=11),
    scale=st.floats(1e-3, 1e3),
    noise=st.floats(1e-6, 1e6),
)
def test_any_answers_give_a_covariance(answer: list[float], scale: float, noise: float) -> None:
    found = estimate(np.array(answer), scale, noise, KNOWN)
    values = np.linalg.eigvalsh(found.covariance)
    assert values.min() >= -1e-9 * max(values.max(), 1e-300)
    assert np.all(np.abs(found.mean[4:]) <= 1)
    assert np.all((found.mean[1:4] >= 0) & (found.mean[1:4] <= 1))
    assert found.mean[1:4].sum() <= 1 + 1e-9
