"""Information matrices: which one to ask for, and a filter of the answers."""

from dataclasses import dataclass

import numpy as np

from app.inference.core.model import Array64
from app.inference.methods.one_belief.frame import Frame
from app.inference.methods.one_belief.linear_algebra import factor_of, symmetric
from app.inference.methods.one_belief.metrics import lewis_metric, squared_lengths
from app.inference.methods.one_belief.rows import Rows
from app.inference.methods.one_belief.tuning import TUNING


@dataclass(frozen=True, slots=True, eq=False)
class MatrixDesign:
    """A matrix to ask for: in the metric ``root root'`` of the frame, each unit bounded by ``bound``.

    ``expected`` ``(D, D)`` is what the belief expects bounds to keep, in that metric.
    """

    root: Array64
    bound: float
    expected: Array64


def design_matrix(rows: Rows, frame: Frame, sigma: float, rounds: int, *, per_unit: float) -> MatrixDesign:
    """Choose the metric and the bound of least expected loss.

    The loss of nats is a quarter of the squared error of the information, in its own metric: noise, which rounds
    average, and what bounds take, which they do not.

    Args:
        rows: the belief.
        frame: the belief at the parameter.
        sigma: the noise multiplier, for sums over all slots.
        rounds: how many matrices are averaged.
        per_unit: rows of a unit.
    """
    size, best, chosen = frame.own.shape[0], np.inf, None
    far = (frame.white.reshape(-1, size) @ (frame.own.T @ frame.forth.T)).reshape(frame.white.shape)
    full = rows.gram(frame.white)
    for power in TUNING.matrix_powers:
        metric = lewis_metric(far, power)
        lengths = squared_lengths(far, metric) * per_unit
        spread = np.trace(metric) ** 2 + np.sum(metric**2)
        for kappa in np.geomspace(*TUNING.matrix_bounds):
            bound = kappa * size * per_unit / rows.count
            kept = rows.gram(frame.white, np.minimum(1, bound / np.maximum(lengths, 1e-300)))
            loss = (sigma * bound) ** 2 / rounds / 2 * spread + 0.5 * np.sum((full - kept) ** 2)
            if loss < best:
                best, chosen = loss, (metric, bound, kept)
    assert chosen is not None
    metric, bound, kept = chosen
    root = factor_of(metric)
    inverse = np.linalg.inv(root)
    return MatrixDesign(root, float(bound), inverse @ (kept) @ inverse.T)


@dataclass(frozen=True, slots=True)
class Filter:
    """``variance`` is the relative variance of the entries of the believed information; None before any answer."""

    variance: float | None = None

    def moved(self, change: Array64) -> "Filter":
        """After a step by which linear predictors change so much, ``(M,)``, in each of D directions."""
        if self.variance is None:
            return self
        return Filter(self.variance + float(np.mean(change**2)))


def correct(
    frame: Frame, design: MatrixDesign, answer: Array64, noise: float, before: Filter
) -> tuple[Array64, Filter]:
    """Correct the believed information by an ``answer`` ``(D, D)`` with ``noise`` on its diagonal.

    A scalar Kalman filter of the entries in the metric asked for, whose prior variance is that of the innovation; and
    eigenvalues outside the semicircle of the noise are kept.

    Returns:
        The information ``(D, D)`` and the filter.
    """
    size = len(answer)
    innovation = symmetric(answer - design.expected)
    seen = float(np.sum(innovation**2)) / (size * (size + 1) / 2) - noise**2
    variance = max(seen, 1e-4) if before.variance is None else max(before.variance, seen - 4 * noise**2 / size)
    gain = variance / (variance + noise**2)
    values, axes = np.linalg.eigh(innovation)
    outside = np.sqrt(np.maximum(values**2 - 2 * size * noise**2, 0))
    values = np.sign(values) * np.maximum(gain * np.abs(values), outside)
    correction = np.eye(size) + design.root @ ((axes * values) @ axes.T) @ design.root.T
    values, axes = np.linalg.eigh(symmetric(correction))
    values = np.maximum(values, np.clip(1.5 * noise, *TUNING.spectral_floor))
    return symmetric(frame.back @ (axes * values) @ axes.T @ frame.back.T), Filter(gain * noise**2)
