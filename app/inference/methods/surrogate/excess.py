"""Residuals that the model does not predict: where to cut them, and the restoration of the part beyond.

Targets without a natural bound may lie further from the model than it predicts. A cut of residuals bounds their scores,
but its error does not become smaller with more budget. So a noised histogram first shows how far residuals reach. The
cut is where noise and the part beyond it, the excess, together have the least expected loss. The excess is then
measured: along the intercept and the linear predictor, where few numbers cost little noise. It is added back to the
scores, and its remaining error is part of the stated covariance.

Notation: ``e`` is a standardised residual, and ``clip(e)`` is it cut to ``+-c``. The excess of a row is ``a = e -
clip(e)``. With an unknown noise scale, there is also ``b = e^2 - clip(e)^2``.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from app.inference.core.linear_algebra import invert
from app.inference.core.model import Array64
from app.inference.methods.surrogate.rows import Rows
from app.inference.methods.surrogate.tuning import TUNING
from app.inference.models.residuals import require_residuals
from app.inference.private_zone.queries.residuals import EDGES, ExcessSum

_MIDDLES: Final = EDGES * 2**0.25
"""Geometric middles of the bins."""
_NEXT: Final = 2**0.5
"""Ratio of a bin's upper edge to its lower one."""
_WINDOW: Final = 3
"""Adjacent bins whose counts are compared with the noise together."""
_TIMES: Final = 16
"""Targets drawn for each row."""
_DECAY: Final = 0.5
"""Power of the distance by which hidden residuals become fewer further out."""
_UNUSUAL: Final = 2.0
"""Deviations from the model's prediction up to which a sum counts as noise."""
_LEAST_PRECISION: Final = 1e-200
"""Precision of a sum that nothing shows: there are no residuals beyond the cut."""
_UNLIKELY: Final = 0.1
"""Probability that there are hidden residuals."""


@dataclass(frozen=True, slots=True, eq=False)
class ResidualCounts:
    """A noised histogram of residuals at ``theta`` ``(D,)``, with the model's prediction.

    ``counts`` ``(2, B)`` are the numbers of negative and positive residuals in each bin. ``noise`` is the standard
    deviation of the noise in each count. ``largest`` is the largest residual that declared bounds allow, in deviations.
    ``simulated`` ``(K,)`` are simulated residuals of targets that follow the model. ``count`` is the number of rows.
    """

    theta: Array64
    counts: Array64
    noise: float
    largest: float
    simulated: Array64
    count: float

    def expect(self, cut: float) -> Array64:
        """Predict the sums ``(2,)`` of a and of b beyond ``cut`` by the model."""
        inside = np.clip(self.simulated, -cut, cut)
        parts = np.array([self.simulated - inside, self.simulated**2 - inside**2])
        return np.asarray(self.count * parts.mean(axis=1))

    @property
    def _last(self) -> int:
        """The last bin whose residuals exceed the noise; -1: there is none.

        Adjacent bins are taken together. The last bins of them count only if they add to the sum.
        """
        totals = self.counts.sum(axis=0)
        windows = np.convolve(totals, np.ones(_WINDOW))[_WINDOW - 1 :]
        clear = np.flatnonzero(windows > TUNING.signal * self.noise * np.sqrt(2 * _WINDOW))
        if not len(clear):
            return -1
        first = int(clear[-1])
        return first + int(np.argmax(np.cumsum(totals[first : first + _WINDOW])))

    @property
    def reach(self) -> float:
        """How far residuals reach, in deviations, as far as counts exceed the noise."""
        last = self._last
        return float(min(EDGES[0] if last < 0 else EDGES[last] * _NEXT, self.largest))

    @property
    def _usual(self) -> Array64:
        """The numbers of residuals in each bin that the model predicts, ``(B,)``."""
        return np.histogram(np.abs(self.simulated), [*EDGES, np.inf])[0] * self.count / len(self.simulated)

    @property
    def are_wide(self) -> bool:
        """Whether residuals are wider than the model's: the sum of their squares, clearly and considerably."""
        counts = np.array([0 * self._usual, self._usual])
        shown, expected = (each.excess(EDGES[0]) for each in (self, replace(self, counts=counts)))
        # Middles of bins are inexact far out, and simulated squares without a mean exceed all bins.
        more = shown.sums[1] - max(expected.sums[1], self.expect(EDGES[0])[1])
        return bool(more > TUNING.signal * np.sqrt(shown.noise[1]) + TUNING.most_excess * self.count)

    def find_clear_excess(self, function: Callable[[Array64], Array64]) -> float:
        """Find by how much a sum over residuals clearly exceeds the model's prediction.

        ``function`` of the distances grows, and counts relative to its value at the first edge. Noise in far bins hides
        less far ones. So the sum ends at the bin where it exceeds its noise most. Infinite if a value is not a number.
        """
        middles = np.asarray(np.minimum(_MIDDLES, self.largest), dtype=np.float64)
        values = np.asarray(function(middles) - function(EDGES[:1].astype(np.float64)))
        more = np.cumsum((self.counts.sum(axis=0) - self._usual) * values)
        noise = np.sqrt(np.cumsum((2 * self.noise**2 + self._usual) * values**2))
        return max(0.0, float(np.max(np.nan_to_num(more - TUNING.signal * noise, nan=np.inf))))

    @property
    def are_far(self) -> bool:
        """Whether more residuals are far than the model predicts: beyond any distance, clearly and considerably."""
        beyond = np.cumsum(self.counts.sum(axis=0)[::-1])[::-1]
        usual = self.count * np.mean(np.abs(self.simulated)[:, None] >= EDGES, axis=0)
        noise = self.noise * np.sqrt(2 * np.arange(len(EDGES), 0, -1))
        return bool(np.any(beyond - usual > TUNING.signal * noise + TUNING.most_excess * self.count))

    def excess(self, cut: float) -> "ShownExcess":
        """Estimate the excess beyond ``cut``.

        Residuals count as the middles of their bins. Bins beyond :attr:`reach` count as empty, but noise may hide
        residuals in them.
        """
        there, within = self.largest > EDGES, self.reach > EDGES
        middles = np.minimum(_MIDDLES, self.largest)
        beyond = np.where(there, np.maximum(middles - cut, 0), 0)
        square = np.where(there, np.maximum(middles**2 - cut**2, 0), 0)
        parts, signs = np.array([beyond, square]), np.array([[-1.0], [1.0]])
        seen = np.where(within, self.counts, 0)
        hidden = np.where(within, 0, self.noise * (self.reach / EDGES) ** _DECAY)
        return ShownExcess(
            sums=np.array([np.sum(signs * seen * beyond), np.sum(seen * square)]),
            noise=np.square(parts) @ np.where(within, 2 * self.noise**2, 0),
            hidden=np.square(parts) @ hidden**2,
            squares=float(np.sum(np.maximum(seen, 0) @ beyond**2)),
        )


