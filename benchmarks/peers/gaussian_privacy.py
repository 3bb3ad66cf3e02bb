"""The price of Gaussian mechanisms in closed form, for this project's peers.

A sum of sensitivity C with noise of standard deviation s C is mu-GDP with ``mu = 1 / s``. Adaptive composition adds the
squares of mu (Dong, Roth & Su 2022). The conversion to (epsilon, delta) is exact (Balle & Wang 2018). Corevault's
accountant is never below this price.
"""

import math

from scipy.optimize import brentq
from scipy.special import log_ndtr

_LEAST, _MOST = 1e-6, 1e3


def compute_delta(mu: float, epsilon: float) -> float:
    """Compute the least delta of a mu-GDP mechanism at ``epsilon``."""
    first, second = log_ndtr(mu / 2 - epsilon / mu), epsilon + log_ndtr(-mu / 2 - epsilon / mu)
    return float(math.exp(first) * -math.expm1(min(second - first, 0.0)))


def compute_mu(epsilon: float, delta: float) -> float:
    """Compute the largest mu that costs at most (epsilon, delta)."""
    excess = [compute_delta(mu, epsilon) - delta for mu in (_LEAST, _MOST)]
    if excess[0] > 0 or excess[1] < 0:
        raise ValueError("no noise reaches this epsilon and delta")
    return float(brentq(lambda mu: compute_delta(mu, epsilon) - delta, _LEAST, _MOST, xtol=1e-12))
