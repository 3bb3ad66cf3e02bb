"""Mean-field Gaussian approximation: stochastic ascent of the evidence lower bound (ELBO).

Automatic differentiation variational inference (Kucukelbir et al., *JMLR* 18, 2017) for ``q(theta) = N(m, diag(s^2))``:
with ``theta = m + s eps``, ``eps ~ N(0, I)``, and ``g`` the gradient of the log joint density at ``theta``, the bound's
gradient is ``E g`` in ``m``, and ``E[g s eps] + 1`` in ``log s``; the 1 comes from the entropy. One ``g`` gives both.
"""

from dataclasses import dataclass

import numpy as np

from app.inference.core.model import Array64
from app.inference.post.optimisers import AdaGrad, make_finite, start_adagrad, step_adagrad

_REACH = 100.0


@dataclass(frozen=True, slots=True)
class Box:
    """Bounds of the approximation, all ``(D,)``.

    Log standard deviations are from ``least`` to ``most``. The distance of means from ``centre`` is bounded in
    multiples of ``unit``, which is also the unit of their steps.
    """

    centre: Array64
    unit: Array64
    least: Array64
    most: Array64


@dataclass(frozen=True, slots=True)
class MeanField:
    """The approximation ``N(mean, diag(exp(2 log_sd)))``, both ``(D,)``, and its optimiser.

    ``sums`` ``(2, 3, D)`` and ``counts`` are sums over the earlier and the later half of the last iterations: of means,
    log standard deviations, and gradients of the log joint density.
    """

    mean: Array64
    log_sd: Array64
    optimiser: AdaGrad
    sums: Array64
    counts: tuple[int, int] = (0, 0)


def begin(mean: Array64, log_sd: Array64) -> MeanField:
    """Start with the given mean and log standard deviations, both ``(D,)``."""
    size = len(log_sd)
    return MeanField(mean, log_sd, start_adagrad((2 * size,)), np.zeros((2, 3, size)))


def draw(rng: np.random.Generator, approximation: MeanField) -> tuple[Array64, Array64]:
    """Draw a parameter ``theta`` ``(D,)``; return it and its deviation ``s eps`` from the mean."""
    deviation = np.exp(approximation.log_sd) * rng.standard_normal(len(approximation.mean))
    return approximation.mean + deviation, deviation


def ascend(approximation: MeanField, gradient: Array64, deviation: Array64, rate: float, box: Box) -> MeanField:
    """Take one AdaGrad step along a ``gradient`` ``(D,)`` of the log joint density.

    The gradient may have any values. AdaGrad's steps have no scale, so steps of the mean are in the units of ``box``.
    """
    bounded = make_finite(gradient)
    optimiser, move = step_adagrad(approximation.optimiser, np.concatenate((bounded, bounded * deviation + 1)))
    size = len(approximation.mean)
    reach = _REACH * box.unit
    mean = np.clip(approximation.mean + rate * box.unit * move[:size], box.centre - reach, box.centre + reach)
    log_sd = np.clip(approximation.log_sd + rate * move[size:], box.least, box.most)
    return MeanField(mean, log_sd, optimiser, approximation.sums, approximation.counts)


def record(approximation: MeanField, gradient: Array64, half: int) -> MeanField:
    """Add the iterate and its ``gradient`` to the sums of a half.

    ``half`` is 0 for the earlier half, 1 for the later one.
    """
    sums = approximation.sums.copy()
    sums[half] += (approximation.mean, approximation.log_sd, gradient)
    counts = (approximation.counts[0] + (half == 0), approximation.counts[1] + (half == 1))
    return MeanField(approximation.mean, approximation.log_sd, approximation.optimiser, sums, counts)


def average_tail(approximation: MeanField) -> tuple[Array64, Array64]:
    """Average means and log standard deviations ``(D,)`` over the recorded iterates.

    At least one must be recorded. Under noise, the average of iterates is as accurate as the average of all answers
    (Polyak & Juditsky 1992).
    """
    mean, log_sd, _ = approximation.sums.sum(axis=0) / sum(approximation.counts)
    return mean, log_sd


def compare_halves(approximation: MeanField) -> tuple[Array64, Array64]:
    """Compute the differences ``(D,)`` between the halves in mean and gradient; zero without two halves.

    Independent noise changes a difference by twice as much as the average of both halves.
    """
    if not all(approximation.counts):
        return np.zeros_like(approximation.mean), np.zeros_like(approximation.mean)
    earlier, later = approximation.sums / np.array(approximation.counts)[:, None, None]
    mean, _, gradient = later - earlier
    return mean, gradient
