"""Residuals that no family foretells: where to cut them, and what the cut takes.

Targets without a natural bound may lie further from the model than it foretells. A cut bounds their scores; what it
takes is no noise, and more budget does not mend it. So a noised histogram tells how far residuals lie, the cut is where
noise and excess together lose least, and the excess is asked for: along the intercept and the linear predictor, where
few numbers cost little noise. It is put back into the scores; what remains in doubt is part of the stated covariance.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np

from app.inference.core.model import Array64
from app.inference.methods.one_belief.rows import Rows
from app.inference.methods.one_belief.tuning import TUNING
from app.inference.models.residuals import require_residuals
from app.inference.private_zone.queries.residuals import EDGES, ExcessSum

_MIDDLES: Final = EDGES * 2**0.25
_NEXT: Final = 2**0.5
_SEEN: Final = 3.0  # deviations by which counts stand out
_WINDOWS: Final = (3,)  # bins
_HIDDEN: Final = 1.0  # of the noise in a bin, that may be residuals
_TIMES: Final = 16  # targets drawn for each row
_DECAY: Final = 0.5  # power by which hidden residuals become fewer further out
_UNLIKELY: Final = 0.03  # how likely they are there, where a cut is chosen


@dataclass(frozen=True, slots=True, eq=False)
class Residuals:
    """A noised histogram of residuals: ``counts`` ``(2, B)``, negative and positive, with ``noise`` in each.

    ``largest`` is the largest residual that declared bounds allow. ``foretold`` ``(K,)`` are residuals of targets that
    follow the family, for the ``count`` of rows.
    """

    counts: Array64
    noise: float
    largest: float
    foretold: Array64
    count: float

    def expect(self, cut: float) -> Array64:
        """The sums of ``a`` and of ``b`` that the family foretells, ``(2,)``."""
        inside = np.clip(self.foretold, -cut, cut)
        parts = np.array([self.foretold - inside, self.foretold**2 - inside**2])
        return np.asarray(self.count * parts.mean(axis=1))

    @property
    def _last(self) -> int:
        """The last bin in which residuals stand out of the noise, alone or with those after it; -1: none."""
        total, seen = self.counts.sum(axis=0), -1
        for width in _WINDOWS:
            windows = np.convolve(total, np.ones(width))[width - 1 :]
            found = np.flatnonzero(windows > _SEEN * self.noise * np.sqrt(2 * width))
            seen = max(seen, int(found[-1]) + width - 1) if len(found) else seen
        return min(seen, len(EDGES) - 1)

    @property
    def reach(self) -> float:
        """How far residuals lie, for all that noise shows."""
        last = self._last
        return float(min(EDGES[0] if last < 0 else EDGES[last] * _NEXT, self.largest))

    def excess(self, cut: float) -> "Told":
        """What the histogram tells of the excess beyond a cut."""
        there, within = self.largest > EDGES, self.reach > EDGES
        middles = np.minimum(_MIDDLES, self.largest)
        beyond = np.where(there, np.maximum(middles - cut, 0), 0)
        square = np.where(there, np.maximum(middles**2 - cut**2, 0), 0)
        parts, signs = np.array([beyond, square]), np.array([[-1.0], [1.0]])
        seen = np.where(within, self.counts, 0)
        hidden = np.where(within, 0, _HIDDEN * self.noise * (self.reach / EDGES) ** _DECAY)
        return Told(
            sums=np.array([np.sum(signs * seen * beyond), np.sum(seen * square)]),
            noise=np.square(parts) @ np.where(within, 2 * self.noise**2, 0),
            hidden=np.square(parts) @ hidden**2,
            spread=float(np.sum(np.maximum(seen, 0) @ beyond**2)),
        )


@dataclass(frozen=True, slots=True, eq=False)
class Told:
    """What a histogram tells of the sums of ``a`` and ``b``, ``(2,)`` each.

    ``noise`` and ``hidden`` are the variances by noise in bins where residuals are seen, and by those that noise may
    hide further out. ``spread`` is the sum of ``a^2``.
    """

    sums: Array64
    noise: Array64
    hidden: Array64
    spread: float


def foretell(rng: np.random.Generator, rows: Rows, theta: Array64) -> Array64:
    """Draw standardised residuals ``(K,)`` of targets that follow the family at ``theta``."""
    found = []
    for _ in range(_TIMES):
        folded = rows.folded(rows.model.sample_targets(rng, rows.draws, theta))
        found.append(require_residuals(rows.model).residuals(folded, theta).standard.astype(np.float64))
    return np.concatenate(found)


def choose_cut(residuals: Residuals, *, count: float, size: int, sigma: float, asked: float, squares: bool) -> float:
    """Choose the cut with the least expected loss in nats, of noise and of what is known of the excess.

    Args:
        residuals: the histogram.
        count: of rows.
        size: the number D of parameters.
        sigma: the noise multiplier of all scores together.
        asked: that of the sums of excess together.
        squares: whether scores have a part ``e^2 - m``.
    """
    candidates = [cut for cut in EDGES if cut < residuals.largest] + [residuals.largest]
    losses = []
    for cut in candidates:
        clip = cut * np.sqrt(TUNING.usual_bound * size / count)
        if squares:
            clip += max(cut**2, 1.0) / np.sqrt(2 * count)
        noise = 0.5 * (sigma * clip) ** 2 * size
        bound = excess_bound(residuals, cut, squares=squares)
        told = residuals.excess(cut)
        by_sum = (asked * bound * np.array([1.0, 1 / square_weight(residuals, cut)])) ** 2
        left = np.minimum(by_sum, np.maximum((told.sums - residuals.expect(cut)) ** 2 - told.noise, 0.25 * told.noise))
        left += _UNLIKELY * told.hidden
        lost = 0.5 * (2 * left[0] / count + (left[1] / (2 * count) if squares else 0.0))
        losses.append(noise + (lost + 0.5 * size * told.spread / count if cut < residuals.largest else 0.0))
    return float(candidates[int(np.argmin(losses))])


def excess_bound(residuals: Residuals, cut: float, *, squares: bool) -> float:
    """The clip of a row's excess: one step beyond the reach of the residuals."""
    return float(np.sqrt(2 + int(squares)) * (_far(residuals, cut) - cut))


