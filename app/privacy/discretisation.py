"""The price of integers: how far discrete Gaussian noise lies from the continuous Gaussian that is accounted.

With noise of ``s = noise_multiplier * K`` grid units, the total variation distance between the discrete Gaussian and
the continuous one rounded to integers is ``E|z^2 - 1| / (48 s^2) = 0.0202 / s^2`` to leading order (the midpoint
rule's error term). Replacing each of n values costs at most n times that in distance ``t``, and a mechanism within
distance ``t`` of an (epsilon, delta) one is ``(epsilon, delta + (1 + e^epsilon) t)``.
"""

import math
from collections.abc import Sequence

from app.privacy.accounting import MOST_NOISE
from app.privacy.events import PrivacyEvent, UnknownEvent, flatten

_DISTANCE_CONSTANT = 0.0203
_SMALLEST_SCALE = 100.0
_MOST_GRID_BITS = 52


def distance(events: Sequence[PrivacyEvent], answer_length: int, grid_bits: int) -> float:
    """Total variation distance, rounded up, that ``events`` with ``answer_length`` values each add on a 2**-bits grid.

    Raises:
        UnknownEvent: if the noise is so small against the grid that the leading term says nothing, or the shape of
            the answers makes no sense.
    """
    if answer_length < 1 or not 0 <= grid_bits <= _MOST_GRID_BITS:
        raise UnknownEvent("an answer has at least one value on a grid that float64 sums hold")
    total = 0.0
    for event, count in flatten(events):
        scale = min(event.noise_multiplier, MOST_NOISE) * 2.0**grid_bits
        if scale < _SMALLEST_SCALE:
            raise UnknownEvent("the noise is too small for the grid")
        total += count * answer_length * _DISTANCE_CONSTANT / scale**2
    return math.nextafter(total * (1 + 1e-12), math.inf)
