"""Numeric targets: scaling by their declared bounds."""

from dataclasses import dataclass
from typing import Final

import numpy as np

from app.errors import InvalidRequest
from app.inference.core.facts import Column
from app.inference.core.model import Array64

LEAST_RELATIVE_WIDTH: Final = 2.0**-32
"""Least distance of the bounds, relative to the larger one; at least a million doubles are then between them."""


@dataclass(frozen=True, slots=True)
class Scaled:
    """The scaling ``(y - center) / half``: -1 at the lower bound, 1 at the upper one.

    ``half`` is 1 for a constant target.
    """

    lower: float
    upper: float

    @property
    def half(self) -> float:
        """Half of the width of the bounds."""
        half = self.upper / 2 - self.lower / 2
        return half if half > 0 else 1.0

    @property
    def center(self) -> float:
        """The middle of the bounds."""
        return self.lower + (self.upper / 2 - self.lower / 2)

    def encode(self, y: Array64) -> Array64:
        """Convert targets in the table's units to coordinates.

        It needs double precision, because a target may be far larger than its range.
        """
        return (y - self.center) / self.half

    def decode(self, coordinates: Array64) -> Array64:
        """Convert coordinates to targets in the table's units.

        Coordinates from -1 to 1 give targets within the bounds, also after rounding.
        """
        y = self.center + self.half * coordinates
        return np.where(np.abs(coordinates) <= 1, np.clip(y, self.lower, self.upper), y)


def read_bounds(target: Column | None) -> tuple[float, float]:
    """Read the declared lower and upper bound.

    Raises:
        InvalidRequest: at ``/model/target``, if there are no bounds.
    """
    if target is None or target.lower is None or target.upper is None:
        raise InvalidRequest.at("/model/target", "A real or integer target needs declared bounds.")
    return target.lower, target.upper


def read_scaling(target: Column | None) -> Scaled:
    """Read the scaling from the declared bounds of ``target``.

    Raises:
        InvalidRequest: at ``/model/target``, for bounds that are missing, or too close together.
    """
    lower, upper = read_bounds(target)
    if lower < upper and not is_resolved(lower, upper):
        raise InvalidRequest.at("/model/target", f"The bounds of this target are too close together: {REMEDY}.")
    return Scaled(lower, upper)


REMEDY: Final = "subtract a constant from the column, in the table and in its bounds"


def is_resolved(lower: float, upper: float) -> bool:
    """Whether double precision has at least a million values between the bounds."""
    return upper / 2 - lower / 2 >= 0.5 * LEAST_RELATIVE_WIDTH * max(abs(lower), abs(upper))
