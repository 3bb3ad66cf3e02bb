"""Bounds on the privacy cost that discrete Gaussian noise adds to continuous Gaussian noise.

The accountant prices continuous noise, but the drawn noise is discrete. The bounds show that a small surcharge for each
event and a small part of delta cover the difference.

Let ``p(k)`` be the mass of a discrete Gaussian of scale S, and ``q(k)`` that of a continuous one, rounded to integers.
With U uniform on [-1/2, 1/2], ``q(k) / p(k) = E[exp(-(k U + U**2 / 2) / S**2)]`` up to the ratio of the normalising
constants, which is one to within ``exp(-19 S**2)`` (Poisson summation). Jensen's inequality bounds this from below by
``exp(-1 / (24 S**2))``; ``sinh(x) / x <= exp(x**2 / 6)`` bounds it from above by ``exp(z**2 / (24 S**2))`` with ``z =
k / S``. The total variation distance is ``E|z**2 - 1| / (48 S**2) = 0.0202 / S**2`` to leading order.

Step 1, from q to h. Define a law h that equals p for ``|z| <= Z`` and q for ``|z| > Z``. It is within a factor
``exp(eta)`` of q everywhere, with ``eta = Z**2 / (24 S**2)``. Replacing q by h adds to the Rényi divergence of an order
``a >= 2`` at most ``eta (2 a - 1) / (a - 1) <= 3 eta`` for each value (:func:`bound_excess_nats`). The surcharge of
every event (:data:`app.privacy.accounting.SURCHARGE`) is larger than this for any answer, so the prices cover h.

Step 2, from h to the drawn noise. The drawn noise follows p, but its 64-bit integers saturate at 64 standard deviations
or more. So it differs from h only for ``|z| > Z``, and the total variation distance of the two laws is at most ``2
P(|z| > Z)`` for each value. Replacing h by the drawn noise adds to delta at most ``(1 + e**epsilon)`` times the sum of
these distances (:func:`bound_log_tail_delta`). That is below :data:`SET_ASIDE` for every account with an epsilon of at
most :data:`GREATEST_EPSILON` and answers of at most :data:`GREATEST_LENGTH` values. The number of answers is bounded,
because each costs at least the surcharge.
"""

import math

FINEST_SCALE = 2.0**57
"""The largest scale S, in steps of the noise's grid. At this scale, 64-bit integers reach 64 standard deviations."""

LEAST_FINE_SCALE = 0.75 * FINEST_SCALE
"""The smallest scale S, in steps of the noise's grid."""

REACH = 60.0
"""Z of the module's docstring, in standard deviations. It is less than the reach of 64-bit integers."""

GREATEST_EPSILON = 1000.0
"""The largest epsilon limit that an installation may configure."""

GREATEST_LENGTH = 2**40
"""An upper bound on the number of values of one answer. So many doubles would take 8 TiB of memory."""

SET_ASIDE = 1e-300
"""The part of a delta that covers noise beyond :data:`REACH` in all answers together."""

LEAST_DELTA = 1e-200
"""The smallest delta of an account or tranche. In double precision, subtracting ``SET_ASIDE`` does not change it."""


def bound_excess_nats(length: int) -> float:
    """Compute a bound on the nats that discrete noise adds to a Rényi divergence.

    The bound is for an answer of ``length`` values, at every order from 2 on.
    """
    return 3 * length * REACH**2 / (24 * LEAST_FINE_SCALE**2)


def bound_log_tail_delta(epsilon: float, values: float) -> float:
    """Compute a bound on the logarithm of the delta that noise beyond :data:`REACH` adds.

    This delta is ``(1 + e**epsilon) * values * 2 P(|z| > Z)`` with Z = REACH. A normal tail is at most ``exp(-Z**2 / 2)
    / (Z sqrt(2 pi))`` on each side. The term 1e-6 covers the discrete tail, which is slightly heavier.

    Args:
        epsilon: the limit of the account.
        values: the number of noised values in all answers together.
    """
    tail = math.log(2) - REACH**2 / 2 - math.log(REACH * math.sqrt(2 * math.pi))
    return epsilon + math.log1p(math.exp(-epsilon)) + math.log(values) + math.log(2) + tail + 1e-6
