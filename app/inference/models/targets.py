"""Targets that are numbers: scaling by their declared bounds."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from app.errors import InvalidRequest
from app.inference.protocol import Array64, Column


@dataclass(frozen=True, slots=True)
class Scaled:
    """``(y - center) / half``: from -1 at the lower to 1 at the upper bound; ``half`` is 1 for a constant."""

    center: float
    half: float

    def inside(self, y: NDArray[np.floating[Any]]) -> NDArray[Any]:
        """Scaled targets of the table's."""
        inside: NDArray[Any] = (y - y.dtype.type(self.center)) / y.dtype.type(self.half)
        return inside

    def outside(self, inside: Array64) -> Array64:
        """The table's targets of scaled ones."""
        return self.center + self.half * inside


def bounds_of(target: Column | None) -> tuple[float, float]:
    """Declared lower and upper bound.

    Raises:
        InvalidRequest: at ``/model/target``, if there are none.
    """
    if target is None or target.lower is None or target.upper is None:
        raise InvalidRequest.at("/model/target", "a real or integer target needs declared bounds")
    return target.lower, target.upper


def scaled(target: Column | None) -> Scaled:
    """The scaling that ``target`` declares; errors as :func:`bounds_of`."""
    lower, upper = bounds_of(target)
    half = upper / 2 - lower / 2
    return Scaled(lower + half, half if half > 0 else 1.0)
