"""Elementary functions in steps that round each value by itself. Row zone: total, and without branches.

The functions of libraries may round a value differently at another place of an array, or take longer for some values.
"""

import math
from typing import Final

import numpy as np

from app.inference.core.model import Array64

_NORMAL = 1e-300
"""Scales between this and its inverse have an inverse that is a normal number."""
_SINE: Final = tuple((-1) ** k * math.pi ** (2 * k + 1) / math.factorial(2 * k + 1) for k in range(8))
"""Taylor coefficients of ``sin(pi u)``; the error for ``|u| <= 1/2`` is below ``(pi/2)^17 / 17!``."""
_DEPTH: Final = 16
"""Depth of the continued fraction of the hyperbolic tangent; the error is below 1e-11 up to ``_FAR``."""
_FAR: Final = 10.0
"""Arguments beyond this are replaced by it, where the tangent differs from 1 by 4e-9."""


def compute_cosine(turns: Array64) -> Array64:
    """Compute ``cos(2 pi u)`` of turns ``u``, to 1e-10; the array is overwritten.

    With the nearest integer subtracted, it is ``1 - 2 sin(pi u)^2``.
    """
    turns -= np.rint(turns)
    squares = np.square(turns)
    sine = np.full_like(turns, _SINE[-1])
    for coefficient in reversed(_SINE[:-1]):
        sine *= squares
        sine += coefficient
    sine *= turns
    return np.asarray(1 - 2 * np.square(sine))


def compute_tangent(values: Array64) -> Array64:
    """Compute the hyperbolic tangent, to 1e-8.

    It is Lambert's continued fraction ``x / (1 + x^2 / (3 + x^2 / (5 ...``.
    """
    x = np.clip(values, -_FAR, _FAR)
    squares = np.square(x)
    fraction = np.full_like(x, 2.0 * _DEPTH + 1)
    for odd in range(2 * _DEPTH - 1, 0, -2):
        np.divide(squares, fraction, out=fraction)
        fraction += odd
    return np.asarray(x / fraction)


def scale(values: Array64, divisor: float) -> Array64:
    """Divide ``values`` by ``divisor`` in place; a product is faster and is used if it is as accurate."""
    if _NORMAL < divisor < 1 / _NORMAL:
        values *= 1 / divisor
    else:
        values /= divisor
    return values


def round_off_traces(values: Array64, largest: float) -> Array64:
    """Round ``values`` in place to multiples of about 2^-40 of ``largest``.

    Products of the results are then never subnormal (W14).
    """
    step = math.ldexp(1.0, min(math.frexp(largest)[1] + 12, 1000))
    values += step
    values -= step
    return values
