"""What a score says along the parameter, bounded by itself where labels are steep.

Of a steep linear predictor only rows near zero have labels that are open. In the metric of their information rows far
along the parameter are long, and so are rows near zero, since few of them tell; a bound takes most of both. Where
labels follow the model that costs little. But labels of which one in a hundred is wrong are contradicted by rows far
out, and separable ones, or a prior that pulls, by the surest ones: bounded as one vector, scores go after some slope
several times steeper, or flatter, however little noise there is.

All that goes wrong is along the parameter, in one direction of D: rows on either side of it are alike. So a score is
asked in two parts. Its part along the parameter is bounded where the predictor is beyond ``furthest`` in either
direction, the others as ever, and both share one noise. That costs ``sigma^2 (sqrt(D - 1) C + F / l)^2 / 2`` nats with
l the length of the parameter in the metric and F the furthest predictor; it loses, of the prior's pull, what is bounded
of the information along the parameter, and of wrong labels what is bounded of the predictors. F costs least in all.
"""

from statistics import NormalDist
from typing import Final, NamedTuple

import numpy as np

from app.inference.core.model import Array64
from app.inference.methods.surrogate.contribution_bounds import score_bound
from app.inference.methods.surrogate.elongation import longest
from app.inference.methods.surrogate.matrices import Metric, metric
from app.inference.methods.surrogate.state import State

STEEP: Final = 2.2
"""The deviation of predictors from which on labels are steep."""
_STEEPEST = 1e6
"""Beyond it nothing is to be learned, and numbers are about to overflow."""
_WRONG_LABELS = 0.04
"""The squared share of the slope that labels beyond the furthest predictor may be worth: a fifth to two fifths where
one in ten to one in a hundred is wrong, nothing where they follow the model."""
_LEAST_FURTHEST, _MOST_FURTHEST, _CANDIDATES = 1.5, 3.5, 40
_QUANTILES: Final = np.array([NormalDist().inv_cdf((place + 0.5) / 1024) for place in range(1024)])
_TINY = 1e-30


class Parts(NamedTuple):
    """A metric, and the bound of its last coordinate, along the parameter, if it is bounded by itself; 0 if not."""

    metric: Metric
    apart: float = 0.0

    @property
    def across(self) -> Metric:
        """The other coordinates, or all of them."""
        return Metric(self.metric.factor, self.metric.whitening[:-1]) if self.apart else self.metric

    def furthest(self, theta: Array64) -> float:
        """The predictor up to which the part along ``theta`` is not bounded, whatever labels are."""
        return self.apart * float(theta @ theta) / float(self.metric.whitening[-1] @ theta)


def in_parts(state: State, within: Metric) -> Parts:
    """How a score is asked, whose metric was to be ``within``."""
    setup, theta, size = state.setup, state.theta, len(state.theta)
    steep = setup.schedule.labels and setup.curvature is not None and not setup.columnwise
    if not (steep and STEEP <= _steepness(state) < _STEEPEST):
        return Parts(within)
    basis, length = turned(within, theta)
    bound = score_bound(setup.schedule)
    along, across = _furthest(state, length) / length, np.sqrt(size - 1) * bound
    share = along / (along + across)
    apart = float(np.sqrt(share) * bound)
    scale = np.append(np.full(size - 1, np.sqrt(1 - share)), apart / along)
    return Parts(Metric(within.factor @ (basis / scale), scale[:, None] * basis.T @ within.whitening), apart)


def turned(within: Metric, theta: Array64) -> tuple[Array64, float]:
    """An orthonormal basis ``(D, D)`` of a metric, the last along ``theta``, and how long that is there."""
    along = within.factor.T @ theta
    length = float(np.linalg.norm(along))
    basis, _ = np.linalg.qr(np.column_stack([along, np.eye(len(theta))]))
    return np.column_stack([basis[:, 1:], along / length]), length


def _furthest(state: State, length: float) -> float:
    """The F that costs least, for a parameter of that ``length`` in the metric."""
    setup, within = state.setup, metric(state.information)
    predictors, lengths, information = _rows(state)
    at = np.geomspace(_LEAST_FURTHEST, _MOST_FURTHEST * state.population.spread(state.theta, 1), _CANDIDATES)
    weights = np.minimum(1.0, at[:, None] / np.maximum(lengths, _TINY))
    kept = weights @ information / max(float(information.sum()), _TINY)
    lost = 1 - weights @ predictors / max(float(predictors.sum()), _TINY)
    pull, learned = within.whitening @ setup.prior.gradient(state.theta), within.factor.T @ state.theta
    sigma = setup.schedule.effective_sigma / np.sqrt(setup.schedule.score_shares.sum())
    bounds = np.sqrt(len(pull) - 1) * score_bound(setup.schedule) + at / length
    wrong = (pull @ pull) * np.square(1 / np.maximum(kept, _TINY) - 1)
    nats = np.square(sigma * bounds) + wrong + _WRONG_LABELS * (learned @ learned) * np.square(lost)
    return float(at[np.argmin(nats)])


def _steepness(state: State) -> float:
    """The deviation of predictors, by their mean absolute one: few rows far out make no slope steep."""
    predictors = _predictors(state)
    return float(np.sqrt(np.pi / 2) * np.mean(np.abs(predictors - predictors.mean())))


def _predictors(state: State) -> Array64:
    """``(n,)``: of rows of the population."""
    population, theta = state.population, state.theta
    if population.tailed_rows is not None:
        return np.asarray(population.tailed_rows @ theta)
    deviation = np.sqrt(max(float(theta @ population.covariance @ theta), 0.0))
    return np.asarray(population.mean @ theta + deviation * _QUANTILES)


def _rows(state: State) -> tuple[Array64, Array64, Array64]:
    """Of rows of the population: absolute predictors, how long scores may be along them, and their information."""
    setup, predictors = state.setup, _predictors(state)
    assert setup.curvature is not None
    rows = np.zeros((len(predictors), setup.model.row_width), dtype=np.float32)
    rows[:, 0] = predictors
    first = np.eye(1, len(state.theta))
    scores = longest(setup.model, rows, first[0], Metric(first.T, first))
    return np.abs(predictors), scores, setup.curvature(predictors) * np.square(predictors)
