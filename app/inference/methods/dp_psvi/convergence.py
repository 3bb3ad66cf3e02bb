"""Convergence check of a descent on noised potentials, from answers alone.

Let data and pseudocoreset differ by a gradient ``g`` at the posterior's mean. Over antithetic draws ``mean +- delta``,
the odd part of the residual is about ``delta'g``. So ``mean(delta odd)`` estimates the Newton step ``H^-1 g``. In its
average over the end of a run, the noise shrinks, but the distance from the optimum remains.

If clipping removes most of the units' potentials, sums of directions can agree with any pseudocoreset. So the clipping
norm is compared with the potentials of rows that are drawn from the declared bounds.
"""

from typing import Final

import numpy as np

from app.inference.core.design import Design
from app.inference.core.model import Array64, Model
from app.inference.post.diagnostics import compute_bearable_noise
from app.inference.post.doubt import combine_errors
from app.inference.post.gradients import compute_centred_potentials
from app.inference.post.laplace import solve_transposed

MOST_NATS: Final = 10.0
"""Largest error of the mean in nats; for a longer step, the local approximation is not valid."""
LEAST_UNCLIPPED: Final = 0.5
"""Least share of the length of declared rows' potentials that the last clipping norm leaves."""


def estimate_newton_step(draws: Array64, mean: Array64, residual: Array64) -> Array64:
    """Estimate the Newton step ``H^-1 g`` ``(D,)`` from one residual.

    ``residual`` is ``(S,)``, at antithetic ``draws`` ``(S, D)`` around ``mean`` ``(D,)``.
    """
    pairs, second = len(draws) // 2, (len(draws) + 1) // 2
    odd = residual[:pairs] - residual[second : second + pairs]
    return np.asarray((odd @ (draws[:pairs] - mean)) / (2 * pairs))


def measure_noise(noise: float, draws: int, count: int) -> float:
    """Compute the variance of the noise in the mean, in posterior variances.

    It is the same in every direction. For the arguments, see :func:`bound_error_nats`.
    """
    return noise**2 / (2 * (draws // 2) * count)


def bound_error_nats(step: Array64, information: Array64, noise: float, draws: int, count: int) -> float:
    """Estimate the error of the mean in nats.

    It is at least the expected effect of the noise.

    Args:
        step: the average of ``count`` estimated Newton steps, ``(D,)``.
        information: of the posterior, ``(D, D)``.
        noise: standard deviation of a residual at one draw; it is independent between pairs.
        draws: number of draws of each residual.
        count: number of residuals.
    """
    least = 0.5 * len(step) * measure_noise(noise, draws, count)
    return max(least, 0.5 * float(step @ information @ step))


def bound_error_in_sds(step: Array64, factor: Array64, noise: float, draws: int, count: int) -> Array64:
    """Estimate the error of each parameter in posterior standard deviations ``(D,)``.

    As :func:`bound_error_nats`; ``factor`` ``(D, D)`` is the lower Cholesky factor of the information.
    """
    least = np.sqrt(measure_noise(noise, draws, count))
    covariance = np.square(solve_transposed(factor, np.eye(len(factor)))).sum(axis=1)
    return np.asarray(np.maximum(least, np.abs(step) / np.sqrt(covariance)))


def cover_error(step: Array64, factor: Array64, noise: float, draws: int, count: int) -> Array64 | None:
    """Compute the doubt ``(D, D)``: the covariance of the noise plus the square of the estimated Newton step.

    Each variance is at least the square of the error that :func:`bound_error_in_sds` computes from the same arguments.
    """
    root = solve_transposed(factor, np.eye(len(factor)))
    return combine_errors(measure_noise(noise, draws, count) * (root @ root.T), step[None, :])


def measure_unclipped_share(model: Model, rows: Array64, draws: Array64, clip: float, rows_per_unit: int) -> float:
    """Measure the share, in [0, 1], of potentials' length that clipping leaves.

    Potentials are centred over the draws.
    ``rows`` are folded, ``draws`` are ``(S, D)``. The rows of one unit are assumed independent.
    """
    with np.errstate(over="ignore", invalid="ignore"):  # an infinite length counts as clipped
        potentials = compute_centred_potentials(model, rows, draws)
        lengths = np.sqrt(np.vecdot(potentials, potentials) * rows_per_unit)
    return float(np.minimum(lengths, clip).sum() / max(float(lengths.sum()), np.finfo(np.float64).tiny))


def is_clipping_unbiased(model: Model, design: Design, u: Array64, theta: Array64) -> bool:
    """Whether the bias of clipping is negligible at design rows ``u`` ``(n, p)``.

    The information of a label is bounded. That of a number is not. If it depends on the parameter, as for a rate or an
    unknown noise scale, clipping has a bias that answers do not show.
    """
    if design.target is not None and design.target.is_discrete:
        return True
    rows = model.fold(u, np.zeros(len(u))).astype(np.float32)
    at_zero, at_theta = (model.information_factors(rows, each) for each in (np.zeros_like(theta), theta))
    return bool(np.allclose(at_zero, at_theta, rtol=1e-3))


def has_converged(nats: float, learned: float) -> bool:
    """Whether the error ``nats`` is small, also relative to the nats ``learned``."""
    return bool(nats <= min(MOST_NATS, compute_bearable_noise(learned)))
