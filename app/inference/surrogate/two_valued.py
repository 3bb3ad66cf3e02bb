"""Columns of two values, such as flags that nobody declared: told by what winsorising leaves of squares and means.

The rarer value of ``1 / (1 + d^2)`` of the rows lies d deviations from the mean, and the other one ``1 / d`` on the
other side. Winsorised at NEAR, below d, their mean square is ``(1 + NEAR^2) / (1 + d^2)`` and their mean
``(d - NEAR) / (1 + d^2)`` away from the rarer one; winsorised at FAR, above d, nothing is taken. Amounts of the same
mean square have about 0.6 of that mean, tails on both sides have none, and either has something beyond FAR. (Amounts
whose bounds cut them off near NEAR do look like two values, and most of what lies far out of them is at the bound.)
"""

from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from app.inference.protocol import Array64
from app.inference.questions.tails import FAR, NEAR

USUAL: Final = 0.7
"""What lies beyond FAR, over the square of what lies beyond NEAR, where tails are those of amounts."""
_LACKING: Final = 0.4
"""Of the mean that two values have, that amounts lack."""
_MOST_APART, _LEAST_APART = 3.0, 3.0
"""Squared standard errors: that two values may lack of what they have, and that amounts have to."""
_DEVIATIONS: Final = 2.5
"""Standard errors that the mean may be above that of two values."""
_OF_SQUARE: Final = 0.2
"""By how much the mean changes with the mean square, at most, for a distance between NEAR and FAR."""
_LEAST_SQUARE: Final = 0.1
_ROUNDED: Final = 1e-3
"""What answers without noise are off."""


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
    """Which columns are, ``(k,)``, and at which ``distance`` from the mean in deviations the rarer value is if so."""

    found: NDArray[np.bool_]
    distance: Array64


def two_valued(said: Winsorisations) -> TwoValued:
    """Those whose rarer value is between NEAR and FAR: further ones are levels of few rows."""
    near = np.clip(said.near, _LEAST_SQUARE, 1.0)
    distance = np.sqrt((1 + NEAR**2) / near - 1)
    expected, mean = (distance - NEAR) / (1 + distance**2), np.abs(said.mean)
    error = np.hypot(_ROUNDED, np.hypot(said.mean_error, _OF_SQUARE * said.near_error))
    far_error = np.hypot(_ROUNDED, said.far_error)

    def apart(lacking: Array64, taken: Array64) -> Array64:
        return np.asarray(np.square(lacking / error) + np.square(taken / far_error))

    fits = apart(np.maximum(expected - mean, 0), np.maximum(1 - said.far, 0)) < _MOST_APART
    told = apart(_LACKING * expected, USUAL * (1 - near) ** 2) > _LEAST_APART
    return TwoValued(fits & told & (mean < expected + _DEVIATIONS * error) & (distance < FAR), distance)
