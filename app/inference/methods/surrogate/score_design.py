"""The design of a score query: the metric and the bound with the least expected loss.

The loss is a formula that is evaluated on the draws of rows. The search goes through metrics between the rows'
covariance and the least ellipsoid around them, and through a grid of bounds.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from app.inference.core.linear_algebra import factorise, invert
from app.inference.core.model import Array64
from app.inference.core.priors import Prior
from app.inference.methods.surrogate.frame import Frame
from app.inference.methods.surrogate.metrics import compute_lewis_metric, compute_squared_lengths
from app.inference.methods.surrogate.response import Response
from app.inference.methods.surrogate.rows import Rows
from app.inference.methods.surrogate.tuning import TUNING

_JITTER = 1e-6
"""Added to the draws' information before it is inverted, where its scale is 1."""
_WIDEST = 1e6
"""Largest ratio of candidates for the squared bound."""
_SOFT_PRIOR = 0.1
"""Part of the prior's precision that keeps the estimate of the prior's pull finite."""


@dataclass(frozen=True, slots=True, eq=False)
class ScoreDesign:
    """The metric and the bound of a score query.

    The metric is ``factor factor'``, with ``factor`` ``(D, D)`` in the model's coordinates. ``clip`` is the clipping
    norm C in it. ``kept`` and ``root`` ``(M,)`` are the parts of each draw's score that the bound leaves. ``nats`` are
    the expected losses by noise, by bounds, by wrong labels, and by the prior's pull. ``label_error`` ``(D,)`` is the
    error of the mode by as many wrong labels as a stated error allows for.
    """

    factor: Array64
    clip: float
    kept: Array64
    root: Array64
    nats: tuple[float, float, float, float]
    label_error: Array64


def design_score(
    rows: Rows,
    frame: Frame,
    response: Response,
    theta: Array64,
    prior: Prior,
    *,
    sigma: float,
    misfit: float,
    per_unit: float,
) -> ScoreDesign:
    """Choose the metric and the bound with the least expected loss.

    Candidates are Lewis metrics of several orders, each also with more room along ``theta``, and a grid of bounds.
    :class:`_Losses` has the loss.

    Args:
        rows: the belief about rows.
        frame: the belief at ``theta``.
        response: the part of scores that bounds leave.
        theta: the parameter, ``(D,)``.
        prior: on the parameters.
        sigma: the noise multiplier of all scores together, for sums over all slots.
        misfit: the variance of a row's smooth misfit, over that of its score.
        per_unit: rows of a unit.
    """
    losses = _Losses.prepare(rows, frame, response, theta, prior, sigma=sigma, misfit=misfit)
    best, chosen = np.inf, None
    far = frame.shortened
    least, most, ratio = TUNING.score_bounds
    mean = np.sqrt(len(theta) * per_unit / rows.count)
    for metric in _list_metrics(frame, far, theta):
        lengths = np.sqrt(compute_squared_lengths(far, metric) * per_unit)
        # Where most rows have hardly any information, the scores of the others are much longer than the mean.
        narrowest = response.widest * least
        widest = min(max(response.widest * most, (np.max(lengths * response.whole) / mean) ** 2), _WIDEST * narrowest)
        number = 1 + round(np.log(widest / narrowest) / np.log(ratio))
        for clip in mean * np.sqrt(np.geomspace(narrowest, widest, number)):
            kept, root = response.share(clip / np.maximum(lengths, 1e-300))
            nats, label_error = losses.compute(metric, clip, kept, root)
            if nats.sum() < best:
                best, chosen = float(nats.sum()), (metric, clip, kept, root, nats, label_error)
    assert chosen is not None
    metric, clip, kept, root, nats, label_error = chosen
    label_error = TUNING.wrong_labels[1] / TUNING.wrong_labels[0] * frame.forth.T @ label_error
    return ScoreDesign(frame.back @ factorise(metric), float(clip), kept, root, tuple(nats.tolist()), label_error)


def _list_metrics(frame: Frame, far: Array64, theta: Array64) -> Iterator[Array64]:
    """Yield the candidates for factors ``far`` ``(M, r, D)``, in the frame's coordinates."""
    along = frame.back.T @ theta
    along /= max(float(np.linalg.norm(along)), 1e-12)
    for power in TUNING.powers:
        base = compute_lewis_metric(far, power)
        for room in TUNING.along:
            yield base + room * np.outer(along, along)


@dataclass(frozen=True, slots=True, eq=False)
class _Losses:
    """The expected loss of a score query.

    Coordinates are the frame's, in which the belief's information is the identity. ``full`` ``(D, D)`` is the draws'
    information without the prior's. ``pull`` ``(D,)`` is the prior's part of the score at the mode. ``mistaken_step``
    ``(D,)`` is the error of the mode by wrong labels if no score is bounded. The full posterior has this error too, so
    only the difference counts.
    """

    rows: Rows
    frame: Frame
    response: Response
    sigma: float
    misfit: float
    full: Array64
    pull: Array64
    mistaken_step: Array64

    @classmethod
    def prepare(
        cls,
        rows: Rows,
        frame: Frame,
        response: Response,
        theta: Array64,
        prior: Prior,
        *,
        sigma: float,
        misfit: float,
    ) -> "_Losses":
        """Compute the parts that do not depend on the metric and the bound."""
        full, pull = rows.gram(frame.white), -frame.forth @ prior.gradient(theta)
        mistaken = _mistake_labels(rows, response, np.ones(len(frame.white)))
        step = invert(full + frame.prior) @ mistaken
        return cls(rows, frame, response, sigma, misfit, full, pull, step)

    def compute(self, metric: Array64, clip: float, kept: Array64, root: Array64) -> tuple[Array64, Array64]:
        """Compute the four losses ``(4,)`` in nats, and the error ``(D,)`` by wrong labels.

        With parts ``kept`` and ``root`` ``(M,)``, the information of the score is ``first`` and its covariance
        ``second``. The losses are half the squared errors of a Newton step, by

        1. noise;
        2. bounds: the part of the score's covariance that the unweighted scores do not explain. It counts once for
           targets that follow the model, and ``misfit`` times the number of rows for a smooth misfit;
        3. wrong labels, whose scores are bounded;
        4. the prior's pull, which weights reduce, restored with a softened information.
        """
        rows, white, soft = self.rows, self.frame.white, _SOFT_PRIOR * self.frame.prior
        identity = np.eye(len(self.pull))
        first, second = rows.gram(white, kept), rows.gram(white, root**2)
        inverse = invert(first + self.frame.prior)
        lost = second - first @ invert(self.full + _JITTER * identity) @ first
        off = invert(first + soft + 1e-9 * identity) @ (self.full + soft) @ self.pull - self.pull
        bias = inverse @ _mistake_labels(rows, self.response, kept) - self.mistaken_step
        noise = (self.sigma * clip) ** 2 * np.sum((inverse @ metric) * inverse)
        bounds = (1 + self.misfit * rows.count) * np.sum((inverse @ lost) * inverse)
        return 0.5 * np.array([noise, bounds, bias @ bias, off @ off]), bias


def _mistake_labels(rows: Rows, response: Response, kept: Array64) -> Array64:
    """Compute the sum of scores ``(D,)`` by wrong labels."""
    return np.asarray(rows.count / len(kept) * (kept @ response.mistakes))
