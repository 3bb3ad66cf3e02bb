"""A mean-field Gaussian that climbs the evidence lower bound by noisy reparameterised gradients.

Automatic differentiation variational inference (Kucukelbir et al., *JMLR* 18, 2017) for ``q(theta) = N(m, diag(s^2))``:
with ``theta = m + s eps``, ``eps ~ N(0, I)``, and ``g`` the gradient of the log joint density at ``theta``, the bound's
gradient is ``E g`` in ``m``, and ``E[g s eps] + 1`` in ``log s``, where 1 is the entropy's. One ``g`` serves both.
"""

from dataclasses import dataclass

import numpy as np

from app.inference.core.model import Array64
from app.inference.post.optimisers import AdaGrad, adagrad_init, adagrad_step, finite

_REACH = 100.0


@dataclass(frozen=True, slots=True)
class Box:
    """What a belief stays within, all ``(D,)``: log standard deviations between two bounds, and means, in steps of
    ``unit``, not too far from zero.
    """

    unit: Array64
    least: Array64
    most: Array64


@dataclass(frozen=True, slots=True)
class MeanField:
    """``N(mean, diag(exp(2 log_sd)))``, both ``(D,)``, and its optimiser.

    ``sums`` ``(2, 3, D)`` and ``counts`` average the earlier and the later half of a tail: means, log standard
    deviations, and gradients of the log joint density.
    """

    mean: Array64
    log_sd: Array64
    optimiser: AdaGrad
    sums: Array64
    counts: tuple[int, int] = (0, 0)


def begin(log_sd: Array64) -> MeanField:
    """Centred on zero."""
    size = len(log_sd)
    return MeanField(np.zeros(size), log_sd, adagrad_init((2 * size,)), np.zeros((2, 3, size)))


def draw(rng: np.random.Generator, belief: MeanField) -> tuple[Array64, Array64]:
    """A parameter ``theta`` ``(D,)`` and its deviation ``s eps`` from the mean."""
    deviation = np.exp(belief.log_sd) * rng.standard_normal(len(belief.mean))
    return belief.mean + deviation, deviation


def ascend(belief: MeanField, gradient: Array64, deviation: Array64, rate: float, box: Box) -> MeanField:
    """One AdaGrad step for a ``gradient`` ``(D,)`` of the log joint density, whatever that is.

    AdaGrad itself knows no scale of a parameter: steps of the mean are in the box's units.
    """
    bounded = finite(gradient)
    optimiser, move = adagrad_step(belief.optimiser, np.concatenate((bounded, bounded * deviation + 1)))
    size = len(belief.mean)
    reach = _REACH * box.unit
    mean = np.clip(belief.mean + rate * box.unit * move[:size], -reach, reach)
    log_sd = np.clip(belief.log_sd + rate * move[size:], box.least, box.most)
    return MeanField(mean, log_sd, optimiser, belief.sums, belief.counts)


def record(belief: MeanField, gradient: Array64, half: int) -> MeanField:
    """The same with its iterate and the ``gradient`` that led to it, in the earlier (0) or later (1) half."""
    sums = belief.sums.copy()
    sums[half] += (belief.mean, belief.log_sd, gradient)
    counts = (belief.counts[0] + (half == 0), belief.counts[1] + (half == 1))
    return MeanField(belief.mean, belief.log_sd, belief.optimiser, sums, counts)


def average_tail(belief: MeanField) -> tuple[Array64, Array64]:
    """Mean and log standard deviation ``(D,)`` over the recorded tail, of one iterate at least.

    Averages of iterates under noise are as good as the average of all answers (Polyak & Juditsky 1992).
    """
    mean, log_sd, _ = belief.sums.sum(axis=0) / sum(belief.counts)
    return mean, log_sd


def compare_halves(belief: MeanField) -> tuple[Array64, Array64]:
    """How far the halves of the tail are apart in mean and gradient, ``(D,)``; zero without two halves.

    Independent noise moves it by twice as much as it moves the average of both.
    """
    if not all(belief.counts):
        return np.zeros_like(belief.mean), np.zeros_like(belief.mean)
    earlier, later = belief.sums / np.array(belief.counts)[:, None, None]
    mean, _, gradient = later - earlier
    return mean, gradient
