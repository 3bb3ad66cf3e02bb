"""The logarithm of the normal distribution function, fast in single precision."""

import math
from typing import Final

import numpy as np

from app.inference.core.model import Array32

LOG_ROOT_TAU: Final = 0.5 * math.log(2 * math.pi)
_BOUND: Final = 12.0
_COEFFICIENTS: Final = (
    0.17087277,
    -0.82215223,
    1.48851587,
    -1.13520398,
    0.27886807,
    -0.18628806,
    0.09678418,
    0.37409196,
    1.00002368,
    -1.26551223 + math.log(0.5),
)


def log_cdf(values: Array32) -> Array32:
    """Compute ``log Phi(a)`` in place; activations are clipped to -12 and 12.

    The tail is ``t exp(-x^2 + P(t))`` with ``x = |a| / sqrt(2)`` and ``t = 1 / (1 + x/2)``. P is a Chebyshev fit with a
    relative error below 1.2e-7 everywhere (Press et al., *Numerical Recipes in C*, 2nd ed., section 6.2). Every value
    takes the same steps, without subnormal numbers.
    """
    negative = np.signbit(values).astype(np.float32)
    np.abs(values, out=values)
    np.minimum(values, np.float32(_BOUND), out=values)
    t = values * np.float32(math.sqrt(0.125))
    t += 1
    np.reciprocal(t, out=t)
    np.square(values, out=values)
    values *= -0.5
    tail = np.full_like(t, _COEFFICIENTS[0])
    for coefficient in _COEFFICIENTS[1:]:
        tail *= t
        tail += np.float32(coefficient)
    tail += values
    tail += np.log(t, out=t)
    np.exp(tail, out=values)
    np.subtract(1, values, out=values)
    np.log(values, out=values)
    tail *= negative  # a product, because the time of a mask depends on how signs alternate
    np.subtract(1, negative, out=negative)
    values *= negative
    values += tail
    return values
