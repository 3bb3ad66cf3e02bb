"""Score queries: the part of scores that bounds leave, and the metric and the bound with the least expected loss.

A bounded score is a weight times the score. The design of a query and the regression need the mean weight of each row
at many bounds. So it is simulated once, with targets that follow the model, as a function of the bound over the row's
length. The loss of a design is a formula that is evaluated on the draws of rows.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from app.inference.core.linear_algebra import factorise, invert
from app.inference.core.model import Array32, Array64
from app.inference.methods.surrogate.information import Frame, compute_lewis_metric, compute_squared_lengths
from app.inference.methods.surrogate.rows import Rows
from app.inference.methods.surrogate.tuning import TUNING
from app.inference.models.residuals import require_residuals
from app.inference.private_zone.queries import BoundedScoreSum, CutScoreSum
from app.inference.private_zone.queries.scores import ScoreSum

_LEAST, _MOST, _STEPS = 0.02, 6000.0, 36
"""The grid of bounds, over the median length of the draws: ends and number of points."""
_MOST_PART = 100.0
"""Largest part of a score that redescends; a wider scale makes it longer."""
_WHOLE = 0.98
"""Part of a score that counts as the whole score."""
_JITTER = 1e-6
"""Added to the draws' information before it is inverted, where its scale is 1."""
_WIDEST = 1e6
"""Largest ratio of candidates for the squared bound."""
_Losses = Callable[[Array64, Array64, Array64, Array64], Array64]


@dataclass(frozen=True, slots=True, eq=False)
class Response:
    """The part of each draw's score that a bound leaves, by the bound's distance.

    The distance is the bound C over the length of the draw's information factors, both in one metric. ``kept``
    ``(M, G)`` are the parts on a grid that is uniform in the distance's logarithm. ``root`` ``(M, G)`` are the roots of
    the parts of the squared norm. They are larger than ``kept`` where the bound depends on the target. ``offset``
    ``(M,)`` is the logarithm of each draw's first distance. ``widest`` multiplies the candidates for squared bounds:
    scores are longer where residuals are cut further out, or rows are far from the parameter. ``whole`` ``(M,)`` are
    the distances at which a bound takes hardly anything; zero where residuals are cut.
    """

    kept: Array64
    root: Array64
    offset: Array64
    widest: float
    whole: Array64

    def interpolate(self, distance: Array64) -> tuple[Array64, Array64]:
        """Interpolate parts and roots at distances, ``(..., M)`` each; beyond the grid they are constant."""
        step = np.log(_MOST / _LEAST) / (_STEPS - 1)
        place = (np.log(np.maximum(distance, 1e-30)) - self.offset) / step
        place = np.clip(place, 0, _STEPS - 1 - 1e-9)
        low = place.astype(np.int64)
        rest, index = place - low, np.arange(low.shape[-1])
        kept, root = ((1 - rest) * each[index, low] + rest * each[index, low + 1] for each in (self.kept, self.root))
        return kept, root


def make_query(theta: Array64, transform: Array64, clip: float, cut: float | None) -> ScoreSum:
    """Make the query of a score, with residuals cut at ``cut``; None: they are not."""
    return BoundedScoreSum(theta, transform, clip) if cut is None else CutScoreSum(theta, transform, clip, cut)


