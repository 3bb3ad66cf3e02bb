"""Whether design rows seem isotropic: numbers that hardly correlate, of one variance, normal as far as lengths tell.

Rows of standardised numbers often do, and what labels say of directions then has the mode in closed form
(:mod:`app.inference.methods.surrogate.bearing`). Nothing is asked for it. Squared lengths of isotropic normal rows
follow a chi-squared law up to their scale, which correlation, heavy tails or columns of different spread widen; and the
columns' noised variances must be alike. Where noise is too large for either to tell, rows are not believed to be so.
"""

from dataclasses import dataclass

import numpy as np
import scipy

from app.inference.core.model import Array64
from app.inference.methods.surrogate.moments import Moments
from app.inference.methods.surrogate.population import Lengths, Population

_MOST_UNCERTAIN_VARIANCE = 0.5
"""Noise in a column's variance, relative to it."""
_MOST_UNCERTAIN_BIN = 0.045
"""Noise in a bin of lengths, relative to the number of rows."""
_DEVIATIONS = 3.0
_MOST_MISFIT = 18.0
"""Squared deviations of ten bins together: two in a hundred isotropic tables are above it."""
_BINS_AROUND = 5
_SCALES = 2.0 ** np.arange(-16.0, 1.0, 0.01)
_TINY = float(np.finfo(np.float64).tiny)


@dataclass(frozen=True, slots=True, eq=False)
class Isotropic:
    """``count`` rows of mean ``mean`` ``(k,)`` and standard deviation ``scale`` in every direction, intercept left out.

    Standard deviations of noise: ``uncounted`` relative to the count, ``uncentred`` that of a mean relative to the
    scale, ``unscaled`` relative to the scale.
    """

    count: float
    mean: Array64
    scale: float
    uncounted: float
    uncentred: float
    unscaled: float


def isotropic(population: Population, found: Moments, lengths: Lengths, slots: int) -> Isotropic | None:
    """What rows are if they are isotropic; None where noised answers speak against it, or cannot tell."""
    columns = len(population.mean) - 1
    count, uncounted = _likely_count(float(found.answer[0]), found.noise, float(slots))
    noise = found.scale**2 * found.noise / count
    variances = population.covariance.diagonal()[:-1] * population.count / count
    scale = float(np.sqrt(variances.mean()))
    spread = float(np.sum((variances - variances.mean()) ** 2)) / (columns - 1)
    misfit, uncertain = _misfit(lengths, columns)
    alike = spread <= noise**2 * (1 + _DEVIATIONS * np.sqrt(2 / columns))
    told = noise <= _MOST_UNCERTAIN_VARIANCE * scale**2 and uncertain <= _MOST_UNCERTAIN_BIN
    if not (alike and told and misfit <= _MOST_MISFIT):
        return None
    means, uncentred = _likely_means(*found.means(count))
    unscaled = 0.5 * noise / (scale**2 * np.sqrt(columns))
    return Isotropic(count, means, scale, uncounted / count, uncentred / scale, float(unscaled))


def _likely_count(answer: float, noise: float, slots: float) -> tuple[float, float]:
    """Mean and standard deviation of a belief that gives a full table as much weight as all lesser numbers together."""
    counts = np.linspace(0.0, slots, 2001)
    likely = np.exp(-0.5 * np.square((answer - counts) / noise) + 0.5 * max(0.0, (answer - slots) / noise) ** 2)
    weights = likely / len(counts)
    weights[-1] += likely[-1]
    mean = float(weights @ counts / weights.sum())
    return mean, float(np.sqrt(weights @ np.square(counts - mean) / weights.sum()))


def _likely_means(found: Array64, noise: float) -> tuple[Array64, float]:
    """Means ``(k,)`` shrunk together (James & Stein 1961), and about the noise that is left in each."""
    kept = max(0.0, 1 - len(found) * noise**2 / max(float(found @ found), _TINY))
    unseen = np.sqrt(2 / len(found))  # of squared means: what noise may hide
    return kept * found, noise * float(np.sqrt(max(kept, unseen)))


def _misfit(lengths: Lengths, columns: int) -> tuple[float, float]:
    """Squared deviations from the nearest chi-squared law around its peak, and the noise relative to the rows."""
    counts, noise = lengths.counts, lengths.noise
    edges = lengths.largest * 2.0 ** -np.arange(len(counts) + 1.0)
    below = scipy.stats.chi2.cdf(edges / (_SCALES[:, None] * lengths.largest / columns), columns)
    below[:, 0] = 1  # longer ones count as the first bin
    shares = -np.diff(below)
    totals = np.maximum(shares @ counts / np.square(shares).sum(axis=1), 1.0)
    deviations = np.square((counts - totals[:, None] * shares) / noise)
    best = int(np.argmin(deviations.sum(axis=1)))
    peak = int(np.argmax(shares[best]))
    near = deviations[best, max(0, peak - _BINS_AROUND) : peak + _BINS_AROUND]
    return float(near.sum()), noise / float(totals[best])
