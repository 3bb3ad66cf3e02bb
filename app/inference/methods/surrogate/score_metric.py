"""The metric that a score is asked in, where the prior pulls against labels that are nearly certain.

What a bound takes from a score, it takes from rows and not from the prior. Along a level whose labels are nearly
certain both balance: the prior pulls as much as all that few uncertain rows say, and the level's rows are so long that
the bound takes most of it. What it took is restored by what is believed of such rows
(:mod:`app.inference.methods.surrogate.efficiency`), and where that is wrong by a share of it, the mode is by as large a
share of the pull. So the metric is made wider along these rows: then the bound takes less, whatever is believed.

With r the length of a row beside the bound, P the square of what the mode may be off there, and V the variance of
noise were scores all that is asked, both in deviations of the posterior, a metric m times as wide costs
``m^2 V + P (1 - m / r)^2``, least at ``m = r P / (P + r^2 V)``. Where rows may be at several lengths, P counts by the
mean over them. Where the prior pulls little, as along most columns, nothing changes.
"""

from typing import Final

import numpy as np

from app.inference.core.model import Array64
from app.inference.methods.surrogate.disputed import Places, disputed
from app.inference.methods.surrogate.elongation import longest
from app.inference.methods.surrogate.matrices import Metric
from app.inference.methods.surrogate.matrix_metric import widened
from app.inference.methods.surrogate.state import State

_WRONG_OF_KNOWN, _WRONG = 0.2, 1.0
"""What is restored for a row, relative, that may be wrong: of columns known to have two values, and of others."""
_LONGER: Final = 1.5
"""Times that rows may be as long as those at the rarer value, since that is noised and other columns vary."""
_MOST: Final = 1e3
"""Times that a direction becomes wider, however little noise there is."""
_WORTHWHILE: Final = 4.0
"""Times V that P is where a wider metric costs less than it is worth, for a row twice as long as the bound."""
_TINY = 1e-30


def roomy_for_scores(state: State, within: Metric, bound: float) -> Metric:
    """``within``, or one as much wider along columns' rarer values as that is worth, for scores of that ``bound``."""
    setup, variance = state.setup, (state.setup.schedule.effective_sigma * bound) ** 2
    if setup.curvature is None:
        return within
    pull = within.whitening @ setup.prior.gradient(state.theta)
    if pull @ pull <= _WORTHWHILE * variance:
        return within
    rows, wrong, nearer = _places(state)
    factors = _factors(state, rows, within)
    squared = np.maximum(np.vecdot(factors, factors), _TINY)
    lost = np.square(wrong * (factors @ pull)) / squared
    lengths = _LONGER * np.sqrt(squared)[:, None] * nearer / bound
    wider = np.minimum(_cheapest(lost, variance, lengths), _MOST)
    return widened(within, factors, squared / np.square(wider)).metric if np.any(wider > 1) else within


def _places(state: State) -> Places:
    """Rarer values that are known, or seem to be amounts; and those of columns that are disputed."""
    rows, known = state.population.rarer_values
    told = Places(rows, np.where(known, _WRONG_OF_KNOWN, _WRONG), np.ones((len(rows), 1)))
    also = disputed(state)
    nearer = np.broadcast_to(told.nearer, (len(rows), also.nearer.shape[1]))
    both = Places(rows, told.wrong, nearer), also
    return Places(*(np.concatenate(each) for each in zip(*both, strict=True)))


def _cheapest(lost: Array64, variance: float, lengths: Array64) -> Array64:
    """``(n,)``: the m that are least in ``m^2 V + P mean_k (1 - m / r_k)^2`` over lengths ``(n, k)`` above m.

    Costs are convex, and their slope is the least of those that count the j longest rows: its zero is the largest of
    theirs.
    """
    shorter = 1 / np.maximum(-np.sort(-lengths, axis=1), _TINY)
    noise = lengths.shape[1] * variance / np.maximum(lost, _TINY)
    return np.asarray(
        np.max(np.cumsum(shorter, axis=1) / (noise[:, None] + np.cumsum(np.square(shorter), axis=1)), axis=1)
    )


def _factors(state: State, rows: Array64, within: Metric) -> Array64:
    """The longest score ``(n, D)`` that each of ``rows`` may have, whatever its label."""
    model, theta = state.setup.model, state.theta
    folded = model.fold(rows, np.zeros(len(rows))).astype(np.float32)
    found = rows @ within.whitening.T
    return np.asarray(
        found * (longest(model, folded, theta, within) / np.maximum(np.linalg.norm(found, axis=1), _TINY))[:, None]
    )
