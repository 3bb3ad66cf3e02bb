"""Information matrices: the design of a query, and a filter of the answers.

A query sums the information of rows, each clipped in a metric, with noise. The answer corrects the belief, as an
observation corrects the state of a Kalman filter.
"""

from dataclasses import dataclass

import numpy as np

from app.inference.core.linear_algebra import factorise, invert, symmetric
from app.inference.core.model import Array64
from app.inference.methods.surrogate.frame import Frame
from app.inference.methods.surrogate.metrics import compute_lewis_metric, compute_squared_lengths
from app.inference.methods.surrogate.rows import Rows
from app.inference.methods.surrogate.tuning import TUNING


@dataclass(frozen=True, slots=True, eq=False)
class MatrixDesign:
    """The metric and the bound of an information query.

    ``root`` ``(D, D)`` is the Cholesky factor of the metric in the frame's coordinates. ``bound`` is the clipping norm
    of a unit's information in that metric. ``expected`` ``(D, D)`` is the answer, in that metric, that the belief
    expects: clipping included, the prior's precision not.
    """

    root: Array64
    bound: float
    expected: Array64


def design_matrix(rows: Rows, frame: Frame, sigma: float, rounds: int, *, per_unit: float) -> MatrixDesign:
    """Choose the metric and the bound with the least expected loss.

    An error E of the information, in coordinates where the information is the identity, loses about ``|E|^2 / 4`` nats.
    E has two parts: noise, whose variance the mean over rounds divides, and the loss by clipping, which all rounds
    share. The loss here is the squared norm of the noise plus half that of the clipping.

    Args:
        rows: the belief about rows.
        frame: the belief at the parameter.
        sigma: the noise of one query over its bound, for sums over all slots.
        rounds: the number of matrices that are averaged.
        per_unit: rows of a unit.
    """
    size, best, chosen = frame.own.shape[0], np.inf, None
    far = (frame.white.reshape(-1, size) @ (frame.own.T @ frame.forth.T)).reshape(frame.white.shape)
    full, (least, most, number) = rows.gram(frame.white), TUNING.matrix_bounds
    for power in TUNING.powers:
        metric = compute_lewis_metric(far, power)
        lengths = compute_squared_lengths(far, metric) * per_unit
        # The squared error by noise of standard deviation 1 in each entry of the metric's coordinates, times two.
        spread = np.trace(metric) ** 2 + np.sum(metric**2)
        widest = max(most, float(lengths.max()) * rows.count / (size * per_unit))
        for kappa in np.geomspace(least, widest, number):
            bound = kappa * size * per_unit / rows.count
            clipped = rows.gram(frame.white, np.minimum(1, bound / np.maximum(lengths, 1e-300)))
            loss = (sigma * bound) ** 2 / rounds / 2 * spread + 0.5 * np.sum((full - clipped) ** 2)
            if loss < best:
                best, chosen = loss, (metric, bound, clipped)
    assert chosen is not None
    metric, bound, clipped = chosen
    root = factorise(metric)
    inverse = invert(root)
    return MatrixDesign(root, float(bound), inverse @ (clipped) @ inverse.T)


@dataclass(frozen=True, slots=True)
class Filter:
    """The doubt about the belief's information.

    ``variance`` is the variance of its entries in coordinates where it is the identity. None: no answer yet.
    """

    variance: float | None = None

    def move(self, change: Array64) -> "Filter":
        """Add the doubt of a step: the mean square of ``change`` ``(M,)``.

        ``change`` is the change of the draws' linear predictors, over ``sqrt(D)``.
        """
        if self.variance is None:
            return self
        return Filter(self.variance + float(np.mean(change**2)))


def correct(
    frame: Frame, design: MatrixDesign, answer: Array64, noise: float, before: Filter
) -> tuple[Array64, Filter]:
    """Correct the belief's information by an answer.

    The innovation is the answer minus its expectation. A scalar Kalman filter shrinks its entries by the gain
    ``variance / (variance + noise^2)``. The variance of the belief is estimated from the innovation itself. An
    eigenvalue beyond the edge of the noise's semicircle law is not noise, so it is shrunk less.

    Args:
        frame: the belief at the parameter.
        design: of the query.
        answer: in the metric of the design, ``(D, D)``.
        noise: the standard deviation of a diagonal entry of the answer.
        before: the filter before the answer.

    Returns:
        The information ``(D, D)``, positive definite, and the filter.
    """
    size = len(answer)
    innovation = symmetric(answer - design.expected)
    excess = float(np.sum(innovation**2)) / (size * (size + 1) / 2) - noise**2
    variance = max(excess, 1e-4) if before.variance is None else max(before.variance, excess - 4 * noise**2 / size)
    gain = variance / (variance + noise**2)
    values, axes = np.linalg.eigh(innovation)
    outside = np.sqrt(np.maximum(values**2 - 2 * size * noise**2, 0))
    values = np.sign(values) * np.maximum(gain * np.abs(values), outside)
    correction = np.eye(size) + design.root @ ((axes * values) @ axes.T) @ design.root.T
    values, axes = np.linalg.eigh(symmetric(correction))
    # The correction stays positive, and noise cannot remove nearly all information in a direction.
    values = np.maximum(values, np.clip(1.5 * noise, *TUNING.spectral_floor))
    return symmetric(frame.back @ (axes * values) @ axes.T @ frame.back.T), Filter(gain * noise**2)
