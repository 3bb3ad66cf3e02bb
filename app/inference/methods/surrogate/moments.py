"""From noised moments of single columns, and what is declared of them, to what is believed of design rows.

Declarations say more than bounds: an indicator is its own square, so that its two moments are one, said twice; two
indicators of a category exclude each other, so that their product is known to vanish; and the square of what is -1 or
1 is the count. All of it holds for rows that are weighted or clipped as a whole, too, and costs nothing.
"""

from dataclasses import dataclass

import numpy as np

from app.inference.core.model import Array64
from app.inference.methods.surrogate.declared import Declared
from app.inference.methods.surrogate.population import LEAST_COUNT, Population
from app.inference.private_zone.queries.moments import CENTRE_GRID

_TINY = float(np.finfo(np.float64).tiny)


@dataclass(frozen=True, slots=True, eq=False)
class Moments:
    """A noised sum ``answer`` ``(1 + 2k,)`` of ``(1, z, z * z)`` over rows, with ``z = (x - centre) / scale``.

    ``noise`` is the standard deviation of each value; ``centre`` is ``(k,)``, or one number for all.
    """

    answer: Array64
    scale: float
    noise: float
    known: Declared
    centre: Array64 | float = 0.0

    def population(self, places: int, *, intercept: bool, least: float = LEAST_COUNT) -> Population:
        """At least ``least * places`` rows, and at most the places: room for so many.

        Means shrink towards the centre, and indicators' shares towards zero, where noise is about as much. Variances
        are raised to it: a metric that is too coarse in a direction loses noise there, one that is too fine clips what
        it is to measure. Columns are uncorrelated, but for indicators that exclude each other.
        """
        count = float(np.clip(self.answer[0], min(max(2 * self.noise, least * places), places), places))
        mean, variance, error = self._columns(count)
        covariance = np.diag(np.maximum(variance, error))
        covariance -= np.where(self.known.exclusive, np.outer(mean, mean), 0.0)
        ones = np.ones(int(intercept))
        return Population(count, np.concatenate([mean, ones]), np.pad(covariance, (0, len(ones))))

    def means(self, count: float) -> tuple[Array64, float]:
        """Those of so many rows, ``(k,)``, and the noise in each."""
        sums = self.answer[1 : 1 + len(self.known.group)]
        return self.centre + self.scale * sums / count, self.scale * self.noise / count

    def _columns(self, count: float) -> tuple[Array64, Array64, Array64]:
        """Means, variances and the noise in variances of the columns, each ``(k,)``."""
        known, means, error = self.known, *self.means(count)
        square = self.scale**2 * self.answer[1 + len(means) :] / count
        moved = _shrunk(means - self.centre, error)
        shares, shares_error = self._shares(means, square)
        seen = _shrunk(shares, shares_error / count)
        mean = np.where(known.indicators, seen, self.centre + moved)
        return (
            mean,
            np.select([known.indicators, known.signs], [shares - seen**2, 1 - mean**2], square - moved**2),
            np.select(
                [known.indicators, known.signs],
                [shares_error / count, min(2 * error, 1.0)],
                self.scale**2 * self.noise / count,
            ),
        )

    def _shares(self, means: Array64, square: Array64) -> tuple[Array64, Array64]:
        """Of rows, by either moment of what is its own square, ``(k,)``; and the noise in them, times the count.

        Shares are in [0, 1], and those of a group at most 1 together.
        """
        one, other = 1 / self.scale**2, (1 - 2 * self.centre) / self.scale**4  # inverse variances, of one noise
        certainty = one + other * (1 - 2 * self.centre)
        shares = (one * means + other * (square - np.square(self.centre))) / certainty
        return self.known.shares(shares), self.noise / np.sqrt(certainty)


def _shrunk(means: Array64, error: Array64 | float) -> Array64:
    """Towards zero, where they are hardly above the noise."""
    return means * (np.maximum(0, means**2 - np.square(error)) / np.maximum(means**2, _TINY))


def centre_of(answer: Array64, scale: float, noise: float) -> Array64:
    """``(k,)`` on the grid, of columns within [-1, 1], from a noised sum ``(1 + k,)`` of ``(1, x / scale)``."""
    count = max(float(answer[0]), 2 * noise, 1.0)
    return on_grid(_shrunk(scale * answer[1:] / count, scale * noise / count))


def on_grid(means: Array64) -> Array64:
    """The centres ``(k,)`` nearest to ``means`` that a query may have."""
    return np.asarray(np.rint(np.clip(means, -1.0, 1.0) * CENTRE_GRID) / CENTRE_GRID)
