"""Which score to ask for: the metric and the bound that lose least, by the belief."""

from dataclasses import dataclass

import numpy as np

from app.inference.core.model import Array64
from app.inference.core.priors import Prior
from app.inference.methods.one_belief.frame import Frame
from app.inference.methods.one_belief.linear_algebra import factor_of
from app.inference.methods.one_belief.metrics import lewis_metric, squared_lengths
from app.inference.methods.one_belief.response import Response
from app.inference.methods.one_belief.rows import Rows
from app.inference.methods.one_belief.tuning import TUNING

_JITTER = 1e-6
_SOFT_PRIOR = 0.1


@dataclass(frozen=True, slots=True, eq=False)
class ScoreDesign:
    """A score to ask for, in the metric ``factor factor'`` ``(D, D)``, bounded by ``clip``.

    ``kept`` ``(M,)`` is the share that the bound leaves of each draw's score. ``nats`` are the expected losses: noise,
    what weights lose, wrong labels, the prior's pull.
    """

    factor: Array64
    clip: float
    kept: Array64
    nats: tuple[float, float, float, float]


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
    widest: float = 1.0,
) -> ScoreDesign:
    """Choose the metric and the bound with the least expected loss.

    The losses are noise; the variance of what the weights lose, for targets that follow the model or miss it smoothly
    by ``misfit``; wrong labels; and an error in what is known of the prior's pull.

    Args:
        rows: the belief.
        frame: the belief at ``theta``.
        response: what bounds keep.
        theta: the parameter, ``(D,)``.
        prior: on the parameters.
        sigma: the noise multiplier of all scores together, for sums over all slots.
        misfit: the variance of a row's smooth misfit, over that of its score.
        per_unit: rows of a unit.
        widest: times the usual squared bounds, where residuals are cut further out.
    """
    size, best, chosen = len(theta), np.inf, None
    white, far = frame.white, frame.shortened
    full, pull = rows.gram(white), frame.forth @ prior.precision(theta) @ theta
    soft = _SOFT_PRIOR * frame.prior
    whole_pull = (full + soft) @ pull
    mistaken = _mistaken(rows, response, np.ones(len(white)))
    mistaken_whole = np.linalg.solve(full + frame.prior, mistaken)
    along = frame.back.T @ theta
    along /= max(float(np.linalg.norm(along)), 1e-12)
    for power in TUNING.score_powers:
        base = lewis_metric(far, power)
        for room in TUNING.along:
            metric = base + room * np.outer(along, along)
            lengths = np.sqrt(squared_lengths(far, metric) * per_unit)
            for kappa in widest * np.geomspace(*TUNING.score_bounds):
                clip = np.sqrt(kappa * size * per_unit / rows.count)
                kept = response.share(clip / np.maximum(lengths, 1e-300))
                first, second = rows.gram(white, kept), rows.gram(white, kept**2)
                inverse = np.linalg.inv(first + frame.prior)
                lost = second - first @ np.linalg.solve(full + _JITTER * np.eye(size), first)
                off = np.linalg.solve(first + soft + 1e-9 * np.eye(size), whole_pull) - pull
                bias = inverse @ _mistaken(rows, response, kept) - mistaken_whole
                nats = 0.5 * np.array(
                    [
                        (sigma * clip) ** 2 * np.sum((inverse @ metric) * inverse),
                        (1 + misfit * rows.count) * np.sum((inverse @ lost) * inverse),
                        bias @ bias,
                        off @ off,
                    ]
                )
                if nats.sum() < best:
                    best, chosen = float(nats.sum()), (metric, clip, kept, nats)
    assert chosen is not None
    metric, clip, kept, nats = chosen
    return ScoreDesign(frame.back @ factor_of(metric), float(clip), kept, tuple(nats.tolist()))


def _mistaken(rows: Rows, response: Response, kept: Array64) -> Array64:
    """The mean score ``(D,)``, white, of labels that are wrong at the usual rate."""
    return np.asarray(TUNING.wrong_labels * rows.count / len(kept) * (kept @ response.mistakes))
