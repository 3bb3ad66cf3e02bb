"""The part of scores that bounds leave, for the draws of rows.

A bounded score is a weight times the score. The design of a query and the regression need the mean weight of each row
at many bounds. So it is simulated once, with targets that follow the model, as a function of the bound over the row's
length.
"""

from dataclasses import dataclass

import numpy as np

from app.inference.core.linear_algebra import invert
from app.inference.core.model import Array32, Array64, Model
from app.inference.methods.surrogate.frame import Frame
from app.inference.methods.surrogate.rows import Rows
from app.inference.methods.surrogate.tuning import TUNING
from app.inference.models.residuals import require_residuals

_LEAST, _MOST, _STEPS = 0.02, 6000.0, 36
"""The grid of bounds, over the median length of the draws: ends and number of points."""
_WHOLE = 0.98
"""Part of a score that counts as the whole score."""


@dataclass(frozen=True, slots=True, eq=False)
class Response:
    """The part of each draw's score that a bound leaves, by the bound's distance.

    The distance is the bound C over the length of the draw's information factors, both in one metric. ``kept``
    ``(M, G)`` are the parts on a grid that is uniform in the distance's logarithm. ``root`` ``(M, G)`` are the roots of
    the parts of the squared norm. They are larger than ``kept`` where the bound depends on the target. ``offset``
    ``(M,)`` is the logarithm of each draw's first distance. ``widest`` multiplies the candidates for squared bounds:
    scores are longer where residuals are cut further out, or rows are far from the parameter. ``mistakes`` ``(M, D)``
    are the changes of a draw's mean score by wrong labels, in the coordinates of the draws' information; zero for other
    targets. Their share is that of :func:`limit_mistakes`. ``whole`` ``(M,)`` are the distances at which a bound takes
    hardly anything; zero where residuals are cut.
    """

    kept: Array64
    root: Array64
    offset: Array64
    widest: float
    mistakes: Array64
    whole: Array64

    def share(self, distance: Array64) -> tuple[Array64, Array64]:
        """Interpolate parts and roots, ``(M,)`` each, at distances ``(M,)``; beyond the grid they are constant."""
        step = np.log(_MOST / _LEAST) / (_STEPS - 1)
        place = (np.log(np.maximum(distance, 1e-30)) - self.offset) / step
        place = np.clip(place, 0, _STEPS - 1 - 1e-9)
        low = place.astype(np.int64)
        rest, index = place - low, np.arange(len(low))
        kept, root = ((1 - rest) * each[index, low] + rest * each[index, low + 1] for each in (self.kept, self.root))
        return kept, root


def bound_scores(  # noqa: PLR0917  (arguments of a query)
    model: Model, folded: Array32, theta: Array64, transform: Array64, clip: float, cut: float | None
) -> Array64:
    """Compute the bounded scores ``(n, D)`` of ``folded`` rows, as a query does."""
    if cut is None:
        return model.bounded_scores(folded, theta, transform, clip).astype(np.float64)
    return require_residuals(model).cut_scores(folded, theta, transform, clip, cut).astype(np.float64)


def respond(
    rng: np.random.Generator, rows: Rows, theta: Array64, frame: Frame, *, labels: bool, cut: float | None
) -> Response:
    """Simulate the response at ``theta``.

    The part is the projection of the bounded score on the score: their inner product over the squared norm, each summed
    over simulated targets. One target is enough for ``labels``, because their bounds do not depend on the target.

    Args:
        rng: for targets.
        rows: the belief about rows.
        theta: the parameter, ``(D,)``.
        frame: the belief at ``theta``.
        labels: whether targets are binary.
        cut: the distance at which residuals are cut, in deviations; None: they are not cut.
    """
    times = 1 if labels or rows.uniform else TUNING.targets
    transform = invert(frame.own)
    length = np.sqrt(np.square(frame.white).sum(axis=(1, 2)))
    usual = max(float(np.median(length)), 1e-30)
    whole, kept, square = np.zeros(len(rows.draws)), *np.zeros((2, len(rows.draws), _STEPS))
    for _ in range(times):
        folded = rows.fold(rows.model.sample_targets(rng, rows.draws, theta))
        scores = rows.model.scores(folded, theta).astype(np.float64) @ transform.T
        whole += np.vecdot(scores, scores)
        for step, distance in enumerate(np.geomspace(_LEAST, _MOST, _STEPS)):
            clip = distance * usual * (cut or 1.0)
            bounded = bound_scores(rows.model, folded, theta, transform, clip, cut)
            kept[:, step] += np.vecdot(bounded, scores)
            square[:, step] += np.vecdot(bounded, bounded)
    widest = 1.0 if cut is None else max(1.0, cut**2 / 4)
    if rows.uniform:
        widest = TUNING.uniform_bounds * max(1.0, float(whole.mean() / length[0] ** 2))
        whole, kept, square = whole.sum(keepdims=True), kept.sum(axis=0)[None], square.sum(axis=0)[None]
    kept = np.clip(kept / np.maximum(whole, 1e-300)[:, None], 1e-3, 1.0)
    root = kept if cut is not None else np.sqrt(np.clip(square / np.maximum(whole, 1e-300)[:, None], kept**2, 1.0))
    mistakes = np.zeros((len(length), len(theta)))
    if labels:
        # A label that is 1 with probability p changes the mean score by (1 - 2 p) x if it is wrong: the sum of both.
        both = np.array([rows.model.scores(rows.fold(np.full(len(length), y)), theta) for y in (0.0, 1.0)], np.float64)
        mistakes = limit_mistakes(np.abs(both @ theta)) * (both[0] + both[1]) @ transform.T
    offset = np.log(_LEAST * (cut or 1.0) * usual / np.maximum(length, 1e-30))
    steps = np.argmax(kept >= _WHOLE * kept.max(axis=1, keepdims=True), axis=1)
    whole = np.exp(offset + np.log(_MOST / _LEAST) / (_STEPS - 1) * steps) * (cut is None)
    kept, root = (np.maximum.accumulate(each, axis=1) for each in (kept, root))
    return Response(kept, root, offset, widest, mistakes, whole)


def limit_mistakes(pull: Array64) -> float:
    """Compute the share of wrong labels that a design allows for.

    At the mode, wrong labels pull the parameter towards zero, and right ones away from it. So the share is at most the
    ratio of both, if all labels were right, or all were wrong.

    Args:
        pull: the size of each draw's score along the parameter, for both labels, ``(2, M)``.
    """
    right, wrong = pull.min(axis=0).sum(), pull.max(axis=0).sum()
    return min(TUNING.wrong_labels[0], float(right / wrong)) if wrong > 0 else TUNING.wrong_labels[0]
