"""The normal-inverse-Wishart distribution of the streams' page, against scipy, integration and conjugacy."""

import numpy as np
import pytest
from scipy import stats

from app.inference.core.model import Array64
from benchmarks.normal_inverse_wishart import NormalInverseWishart, NormalRows, fold_rows, split

PRIOR = NormalInverseWishart(np.array([0.5, -0.2, 0.1]), 2.0, np.diag([1.0, 2.0, 0.5]) + 0.2, 7.5)
RNG = np.random.default_rng(0)
ROWS, WEIGHTS = RNG.standard_normal((30, 3)) @ RNG.standard_normal((3, 3)), RNG.uniform(0, 3, 30)


def test_likelihoods_are_those_of_normal_rows() -> None:
    draws = PRIOR.sample(np.random.default_rng(1), 4)
    mean, root, _ = split(draws, 3)
    found = NormalRows(3).log_likelihood(fold_rows(ROWS), draws)
    for place in range(4):
        law = stats.multivariate_normal(mean[place], np.linalg.inv(root[place] @ root[place].T))
        expected = law.logpdf(ROWS) + 1.5 * np.log(2 * np.pi)
        np.testing.assert_allclose(found[:, place], expected, rtol=1e-8, atol=1e-8)


def test_the_density_has_the_jacobian_of_its_coordinates() -> None:
    """Against scipy's inverse Wishart density, and a Jacobian by finite differences."""
    values = []
    for theta in PRIOR.sample(np.random.default_rng(2), 5):

        def compute_covariance(at: Array64) -> Array64:
            root = split(at[None], 3)[1][0]
            return np.asarray(np.linalg.inv(root @ root.T))

        step, below = 1e-6, np.tril_indices(3)
        columns = [
            (compute_covariance(theta + step * unit) - compute_covariance(theta - step * unit))[below] / (2 * step)
            for unit in np.eye(len(theta))[3:]
        ]
        covariance = compute_covariance(theta)
        expected = (
            stats.invwishart(PRIOR.degrees, PRIOR.scale).logpdf(covariance)
            + stats.multivariate_normal(PRIOR.mean, covariance / PRIOR.count).logpdf(theta[:3])
            + np.linalg.slogdet(np.array(columns))[1]
        )
        values.append(PRIOR.log_density(theta[None])[0] - expected)
    np.testing.assert_allclose(values, values[0], atol=1e-5)


def test_prior_and_weighted_rows_make_the_posterior() -> None:
    """Up to a constant: the update is right where the densities are."""
    draws = PRIOR.sample(np.random.default_rng(3), 50)
    product = PRIOR.log_density(draws) + WEIGHTS @ NormalRows(3).log_likelihood(fold_rows(ROWS), draws)
    difference = product - PRIOR.update(ROWS, WEIGHTS).log_density(draws)
    np.testing.assert_allclose(difference, difference[0], rtol=1e-9, atol=1e-9)


def test_draws_have_the_moments_of_the_distribution() -> None:
    mean, root, _ = split(PRIOR.sample(np.random.default_rng(4), 100_000), 3)
    precision = (root @ root.transpose(0, 2, 1)).mean(axis=0)
    np.testing.assert_allclose(precision, PRIOR.degrees * np.linalg.inv(PRIOR.scale), rtol=0.02, atol=0.05)
    np.testing.assert_allclose(mean.mean(axis=0), PRIOR.mean, atol=0.01)
    expected = PRIOR.scale / (PRIOR.degrees - 4) / PRIOR.count
    np.testing.assert_allclose(np.cov(mean.T), expected, rtol=0.05, atol=0.01)


def test_divergence_is_the_mean_log_ratio_of_densities() -> None:
    one, other = PRIOR.update(ROWS, WEIGHTS), PRIOR.update(ROWS[:20], WEIGHTS[:20])
    assert one.compute_divergence(one) == pytest.approx(0, abs=1e-10)
    draws = one.sample(np.random.default_rng(5), 200_000)
    mode, constant = np.concatenate((one.mean, np.zeros(6)))[None], [0.0, 0.0]
    for place, law in enumerate((one, other)):
        root = split(mode, 3)[1][0]
        covariance = np.linalg.inv(root @ root.T)
        exact = stats.invwishart(law.degrees, law.scale).logpdf(covariance)
        exact += stats.multivariate_normal(law.mean, covariance / law.count).logpdf(mode[0, :3])
        constant[place] = float(exact - law.log_density(mode)[0])
    ratio = one.log_density(draws) - other.log_density(draws) + constant[0] - constant[1]
    assert one.compute_divergence(other) == pytest.approx(ratio.mean(), rel=0.02)
