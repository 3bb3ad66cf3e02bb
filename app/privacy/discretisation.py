"""Bounds by which the price of continuous Gaussian noise covers discrete Gaussian noise.

Let ``p(k)`` be the mass of a discrete Gaussian of scale S, and ``q(k)`` that of a continuous one, rounded to integers.
With U uniform on [-1/2, 1/2], ``q(k) / p(k) = E[exp(-(k U + U**2 / 2) / S**2)]`` up to the ratio of the normalising
constants, which is one to within ``exp(-19 S**2)`` (Poisson summation). Jensen's inequality bounds this from below by
``exp(-1 / (24 S**2))``; ``sinh(x) / x <= exp(x**2 / 6)`` bounds it from above by ``exp(z**2 / (24 S**2))`` with ``z =
k / S``. The total variation distance is ``E|z**2 - 1| / (48 S**2) = 0.0202 / S**2`` to leading order.

Define noise h that equals p for ``|z| <= Z`` and q for larger z. It is within a factor ``exp(eta)`` of q everywhere,
``eta = Z**2 / (24 S**2)``. Replacing q by h adds at most ``eta (2 a - 1) / (a - 1) <= 3 eta`` for each value to the
Rényi divergence of an order ``a >= 2`` (:func:`bound_excess_nats`). The surcharge of every event exceeds that
(:data:`app.privacy.accounting.SURCHARGE`), so the filters cover h.

The noise that is drawn follows p. It differs from h for ``|z| > Z`` only, and it saturates there only. So the distance
between the two is at most ``2 P(|z| > Z)`` for each value. It adds ``(1 + e**epsilon)`` times the sum over all values
to delta (:func:`bound_log_tail_delta`). That stays below :data:`SET_ASIDE` for every account under the greatest
limits.
"""

import math

FINEST_SCALE = 2.0**57
"""The largest scale of the noise, in steps of its grid. 64-bit integers then reach 64 standard deviations."""

LEAST_FINE_SCALE = 0.75 * FINEST_SCALE
REACH = 60.0
"""Z of the module's docstring, in standard deviations. 64-bit integers reach further."""

GREATEST_EPSILON = 1000.0
"""The largest epsilon limit that an installation may configure."""

GREATEST_LENGTH = 2**40
"""More values than any answer has, because a matrix of that size fits into no machine's memory."""

SET_ASIDE = 1e-300
"""The part of each delta that is reserved, once, for noise beyond :data:`REACH`."""

LEAST_DELTA = 1e-200
"""The smallest delta of an account or tranche. A double of this size is the same with and without SET_ASIDE."""


def bound_excess_nats(length: int) -> float:
    """Bound the increase of a Rényi divergence by discrete noise, in nats.

    The bound is for an answer of ``length`` values and holds at any order from 2 on.
    """
    return 3 * length * REACH**2 / (24 * LEAST_FINE_SCALE**2)


def bound_log_tail_delta(epsilon: float, values: float) -> float:
    """Bound the logarithm of the increase of delta by noise beyond :data:`REACH`.

    The increase is ``(1 + e**epsilon) * values * 2 P(|z| > REACH)``. A normal tail is at most ``exp(-Z**2 / 2) / (Z
    sqrt(2 pi))`` on each side. The last term covers the discrete tail, which is only slightly heavier.

    Args:
        epsilon: the limit of the account.
        values: the number of noised values in all answers together.
    """
    tail = math.log(2) - REACH**2 / 2 - math.log(REACH * math.sqrt(2 * math.pi))
    return epsilon + math.log1p(math.exp(-epsilon)) + math.log(values) + math.log(2) + tail + 1e-6
