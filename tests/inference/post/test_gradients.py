"""The Monte Carlo gradients against a model whose covariances are known in closed form.

Gaussian mean: ``f(x, theta) = -|x - theta|**2 / 2`` and ``theta ~ N(m, V)`` (identity noise covariance). Then
``Cov[f_n, f_k] = v_n' V v_k + tr(V V) / 2`` and ``Cov[grad_u f(u), f_n] = V v_n`` with ``v = x - m``
(Bayesian Pseudocoresets, 2020, supplement C.1).
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from app.inference.core.model import Array64, Model, PullBack
from app.inference.models.logistic import LogisticRegression
from app.inference.post.gradients import compute_centred_potentials, compute_psvi_gradients


def _potentials(model: Model, points: Array64, draws: Array64) -> tuple[Array64, PullBack]:
    return compute_centred_potentials(model, points, draws), lambda cotangent: model.point_gradient(
        points, np.ones(len(points)), draws, cotangent
    )


class GaussianMean(LogisticRegression):
    """A model with only the functions that gradients need."""

    def log_likelihood(self, rows: NDArray[Any], draws: NDArray[Any], out: NDArray[Any] | None = None) -> NDArray[Any]:
        return np.asarray(-0.5 * np.sum((rows[:, None, :] - draws[None, :, :]) ** 2, axis=2))

    def point_gradient(
        self, u: Array64, y: Array64, draws: Array64, cotangent: Array64
    ) -> tuple[Array64, Array64 | None]:
        return np.asarray(cotangent @ draws - u * cotangent.sum()), None


def test_gradients_are_the_closed_form_covariances() -> None:
    """100,000 draws in 20 groups: within seven standard errors of the exact gradients."""
    rng, model = np.random.default_rng(0), GaussianMean(3)
    data, points = rng.standard_normal((30, 3)) + 1, rng.standard_normal((4, 3))
    weights = rng.uniform(1, 9, 4)
    mean, root = rng.standard_normal(3), np.tril(rng.standard_normal((3, 3))) / 2
    covariance = root @ root.T
    by_weight, by_point = [], []
    for _ in range(20):
        draws = mean + rng.standard_normal((5000, 3)) @ root.T
        potentials, pull_back = _potentials(model, points, draws)
        residual = compute_centred_potentials(model, data, draws).sum(axis=0) - weights @ potentials
        gradients = compute_psvi_gradients(pull_back, weights, potentials, residual)
        by_weight.append(gradients[0])
        by_point.append(gradients[1])
    v_data, v_points = data - mean, points - mean
    half_trace = np.trace(covariance @ covariance) / 2
    across = v_points @ covariance @ v_data.T + half_trace
    within = v_points @ covariance @ v_points.T + half_trace
    exact_weight = -(across.sum(axis=1) - within @ weights)
    exact_point = -weights[:, None] * (covariance @ (v_data.sum(axis=0) - weights @ v_points))
    for found, exact in ((np.array(by_weight), exact_weight), (np.array(by_point), exact_point)):
        error = found.std(axis=0, ddof=1) / np.sqrt(20)
        assert np.all(np.abs(found.mean(axis=0) - exact) < 7 * error)
        assert np.all(error < 0.1 * np.abs(exact).max())


def test_the_residual_mean_does_not_matter() -> None:
    """Noise may add a constant to all answers; a centred sum does not depend on it."""
    rng, model = np.random.default_rng(1), LogisticRegression(3)
    points, weights, draws = rng.standard_normal((4, 3)), np.ones(4), rng.standard_normal((50, 3))
    (potentials, pull_back), residual = _potentials(model, points, draws), rng.standard_normal(50)
    plain = compute_psvi_gradients(pull_back, weights, potentials, residual)
    shifted = compute_psvi_gradients(pull_back, weights, potentials, residual + 5)
    for first, second in zip(plain[:2], shifted[:2], strict=True):
        assert first is not None
        assert second is not None
        np.testing.assert_allclose(first, second, atol=1e-12)