@dataclass(frozen=True, slots=True, eq=False)
class ShownExcess:
    """The excess that a histogram shows: ``sums`` of a and of b, ``(2,)``, and their variances.

    ``noise`` ``(2,)`` is the variance by noise in the bins within reach. ``hidden`` ``(2,)`` is the variance by
    residuals that noise may hide further out. ``squares`` is the sum of ``a^2``.
    """

    sums: Array64
    noise: Array64
    hidden: Array64
    squares: float


def simulate_residuals(rng: np.random.Generator, rows: Rows, theta: Array64, truth: Array64) -> Array64:
    """Simulate standardised residuals ``(K,)`` at ``theta`` ``(D,)``.

    Targets follow the model at ``truth`` ``(D,)``.

    Raises:
        TypeError: the model's residuals have a natural bound.
    """
    simulated = []
    for _ in range(_TIMES):
        folded = rows.fold(rows.model.sample_targets(rng, rows.draws, truth))
        simulated.append(require_residuals(rows.model).residuals(folded, theta).standard.astype(np.float64))
    return np.concatenate(simulated)


def choose_cut(residuals: ResidualCounts, *, size: int, sigma: float, asked: float, squares: bool) -> float:
    """Choose the cut with the least expected logarithm of the loss.

    Candidates are the edges of bins and the largest residual. A loss by hidden residuals is unlikely, and large for any
    cut. In a mean of losses, its small differences would decide.

    The loss has three parts. Noise of scores grows with the cut. The excess, after it was measured and restored, has an
    error: the smaller of the measurement's noise and the excess itself, with a few hidden residuals. Last, the excess
    varies from row to row, and its variation in D directions is not restored.

    Args:
        residuals: the histogram.
        size: the number D of parameters.
        sigma: the noise multiplier of all scores together, for sums over all slots.
        asked: the noise multiplier of all sums of excess together, for sums over all slots.
        squares: whether scores have a part ``e^2 - m``.
    """
    candidates = [cut for cut in EDGES if cut < residuals.largest] + [residuals.largest]
    losses, count = [], residuals.count
    for cut in candidates:
        clip = cut * np.sqrt(TUNING.usual_bound * size / count)
        if squares:
            clip += max(cut**2, 1.0) / np.sqrt(2 * count)
        noise = 0.5 * (sigma * clip) ** 2 * size
        bound = compute_excess_bound(residuals, cut, squares=squares)
        shown = residuals.excess(cut)
        by_sum = (asked * bound * np.array([1.0, 1 / compute_square_weight(residuals, cut)])) ** 2
        unusual = np.maximum((shown.sums - residuals.expect(cut)) ** 2 - shown.noise, 0.25 * shown.noise)
        left = np.minimum(by_sum, unusual)
        each = 0.5 * np.array([2 / count, 1 / (2 * count) if squares else 0.0])
        lost = each @ left + 0.5 * size * shown.squares / count if cut < residuals.largest else 0.0
        likely = noise + float(lost)
        losses.append((1 - _UNLIKELY) * np.log(likely) + _UNLIKELY * np.log(likely + each @ shown.hidden))
    return float(candidates[int(np.argmin(losses))])


