"""Columns of 0 and 1, or of -1 and 1: declared as such, or told by their mean and variance.

Of columns within [-1, 1] only those of -1 and 1 have the variance ``1 - mean^2``, and of those within [0, 1] only flags
have ``mean (1 - mean)``; numbers of another range have it by chance. Flags of a tenth to a half of the rows have no
tail, and look normal however they are winsorised. But where their labels are nearly certain, bounds take most of them.
"""

from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from app.inference.core.model import Array64
from app.inference.methods.surrogate.declared import Declared
from app.inference.private_zone.queries.tails import FAR

_LEAST_SHARE: Final = 1 / (1 + FAR**2)
"""Of rows that have the rarer value: it is FAR deviations from the mean then, and a rare level of fewer rows."""
_MOST_UNCERTAIN: Final = 0.05
"""Of a variance, relative: beyond, numbers have that of a flag too often by chance."""
_MOST_UNCERTAIN_DECLARED: Final = 0.2
"""Of what is known to be a flag: beyond, its share of the rows may be noise, and it a rare level."""
_DEVIATIONS: Final = 2.5
"""Of a variance, that a flag's may differ by; what means are off is left out, and loses some true flags."""
_ROUNDED: Final = 0.005
"""By how much variances are off where there is no noise."""


class Flags(NamedTuple):
    """Which columns are, ``(k,)``, and how many deviations from the mean the rarer value lies, on which ``side``."""

    found: NDArray[np.bool_]
    distance: Array64
    side: Array64


def flags(known: Declared, mean: Array64, variance: Array64, uncertain: Array64) -> Flags:
    """Of columns with this ``mean`` and ``variance`` ``(k,)``, of which the latter is ``uncertain``, relative."""
    error = np.hypot(uncertain, _ROUNDED)
    clear, declared = error < _MOST_UNCERTAIN, uncertain < _MOST_UNCERTAIN_DECLARED

    def told(expected: Array64) -> NDArray[np.bool_]:
        return np.asarray(clear & (np.abs(expected / variance - 1) < _DEVIATIONS * error))

    signs = (known.signs & declared) | told(1 - mean**2)
    share = np.where(signs, 0.5 * (1 + mean), mean)
    two = signs | (known.indicators & declared) | told(mean * (1 - mean))
    rarer = np.minimum(share, 1 - share)
    bounded = np.clip(rarer, _LEAST_SHARE, 0.5)
    return Flags(two & (rarer > _LEAST_SHARE), np.sqrt(1 / bounded - 1), np.where(share > 0.5, -1.0, 1.0))
