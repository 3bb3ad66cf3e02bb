"""Columns of two values, such as flags that nobody declared: told by what winsorising leaves of squares and means.

The rarer value of ``1 / (1 + d^2)`` of the rows lies d deviations from the mean, and the other one ``1 / d`` on the
other side. Winsorised at NEAR, below d, their mean square is ``(1 + NEAR^2) / (1 + d^2)`` and their mean
``(d - NEAR) / (1 + d^2)`` away from the rarer one; winsorised at FAR, above d, nothing is taken. Skewed amounts of the
same mean square have 0.6 to 0.8 of that mean and tails on both sides none, and most have something beyond FAR. Those
that are skewed least, or cut off by bounds, look most like two values: below LEAST deviations nothing is told.
"""

from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from app.inference.core.model import Array64
from app.inference.private_zone.queries.tails import FAR, NEAR

USUAL: Final = 0.7
"""What lies beyond FAR, over the square of what lies beyond NEAR, where tails are those of amounts."""
_LACKING: Final = 0.4
"""Of the mean that two values have, that log-normal amounts lack; exponential ones lack 0.23."""
LEAST: Final = 3.0
"""Deviations to the rarer value: that of an exponential law's amounts would be at 2.9, of a beta law's at 2.7."""
_MOST_APART, _LEAST_APART = (3.0, 8.0), 3.0
"""Squared standard errors: that answers may be from those of two values, and that amounts' have to be.

The more of it the further away amounts are, up to half as much: of true flags 3 refuse one in ten, 8 one in a hundred.
"""
_OF_SQUARE: Final = 0.2
"""By how much the mean changes with the mean square, at most, for a distance between NEAR and FAR."""
_LEAST_SQUARE: Final = 0.1
"""Of what noise may have made negative: far below that of a distance of FAR."""
_ROUNDED: Final = 1e-3
"""By how much sums and variances are off where there is no noise."""


class Winsorisations(NamedTuple):
    """``(k,)`` of standardised columns: mean squares within ``near`` and ``far``, and ``mean`` within near, noised.

    ``near_error`` and ``far_error`` ``(k,)``, and ``mean_error``: standard deviations of what they are off.
    """

    near: Array64
    far: Array64
    mean: Array64
    near_error: Array64
    far_error: Array64
    mean_error: float


class TwoValued(NamedTuple):
    """Which columns are, ``(k,)``, and at which ``distance`` from the mean in deviations the rarer value is if so.

    ``possible``: which may be, by what noise leaves open, whatever amounts they look like as well.
    """

    found: NDArray[np.bool_]
    distance: Array64
    possible: NDArray[np.bool_]


def two_valued(said: Winsorisations) -> TwoValued:
    """Those whose rarer value is between LEAST and FAR: further ones are levels of few rows."""
    near = np.clip(said.near, _LEAST_SQUARE, 1.0)
    distance = np.sqrt((1 + NEAR**2) / near - 1)
    expected, mean = (distance - NEAR) / (1 + distance**2), np.abs(said.mean)
    error = np.hypot(_ROUNDED, np.hypot(said.mean_error, _OF_SQUARE * said.near_error))
    far_error = np.hypot(_ROUNDED, said.far_error)

    def apart(mean: Array64, taken: Array64) -> Array64:
        return np.asarray(np.square(mean / error) + np.square(taken / far_error))

    amounts = apart(_LACKING * expected, USUAL * (1 - near) ** 2)
    values = apart(expected - mean, np.maximum(1 - said.far, 0))
    likely = (amounts > _LEAST_APART) & (values < np.clip(amounts / 2, *_MOST_APART))
    possible = (values < _MOST_APART[0]) & (distance > NEAR)
    return TwoValued(likely & (distance > LEAST) & (distance < FAR), distance, possible)