def square_weight(residuals: Residuals, cut: float) -> float:
    """The weight with which ``b`` reaches as far as ``a``."""
    return 1 / (_far(residuals, cut) + cut)


def _far(residuals: Residuals, cut: float) -> float:
    return float(min(max(residuals.reach, cut) * _NEXT, max(residuals.largest, cut * 1.01)))


@dataclass(frozen=True, slots=True, eq=False)
class Excess:
    """What the cut of a query takes: sums as :class:`ExcessSum` has them, ``variance`` ``(m,)`` and ``spread``.

    ``spread`` is the sum of ``a^2`` over rows; ``answers`` are those of all queries with this cut.
    """

    query: ExcessSum
    sums: Array64
    variance: Array64
    spread: float
    answers: tuple[Array64, ...]

    def gradient(self, rows: Rows, kept: Array64) -> tuple[Array64, Array64]:
        """What to add to a score with weights ``kept`` ``(M,)``: the gradient ``(D,)`` and its covariance."""
        query, model = self.query, rows.model
        width, size = rows.draws.shape[1], len(query.theta)
        found = require_residuals(model).residuals(rows.folded(None), query.theta)
        scale = found.scale.astype(np.float64) / query.scale
        predictor = rows.draws @ query.theta[:width]
        t = np.clip((predictor - query.centre) / query.spread, -1, 1)
        basis = np.column_stack([np.ones(len(t)), t])
        each = rows.count / len(t)
        gram = each * (basis * scale[:, None]).T @ basis + 1e-9 * np.eye(2)
        weighted = rows.draws * (kept * scale)[:, None]
        back = np.zeros((size, len(self.sums)))
        back[:width, :2] = query.scale * each * weighted.T @ basis @ np.linalg.inv(gram)
        if query.squares:
            back[-1, 2] = float(kept.mean()) / query.squares
        covariance = (back * self.variance) @ back.T
        design = rows.draws * (kept * scale * query.scale)[:, None]
        covariance[:width, :width] += self.spread / len(t) * design.T @ design
        return back @ self.sums, covariance


def combine(query: ExcessSum, answers: tuple[Array64, ...], noise: float, residuals: Residuals) -> Excess:
    """Average answers, add what the histogram tells, and shrink what may be noise towards what the family foretells.

    Args:
        query: the last of those that were answered.
        answers: their answers, ``(m,)`` each.
        noise: in each value of an answer.
        residuals: the histogram.
    """
    told, size = residuals.excess(query.cut), len(answers[0])
    unit = np.array([1.0, 1.0, query.squares])[:size]
    sums = np.array([told.sums[0], 0.0, told.sums[1]])[:size] * unit
    variance = np.array([told.noise[0], np.inf, told.noise[1]])[:size] * unit**2
    certain = len(answers) / noise**2
    precision = certain + 1 / np.maximum(variance, 1e-12)
    mean = (certain * np.mean(answers, axis=0) + sums / np.maximum(variance, 1e-12)) / precision
    expected = residuals.expect(query.cut)
    usual = np.array([expected[0], 0.0, expected[1]])[:size] * unit
    kept = np.maximum(0, 1 - 1 / np.maximum(precision * (mean - usual) ** 2, 1e-300))
    hidden = np.array([told.hidden[0], 0.25 * told.hidden[0], told.hidden[1]])[:size] * unit**2
    return Excess(query, usual + kept * (mean - usual), 1 / precision + hidden, told.spread, answers)
