"""Whether a descent on noised potentials has arrived: what its last residuals still ask for, from answers alone.

Where data and pseudocoreset differ by a gradient ``g`` at the posterior's mean, the residual's odd part over antithetic
draws ``mean +- delta`` is about ``delta'g``, so that ``mean(delta odd)`` estimates ``H^-1 g``: the Newton step that the
data ask for. Averaged over the end of a run it holds noise, which shrinks, and distance, which does not.

Answers are mute where clipping takes most of what units say: sums of mere directions agree with a pseudocoreset that
is anywhere. So C is held against potentials of rows that know the declarations only.
"""

from typing import Final

import numpy as np

from app.inference.core.design import Design
from app.inference.core.model import Array64, Model
from app.inference.post.diagnostics import bearable_noise
from app.inference.post.gradients import centred_potentials
from app.inference.post.laplace import solve_transposed

MOST_NATS: Final = 10.0
"""Beyond, the step is so long that nobody knows what the posterior is there."""
LEAST_KEPT: Final = 0.5
"""Of the length of the potentials of declared rows, by the last clip."""


def step_asked(draws: Array64, mean: Array64, residual: Array64) -> Array64:
    """``H^-1 g`` ``(D,)`` from the ``residual`` ``(S,)`` at antithetic ``draws`` ``(S, D)`` around ``mean``."""
    pairs, second = len(draws) // 2, (len(draws) + 1) // 2
    odd = residual[:pairs] - residual[second : second + pairs]
    return np.asarray((odd @ (draws[:pairs] - mean)) / (2 * pairs))


def noise_nats(step: Array64, information: Array64, noise: float, draws: int, count: int) -> float:
    """Nats by which the mean is off: of the mean ``step`` (D,) of ``count``, but at least what noise explains.

    ``noise`` is the standard deviation of a residual at one of ``draws``; the pairs' noise is independent.
    """
    least = len(step) * noise**2 / (4 * (draws // 2) * count)
    return max(least, 0.5 * float(step @ information @ step))


def noise_in_sds(step: Array64, factor: Array64, noise: float, draws: int, count: int) -> Array64:
    """By which each parameter is off, in posterior standard deviations ``(D,)``: as :func:`noise_nats`, one by one.

    ``factor`` ``(D, D)`` is the lower triangular one of the information.
    """
    least = noise / np.sqrt(2 * (draws // 2) * count)
    covariance = np.square(solve_transposed(factor, np.eye(len(factor)))).sum(axis=1)
    return np.asarray(np.maximum(least, np.abs(step) / np.sqrt(covariance)))


def measure_kept_share(model: Model, rows: Array64, draws: Array64, clip: float, rows_per_unit: int) -> float:
    """The share of the length of centred potentials at ``draws`` ``(S, D)`` that ``clip`` leaves, [0, 1].

    ``rows`` are folded; those of a unit count as independent.
    """
    with np.errstate(over="ignore", invalid="ignore"):  # a length beyond all numbers is not kept
        potentials = centred_potentials(model, rows, draws)
        lengths = np.sqrt(np.vecdot(potentials, potentials) * rows_per_unit)
    return float(np.minimum(lengths, clip).sum() / max(float(lengths.sum()), np.finfo(np.float64).tiny))


def tellable(model: Model, design: Design, u: Array64, theta: Array64) -> bool:
    """Whether plain clipping leaves nats that mean what they say, judged at design rows ``u`` ``(n, p)``.

    A label tells little, whatever the row. What a number tells has no bound: where it depends on the parameter, as that
    of a rate or under an unknown noise scale does, rows are clipped by a part that no answer shows.
    """
    if design.target is not None and design.target.is_discrete:
        return True
    rows = model.fold(u, np.zeros(len(u))).astype(np.float32)
    flat, found = (model.information_factors(rows, each) for each in (np.zeros_like(theta), theta))
    return bool(np.allclose(flat, found, rtol=1e-3))


def has_arrived(nats: float, learned: float) -> bool:
    """Whether ``nats`` are few, and few of those ``learned`` between the prior's mean and what was found."""
    return bool(nats <= min(MOST_NATS, bearable_noise(learned)))
