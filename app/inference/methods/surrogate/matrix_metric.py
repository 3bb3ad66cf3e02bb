"""The metric that an information matrix is asked in, where columns are rare levels.

Rows of a rare level are as much longer than others, in the metric of what is believed, as the level is rarer. A bound
that is narrow for all others takes most of what they say, the level seems less known than it is, the next metric makes
its rows longer still, and each matrix takes more of it. So the metric is changed along those rows alone, until they
fit: what that adds to the noise, it adds in the directions of the levels, where a count of few rows is noisy anyway.
"""

from dataclasses import dataclass

import numpy as np
import scipy

from app.inference.core.model import Array64
from app.inference.methods.surrogate.matrices import Metric
from app.inference.methods.surrogate.state import State

_MOST_NOISE = 0.5
"""Of a level's information, in standard deviations, that room for its rows may cost."""
_MOST_NOISE_UNSEEN = 0.2
"""The same of all levels, where noise may hide some of them: most columns where it may hide one are none."""
_LEAST_INFORMATION = 0.02
"""Of a row, that it is believed to have at least: where labels seem certain, the parameter may be wrong."""
_MOST = 1e6
"""Times that a direction becomes wider, however little noise there is."""
_TINY = 1e-30


@dataclass(frozen=True, slots=True, eq=False)
class Roomy:
    """``metric``, and the factor ``(D, D)`` by which it is wider than that of the belief; the identity where it is it.

    A matrix Y in this metric is ``wider Y wider'`` in that of the belief.
    """

    metric: Metric
    wider: Array64


def roomy(state: State, within: Metric, bound: float, noise: float) -> Roomy:
    """In which rows of rare levels contribute ``bound`` at most, as ``noise``, that of a diagonal entry, allows."""
    size, curvature = len(state.theta), state.setup.curvature
    rows = state.population.level_rows
    unseen = bool(np.any(state.population.unseen))
    if curvature is None or not len(rows) or (state.population.unknown_levels and not unseen):
        return Roomy(within, np.eye(size))
    information = np.maximum(curvature(rows @ state.theta), _LEAST_INFORMATION)
    affordable = (_MOST_NOISE_UNSEEN if unseen else _MOST_NOISE) / max(noise, _TINY)
    most = float(np.clip(affordable, 1.0, _MOST))
    factors = np.sqrt(information)[:, None] * rows @ within.whitening.T
    return widened(within, factors, np.maximum(bound, np.vecdot(factors, factors) / most))


def widened(within: Metric, factors: Array64, goals: Array64) -> Roomy:
    """A metric wider than ``within``, in which squared lengths of ``factors`` ``(n, D)`` are below ``goals`` ``(n,)``.

    What one factor adds only shortens the others.
    """
    wider = np.asarray(np.linalg.cholesky(_squared(factors, goals)))
    narrower = np.asarray(scipy.linalg.solve_triangular(wider, within.whitening, lower=True))
    return Roomy(Metric(within.factor @ wider, narrower), wider)


def _squared(factors: Array64, goals: Array64) -> Array64:
    """``M`` ``(D, D)``, at least the identity, with ``f' M^-1 f <= goal`` for each factor f whose length is finite."""
    squared, inverse = np.eye(factors.shape[1]), np.eye(factors.shape[1])
    for factor, goal in zip(factors, goals, strict=True):
        reached = inverse @ factor
        length = float(factor @ reached)
        if goal < length < np.inf:
            more = 1 / goal - 1 / length
            squared += more * np.outer(factor, factor)
            inverse -= more / (1 + more * length) * np.outer(reached, reached)
    return squared
