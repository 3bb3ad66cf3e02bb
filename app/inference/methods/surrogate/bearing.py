"""Where the mode is, from bounded scores at zero, if rows are isotropic.

For isotropic rows z and labels that depend on ``beta'z`` alone, the mean of ``(y - p) z / |z|`` points along ``beta``
(Brillinger 1983; Li & Duan, *Annals of Statistics* 17, 1989), and if they are normal, its length tells ``|beta|``. A
bounded score at a parameter without slopes is that sum: every row has full length C there, whatever its label, where
near the mode most rows have a small residual. Noise costs half as much, and no search is needed.

It rests on a belief, which bounded scores near the mode, unbiased whatever the rows are, then test: what lies between
the two beyond the noise of both counts as the belief's error. Length and intercept rest on counts and means as well.
"""

from dataclasses import dataclass, replace

import numpy as np

from app.inference.core.model import Array64
from app.inference.core.priors import Prior
from app.inference.methods.surrogate.isotropy import Isotropic
from app.inference.methods.surrogate.scores import Score, mode_of
from app.inference.methods.surrogate.single_index import BinaryResponse, SingleIndex
from app.inference.private_zone.queries import BoundedScoreSum

MOST_UNEVEN = 0.7
"""The share of the commoner label: where one is rare, scores at the mode lose as little to their bound."""

STEEP = 3.0
"""Labels of steeper slopes are nearly certain, and hardly tell how steep."""

_CLIP = 0.25
"""Of the root mean square length: hardly a row is shorter, so that all have length C."""
_LEAST_LEFT = 0.05
"""Of the squared length of answers, after that of the noise."""
_LEAST_SUM = 1e-6
_BY_CHANCE = 0.5
"""Deviations that answers may be apart beyond their noise before it counts as error."""


def bound_of(columns: int) -> float:
    """C, in standard deviations of the ``columns``."""
    return _CLIP * float(np.sqrt(columns))


@dataclass(frozen=True, slots=True, eq=False)
class Bearing:
    """Answers so far: a weighted mean's sums, ``total`` ``(D,)`` of ``(y - p) (z, 1) / |(z, 1)|`` over all rows.

    ``weight`` is the inverse of its noise's variance in units of ``sigma^2``, ``squared_weight`` the sum of squares of
    single answers' weights, ``centre`` the weighted sum of the p,
    ``intercept`` the predictor at which the next score is asked. ``doubted``: bounded scores have spoken against it.
    """

    rows: Isotropic
    labels: BinaryResponse
    total: Array64
    weight: float = 0.0
    squared_weight: float = 0.0
    centre: float = 0.0
    intercept: float = 0.0
    doubted: bool = False

    @property
    def query(self) -> BoundedScoreSum:
        """Of standardised rows, at a parameter without slopes."""
        columns = len(self.rows.mean)
        whitening = np.eye(columns + 1)
        whitening[:-1, :-1] /= self.rows.scale
        whitening[:-1, -1] = -self.rows.mean / self.rows.scale
        return BoundedScoreSum(np.append(np.zeros(columns), self.intercept), whitening, bound_of(columns))

    def with_answer(self, answer: Array64, share: float) -> "Bearing":
        """One more answer ``(D,)`` to :attr:`query`, of that share of the budget."""
        rate, longest = self.labels.at(self.intercept)
        weight = share / longest**2
        return replace(
            self,
            total=self.total + weight * answer * longest / bound_of(len(self.rows.mean)),
            weight=self.weight + weight,
            squared_weight=self.squared_weight + weight**2,
            centre=self.centre + weight * rate,
        )

    def found(self, sigma: float, rate: float) -> "Found":
        """What all answers say; ``sigma`` is the noise multiplier of sums over all slots, ``rate`` that of sampling."""
        rows, columns, noise = self.rows, len(self.rows.mean), sigma**2 / self.weight
        mean, law = self.total / self.weight, SingleIndex(self.labels, columns, self.centre / self.weight)
        slopes = mean[:-1] + _LEAST_SUM * np.eye(columns)[0]  # of some direction, whatever they are
        squared = float(slopes @ slopes)
        length = float(np.sqrt(max(squared - columns * noise, _LEAST_LEFT * squared)))
        slope, offset = law.solved(np.array([length, mean[-1]]) / rows.count)
        across = law.across(slope, offset)
        sampling = across.variance * (1 / rate - 1) * self.squared_weight / self.weight**2
        variance = noise + rows.count / columns * (sampling + across.beside_the_mode(columns))
        spread = law.spread(slope, offset, rows, variance)
        direction = slopes / np.sqrt(squared) / rows.scale
        plane = np.column_stack([np.append(direction, -rows.mean @ direction), np.eye(columns + 1)[-1]])
        known = max(slope / (1 + spread[0, 0] / slope**2), min(slope, STEEP))
        mean_label = law.mean_label(slope, offset)
        return Found(
            theta=plane @ [known, offset],
            variance=variance * across.information / (rows.count * across.own**2),
            plane=plane,
            spread=spread,
            intercept=self.labels.predictor(mean_label),
            worthwhile=max(mean_label, 1 - mean_label) <= MOST_UNEVEN,
        )


@dataclass(frozen=True, slots=True, eq=False)
class Found:
    """The mode ``theta`` ``(D,)``, with noise of ``variance`` in every direction of the information's metric.

    But for the ``plane`` ``(D, 2)`` of slope and intercept, where its covariance is ``spread`` ``(2, 2)``.
    ``intercept`` is the predictor of the mean label. ``worthwhile``: whether labels are even enough for all of it.
    """

    theta: Array64
    variance: float
    plane: Array64
    spread: Array64
    intercept: float
    worthwhile: bool

    def pulled(self, prior: Prior, information: Array64) -> "Found":
        """The mode of the posterior, for one of the likelihood: a step of the ``prior``'s, whose pull is small."""
        return replace(self, theta=self.theta + np.linalg.solve(information, prior.gradient(self.theta)))

    def weighed(self, scores: tuple[Score, ...], information: Array64) -> Score:
        """Itself as a score asked at its mode, with as much more variance as ``scores`` contradict it.

        In the plane, it is the weighted mean of both, so that scores count twice there.
        """
        size, nothing = len(self.theta), np.zeros(len(self.theta))
        if not scores:
            return Score(self.theta, nothing, self.variance, information)
        weights = np.array([1 / score.variance for score in scores])
        noise = 1 / float(weights.sum())
        apart = noise * weights @ np.array([mode_of(score, information) for score in scores]) - self.theta
        inverse = np.linalg.inv(self.plane.T @ information @ self.plane)
        within = inverse @ self.plane.T @ information @ apart
        rest = apart - self.plane @ within
        moved = self.theta + self.plane @ self.spread @ np.linalg.solve(self.spread + noise * inverse, within)
        expected = (noise + self.variance) * (1 + _BY_CHANCE * np.sqrt(2 / size))
        error = max(float(rest @ information @ rest) / (size - 2) - expected, 0.0)
        return Score(moved, nothing, self.variance + error, information)