def compute_excess_bound(residuals: ResidualCounts, cut: float, *, squares: bool) -> float:
    """Compute the clipping norm of a row's excess: that of a residual one bin beyond :attr:`ResidualCounts.reach`.

    The norm is over the two sums of a, and the weighted sum of b if there are ``squares``.
    """
    return float(np.sqrt(2 + int(squares)) * (_find_far(residuals, cut) - cut))


def compute_square_weight(residuals: ResidualCounts, cut: float) -> float:
    """Compute the weight of b: it then equals a at the furthest residual."""
    return 1 / (_find_far(residuals, cut) + cut)


def _find_far(residuals: ResidualCounts, cut: float) -> float:
    """The residual, in deviations, up to which the excess is not clipped; above ``cut``."""
    return float(min(max(residuals.reach, cut) * _NEXT, max(residuals.largest, cut * 1.01)))


@dataclass(frozen=True, slots=True, eq=False)
class Excess:
    """The estimate of the excess of all rows, from answers with one cut.

    ``query`` is the last query. ``sums`` ``(m,)`` are as in the answers of :class:`ExcessSum`, m is 2 or 3, and
    ``variance`` ``(m,)`` are their errors. ``squares`` is the sum of ``a^2`` over rows. ``answers`` are ``(m,)`` each.
    ``usual`` ``(m,)`` are the sums that the model predicts.
    """

    query: ExcessSum
    sums: Array64
    variance: Array64
    squares: float
    answers: tuple[Array64, ...]
    usual: Array64 | float = 0.0

    def gradient(self, rows: Rows, kept: Array64) -> tuple[Array64, Array64]:
        """Compute the part of the sum of scores that the cut removed.

        The mean excess of a row is taken as a linear function of ``t``, the scaled linear predictor of the query. Two
        sums determine it. Its scores with weights ``kept`` ``(M,)`` are summed over the draws.

        Returns:
            The gradient ``(D,)``, and the covariance ``(D, D)`` of its error: that of the sums, and the variation of
            the excess from row to row.
        """
        query, model = self.query, rows.model
        width, size = rows.draws.shape[1], len(query.theta)
        measured = require_residuals(model).residuals(rows.fold(None), query.theta)
        scale = measured.scale.astype(np.float64) / query.scale
        predictor = rows.draws @ query.theta[:width]
        t = np.clip((predictor - query.centre) / query.spread, -1, 1)
        basis = np.column_stack([np.ones(len(t)), t])
        each = rows.count / len(t)
        gram = each * (basis * scale[:, None]).T @ basis + 1e-9 * np.eye(2)
        weighted = rows.draws * (kept * scale)[:, None]
        back = np.zeros((size, len(self.sums)))
        back[:width, :2] = query.scale * each * weighted.T @ basis @ invert(gram)
        if query.squares:
            back[-1, 2] = float(kept.mean()) / query.squares
        covariance = (back * self.variance) @ back.T
        design = rows.draws * (kept * scale * query.scale)[:, None]
        covariance[:width, :width] += self.squares / len(t) * design.T @ design
        # Simulated scores have the same cut, so they contain the usual sums.
        return back @ (self.sums if rows.noise is None else self.sums - self.usual), covariance


def combine(query: ExcessSum, answers: tuple[Array64, ...], noise: float, residuals: ResidualCounts) -> Excess:
    """Combine answers and the histogram to an estimate of the excess.

    The mean of the answers and the histogram's sums are weighted by their precisions; the histogram has no sum of ``a
    t``. Then each sum is shrunk towards the model's prediction, as by James and Stein: the deviation from it is
    multiplied by ``max(0, 1 - 4 / d^2)``, for a distance of d standard deviations. The variance contains hidden
    residuals, times their probability.

    Args:
        query: the last answered query.
        answers: ``(m,)`` each; none for a cut whose excess is not asked for.
        noise: the standard deviation of each value of an answer.
        residuals: the histogram.
    """
    size, unit = 3 if query.squares else 2, np.array([1.0, 1.0, query.squares])
    shown, expected = residuals.excess(query.cut), residuals.expect(query.cut)
    by_histogram = (np.array([shown.noise[0], 0.0, shown.noise[1]]) * unit**2)[:size]
    sums, usual = ((np.array([each[0], 0.0, each[1]]) * unit)[:size] for each in (shown.sums, expected))
    if not answers:
        by_histogram[1] = by_histogram[0] + sums[0] ** 2  # any linear function of the predictor may have this sum
    # Without a bin beyond the cut, the histogram shows nothing.
    certain = np.where(by_histogram > 0, 1 / np.maximum(by_histogram, 1e-12), 0)
    precision = np.maximum(len(answers) / noise**2 + certain, _LEAST_PRECISION)
    unusual = (np.sum(answers, axis=0) / noise**2 + certain * sums) / precision - usual
    gain = np.maximum(0, 1 - _UNUSUAL**2 / np.maximum(precision * unusual**2, 1e-300))
    hidden = (np.array([shown.hidden[0], 0.25 * shown.hidden[0], shown.hidden[1]]) * unit**2)[:size] * _UNLIKELY
    variance = np.where(precision > _LEAST_PRECISION, 1 / precision, 0) + hidden
    return Excess(query, usual + gain * unusual, variance, shown.squares, answers, usual)
