"""How far a unit's contribution to a score or an information matrix may reach, and the noise that follows.

Bounds grow as the noise shrinks: C^2 and R are ``kappa D / slots``, with the kappa that balances noise (which grows
with it) against what clipping takes (which falls about as 1/kappa^2). Rows of a rare level are long in every metric
that knows the level, and a matrix of which they are clipped takes the level for less known than it is, round after
round; where no column is such a level, or all of them are known (:mod:`app.inference.methods.surrogate.matrix_metric`),
matrices need down to a third of that room, and have as much less noise. Where labels are nearly certain, the few rows
that still tell something tell so much more than the mean, and need more again.
"""

import numpy as np

from app.inference.methods.surrogate.schedule import Schedule

_LEAST_SCORE, _MOST_SCORE = 1.5, 12.0
"""Kappa of scores: what clipping takes is worth more noise where there is less of it."""
_MODERATE, _MODERATE_OF_MATRICES = 5.0, 8.0
"""Nats that a single score of the whole budget loses, and a matrix's squared noise, below which kappa grows."""
_WIDER, _LOUD = 1.25, 0.25
"""Times a score's kappa where matrices are clear, and a single score of the whole budget loses so many nats: labels
that follow no model lose more by bounds than by noise."""
_LEAST_INFORMATION, _LAST_INFORMATION, _MOST_INFORMATION = 1.9, 3.0, 20.0
_UNKNOWN_LEVELS, _QUIET_UNKNOWN_LEVELS = 1.4, 0.9
"""Times the least kappa where noise is moderate: rare levels are clipped out of the posterior's shape below it."""
_KNOWN_LEVELS, _QUIET_KNOWN_LEVELS = 0.4, 0.25
_USUAL_CONCENTRATION = 1.6
"""Of linear predictors that vary by 1.5: what is left by labels that are so certain needs no more room."""
_RELIEF, _RELIEF_OF_AVERAGES = 1 / 3, 0.426
"""How fast bounds grow as noise falls: faster for averages, which lose noise with every round, but never a bias."""


def score_bound(schedule: Schedule) -> float:
    """C, in the metric of the information matrix."""
    kappa = np.clip(_LEAST_SCORE * (_MODERATE / schedule.noise) ** (1 / 3), _LEAST_SCORE, _MOST_SCORE)
    wider = _WIDER if _wider(schedule) else 1.0
    return float(np.sqrt(wider * kappa * schedule.dimension / schedule.counted))


def information_bound(schedule: Schedule, turn: int, concentration: float = np.inf) -> float:
    """R, in the same metric.

    ``concentration``: how much more a row may tell than the mean row; infinite where a rare level may be unknown.
    """
    relative = schedule.effective_sigma / np.sqrt(schedule.information_share)
    relative *= schedule.dimension**2 / schedule.counted
    least = _LAST_INFORMATION if turn == schedule.rounds - 1 else _LEAST_INFORMATION
    balance, relief = (_QUIET_UNKNOWN_LEVELS, _RELIEF_OF_AVERAGES) if schedule.quiet else (_UNKNOWN_LEVELS, _RELIEF)
    kappa = _kappa(balance, relief, least, relative)
    if np.isfinite(concentration):
        balance = _QUIET_KNOWN_LEVELS if schedule.quiet else _KNOWN_LEVELS
        narrow = _kappa(balance, _RELIEF_OF_AVERAGES, _LEAST_INFORMATION, relative)
        kappa = min(kappa, narrow * max(1.0, concentration / _USUAL_CONCENTRATION))
    return kappa * schedule.dimension / schedule.counted


def score_noise(schedule: Schedule, turn: int) -> float:
    """Standard deviation of a score's noise in the metric, in sums over all slots."""
    return float(schedule.effective_sigma / np.sqrt(schedule.score_shares[turn]) * score_bound(schedule))


def information_noise(schedule: Schedule, turn: int, concentration: float = np.inf) -> float:
    """Standard deviation of the noise on a diagonal entry of an information matrix."""
    bound = information_bound(schedule, turn, concentration)
    return float(schedule.effective_sigma / np.sqrt(schedule.information_share) * bound)


def _wider(schedule: Schedule) -> bool:
    return schedule.labels and schedule.averages and not schedule.crowded and schedule.noise > _LOUD


def _kappa(balance: float, relief: float, least: float, relative: float) -> float:
    return float(np.clip(balance * least * (_MODERATE_OF_MATRICES / relative**2) ** relief, least, _MOST_INFORMATION))
