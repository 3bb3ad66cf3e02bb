"""From noised moments of single columns, and what is declared of them, to what is believed of design rows.

Declarations say more than bounds: an indicator is its own square, so that its two moments are one, said twice; two
indicators of a category exclude each other, so that their product is known to vanish; and the square of what is -1 or
1 is the count. All of it holds for rows that are weighted or clipped as a whole, too, and costs nothing.
"""

from dataclasses import dataclass

import numpy as np

from app.inference.protocol import Array64
from app.inference.surrogate.declared import Declared
from app.inference.surrogate.population import LEAST_COUNT, Population

_TINY = float(np.finfo(np.float64).tiny)


@dataclass(frozen=True, slots=True, eq=False)
class Moments:
    """A noised sum ``answer`` ``(1 + 2k,)`` of ``(1, z, z * z)`` over rows, with ``z = x / scale``.

    ``noise`` is the standard deviation of each value.
    """

    answer: Array64
    scale: float
    noise: float
    known: Declared

    def population(self, slots: int, *, intercept: bool, least: float = LEAST_COUNT) -> Population:
        """At least ``least * slots`` rows, and at most the slots: room for so many.

        Means shrink where they are hardly above the noise. Variances are raised to it: a metric that is too coarse in a
        direction loses noise there, one that is too fine clips what it is to measure. Columns are uncorrelated, but for
        indicators that exclude each other.
        """
        count = float(np.clip(self.answer[0], min(max(2 * self.noise, least * slots), slots), slots))
        mean, square, error, square_error = self._columns(count)
        mean = mean * (np.maximum(0, mean**2 - error**2) / np.maximum(mean**2, _TINY))
        covariance = np.diag(np.maximum(square - mean**2, square_error))
        covariance -= np.where(self.known.exclusive, np.outer(mean, mean), 0.0)
        ones = np.ones(int(intercept))
        return Population(count, np.concatenate([mean, ones]), np.pad(covariance, (0, len(ones))))

    def _columns(self, count: float) -> tuple[Array64, Array64, Array64, Array64]:
        """Means and mean squares of the columns, and the noise in either; each ``(k,)``."""
        columns = len(self.known.group)
        first, second = np.array([[self.scale], [self.scale**2]]) * self.answer[1:].reshape(2, columns) / count
        error, square_error = self.scale * self.noise / count, self.scale**2 * self.noise / count
        one, other = 1 / self.scale**2, 1 / self.scale**4  # inverse variances, of one noise
        shares = self.known.shares((one * first + other * second) / (one + other))
        shares_error = self.noise / (count * np.sqrt(one + other))
        indicators, signs = self.known.indicators, self.known.signs
        return (
            np.where(indicators, shares, first),
            np.select([indicators, signs], [shares, np.ones(columns)], second),
            np.where(indicators, shares_error, error),
            np.select([indicators, signs], [shares_error, min(2 * error, 1.0)], square_error),
        )
