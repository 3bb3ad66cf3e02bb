"""Why the price of continuous Gaussian noise covers discrete Gaussian noise.

A discrete Gaussian of scale S has mass ``p(k)``, a continuous one rounded to integers ``q(k)``. With U uniform on
[-1/2, 1/2], ``q(k) / p(k) = E[exp(-(k U + U**2 / 2) / S**2)]`` but for the normalisation, whose ratio is one to
``exp(-19 S**2)`` (Poisson summation). Jensen's inequality bounds this from below by ``exp(-1 / (24 S**2))``; ``sinh(x)
/ x <= exp(x**2 / 6)`` bounds it from above by ``exp(z**2 / (24 S**2))`` with ``z = k / S``. The total variation
distance is ``E|z**2 - 1| / (48 S**2) = 0.0202 / S**2`` to leading order.

Noise h that is p for ``|z| <= Z`` and q beyond is thus within a factor ``exp(eta)`` of q everywhere, ``eta = Z**2 / (24
S**2)``. Putting it in the place of q adds at most ``eta (2 a - 1) / (a - 1) <= 3 eta`` a value to the Renyi divergence
of an order ``a >= 2`` (:func:`bound_excess_nats`). Every event is priced higher than that by more than rounding
(:data:`app.privacy.accounting.SURCHARGE`), so the filters cover h. What is drawn is p. It differs from h beyond Z only,
and saturates beyond Z only, so the distance between the two is at most ``2 P(|z| > Z)`` a value, and adds ``(1 +
e**epsilon)`` times the sum over all values to delta (:func:`bound_log_tail_delta`). That stays below
:data:`SET_ASIDE` for every account under the greatest limits.
"""

import math

FINEST_SCALE = 2.0**57
"""Noise is drawn with at most this scale in steps of its grid: 64-bit integers reach 64 standard deviations."""

LEAST_FINE_SCALE = 0.75 * FINEST_SCALE
REACH = 60.0
"""Z above, in standard deviations: inside of what 64-bit integers reach."""

GREATEST_EPSILON = 1000.0
"""No installation may configure a higher limit."""

GREATEST_LENGTH = 2**40
"""No answer has as many values: its matrix would not fit into the memory of any machine."""

SET_ASIDE = 1e-300
"""Of each delta, once, for noise beyond :data:`REACH`."""

LEAST_DELTA = 1e-200
"""The smallest delta of an account or tranche. A double of this size is the same with and without SET_ASIDE."""


def bound_excess_nats(length: int) -> float:
    """Bound what discrete noise adds to a Renyi divergence, in nats.

    For an answer of ``length`` values, at any order from 2 on.
    """
    return 3 * length * REACH**2 / (24 * LEAST_FINE_SCALE**2)


def bound_log_tail_delta(epsilon: float, values: float) -> float:
    """Bound the logarithm of what noise beyond :data:`REACH` adds to delta.

    It is ``(1 + e**epsilon) * values * 2 P(|z| > REACH)``. A normal tail is at most ``exp(-Z**2 / 2) / (Z sqrt(2
    pi))`` on each side; the last term covers the discrete tail, which is hardly heavier.
    """
    tail = math.log(2) - REACH**2 / 2 - math.log(REACH * math.sqrt(2 * math.pi))
    return epsilon + math.log1p(math.exp(-epsilon)) + math.log(values) + math.log(2) + tail + 1e-6