def respond(
    rng: np.random.Generator,
    rows: Rows,
    theta: Array64,
    frame: Frame,
    *,
    labels: bool,
    cut: float | None,
    doubts: Array64 | None = None,
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
        doubts: the standard deviations ``(M,)`` of targets by the doubt about ``theta``; None: there is no doubt.
    """
    times = 1 if labels or rows.uniform else TUNING.targets
    transform = invert(frame.own)
    length = np.sqrt(np.square(frame.white).sum(axis=(1, 2)))
    usual = max(float(np.median(length)), 1e-30)
    whole, kept, square = np.zeros(len(rows.draws)), *np.zeros((2, len(rows.draws), _STEPS))
    for folded, whole_scores in _simulate(rng, rows, theta, times, doubts):
        scores = (whole_scores @ transform.T).astype(np.float32)
        whole += np.vecdot(scores, scores)
        for step, distance in enumerate(np.geomspace(_LEAST, _MOST, _STEPS)):
            clip = distance * usual * (cut or 1.0)
            bounded = make_query(theta, transform, clip, cut).bound_rows(rows.model, folded)
            kept[:, step] += np.vecdot(bounded, scores)
            square[:, step] += np.vecdot(bounded, bounded)
    widest = 1.0 if cut is None else max(1.0, cut**2 / 4)
    if rows.uniform:
        widest = TUNING.uniform_bounds * max(1.0, float(whole.mean() / length[0] ** 2))
        whole, kept, square = whole.sum(keepdims=True), kept.sum(axis=0)[None], square.sum(axis=0)[None]
    longer = cut is not None and require_residuals(rows.model).redescending
    most = _MOST_PART if longer else 1.0
    kept = np.clip(_compute_part(kept, whole, times * length**2), 1e-3, most)
    root = np.sqrt(np.clip(_compute_part(square, whole, times * length**2), kept**2, most**2))
    root = kept if cut is not None and not longer else root
    offset = np.log(_LEAST * (cut or 1.0) * usual / np.maximum(length, 1e-30))
    steps = np.argmax(kept >= _WHOLE * kept.max(axis=1, keepdims=True), axis=1)
    whole = np.exp(offset + np.log(_MOST / _LEAST) / (_STEPS - 1) * steps) * (cut is None)
    kept, root = (np.maximum.accumulate(each, axis=1) for each in (kept, root))
    return Response(kept, root, offset, widest, whole)


def _compute_part(sums: Array64, whole: Array64, usual: Array64) -> Array64:
    """Compute ``sums`` ``(M, G)`` over the sums ``whole`` ``(M,)`` of whole scores.

    The part beyond them is divided by their mean ``usual`` ``(M,)``. Few targets are simulated, so a ratio would be too
    small for scores of a wider scale.
    """
    ratio = np.minimum(sums / np.maximum(whole, 1e-300)[:, None], 1)
    return np.asarray(ratio + np.maximum(sums - whole[:, None], 0) / np.maximum(usual, 1e-300)[:, None])


def _simulate(
    rng: np.random.Generator, rows: Rows, theta: Array64, times: int, doubts: Array64 | None
) -> Iterator[tuple[Array32, Array64]]:
    """Yield folded rows and their scores at the mode, ``times`` times.

    Targets follow the model at a mode that is in doubt by ``doubts``. Doubts are in pairs, whose mean hardly varies.
    """
    shift = np.zeros(1)
    for turn in range(times):
        if doubts is not None and turn % 2 == 1:
            shift = -shift
        else:
            targets = rows.model.sample_targets(rng, rows.draws, theta)
            shift = shift if doubts is None else doubts * rng.standard_normal(len(doubts))
        yield rows.fold(targets + shift), rows.model.scores(rows.fold(targets), theta).astype(np.float64)


@dataclass(frozen=True, slots=True, eq=False)
class ScoreDesign:
    """The metric and the bound of a score query.

    The metric is ``factor factor'``, with ``factor`` ``(D, D)`` in the model's coordinates. ``clip`` is the clipping
    norm C in it. ``kept`` and ``root`` ``(M,)`` are the parts of each draw's score that the bound leaves. ``nats`` are
    the expected losses by noise and by bounds.
    """

    factor: Array64
    clip: float
    kept: Array64
    root: Array64
    nats: tuple[float, float]


def design_score(rows: Rows, frame: Frame, response: Response, *, sigma: float) -> ScoreDesign:
    """Choose the metric and the bound with the least expected loss.

    Candidates are Lewis metrics of several orders, and a grid of bounds. :func:`_prepare_losses` has the loss.

    Args:
        rows: the belief about rows.
        frame: the belief at the parameter.
        response: the part of scores that bounds leave.
        sigma: the noise multiplier of all scores together, for sums over all slots.
    """
    best, chosen, far = np.inf, None, frame.shortened.astype(np.float32)
    compute_losses = _prepare_losses(rows, frame)
    least, most, ratio = TUNING.score_bounds
    mean = np.sqrt(len(frame.own) * rows.per_unit / rows.count)
    for power in TUNING.powers:
        metric = compute_lewis_metric(far, power)
        lengths = np.sqrt(compute_squared_lengths(far, metric) * rows.per_unit)
        # Where most rows have hardly any information, the scores of the others are much longer than the mean.
        narrowest = response.widest * least
        widest = min(max(response.widest * most, (np.max(lengths * response.whole) / mean) ** 2), _WIDEST * narrowest)
        number = 1 + round(np.log(widest / narrowest) / np.log(ratio))
        clips = mean * np.sqrt(np.geomspace(narrowest, widest, number))
        kept, root = response.interpolate(clips[:, None] / np.maximum(lengths, 1e-300))
        nats = compute_losses(metric, sigma * clips, kept, root)
        turn = np.argmin(np.nan_to_num(nats.sum(axis=1), nan=np.inf))
        if nats[turn].sum() < best:
            best, chosen = float(nats[turn].sum()), (metric, clips[turn], kept[turn], root[turn], nats[turn])
    assert chosen is not None
    metric, clip, kept, root, nats = chosen
    return ScoreDesign(frame.back @ factorise(metric), float(clip), kept, root, tuple(nats.tolist()))


def _prepare_losses(rows: Rows, frame: Frame) -> _Losses:
    """Prepare a function of the expected losses of score queries.

    Its result has two losses in nats for each of G queries, ``(G, 2)``. Its arguments are the ``metric`` ``(D, D)``,
    the standard deviations ``noise`` ``(G,)`` in it, and the parts ``kept`` and ``root`` ``(G, M)``. With them, the
    information of a score is ``first`` and its covariance ``second``. The losses are half the squared errors of a
    Newton step in the coordinates of ``frame``, by

    1. noise;
    2. bounds: the part of the score's covariance that the unweighted scores do not explain. It counts once for targets
       that follow the model. A smooth misfit adds ``TUNING.misfit * n / D`` times as much, for n rows.
    """
    white, size = frame.white, len(frame.own)
    full, misfit = rows.gram(white), 1 + TUNING.misfit * rows.count / size
    inverse_full = invert(full + _JITTER * np.eye(size))

    def compute_losses(metric: Array64, noise: Array64, kept: Array64, root: Array64) -> Array64:
        first = np.array([rows.gram(white, each) for each in kept])
        second = np.array([rows.gram(white, each**2) for each in root])
        inverse = invert(first + frame.prior)
        lost = second - first @ inverse_full @ first
        by_noise = noise**2 * np.sum((inverse @ metric) * inverse, axis=(1, 2))
        by_bounds = misfit * np.sum((inverse @ lost) * inverse, axis=(1, 2))
        return 0.5 * np.column_stack([by_noise, by_bounds])

    return compute_losses
