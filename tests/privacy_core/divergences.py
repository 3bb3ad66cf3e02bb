"""Second derivations: exact sums, quadrature and hockey sticks that share nothing with the accounting library."""

import decimal
import math
from decimal import Decimal

import numpy as np
import numpy.typing as npt
from scipy.special import logsumexp, ndtr

Floats = npt.NDArray[np.float64]

_CONTEXT = decimal.Context(prec=60, Emax=decimal.MAX_EMAX, Emin=decimal.MIN_EMIN)


def sampled_exact(rate: float, noise: float, order: int) -> Decimal:
    """The Renyi divergence of the sampled Gaussian at an integer ``order``, to sixty digits (binomial expansion)."""
    with decimal.localcontext(_CONTEXT):
        stay, sigma = 1 - Decimal(rate), Decimal(noise)
        growth = (1 / (sigma * sigma)).exp()
        term, boost, total = stay**order, Decimal(1), Decimal(0)
        for index in range(order + 1):
            total += term * boost
            term = term * (order - index) / (index + 1) * Decimal(rate) / stay
            boost *= growth**index
        return total.ln() / (order - 1)


def sampled_quadrature(rate: float, noise: float, order: float) -> tuple[float, float]:
    """Both Renyi divergences, (mixture from base, base from mixture), by the trapezoid rule in log space."""
    x = np.linspace(-40 * noise, order + 40 * noise + 1, 100_001)
    base = -(x**2) / (2 * noise**2) - math.log(noise * math.sqrt(2 * math.pi))
    ratio = np.logaddexp(math.log1p(-rate), math.log(rate) + (2 * x - 1) / (2 * noise**2))
    step = math.log(x[1] - x[0])
    forward, backward = (float(logsumexp(base + power * ratio)) + step for power in (order, 1 - order))
    return forward / (order - 1), backward / (order - 1)


def gaussian_delta(noise: float, epsilon: float | Floats) -> Floats:
    """The exact delta of one Gaussian event (the hockey stick between N(0, s^2) and N(1, s^2))."""
    mean = 1 / (2 * noise)
    tail = np.asarray(epsilon) * noise
    return np.asarray(ndtr(mean - tail) - np.exp(np.minimum(epsilon, 700.0)) * ndtr(-mean - tail))


def sampled_delta(rate: float, noise: float, epsilon: float | Floats) -> Floats:
    """The exact delta of one sampled Gaussian event, mixture from base; any real ``epsilon``."""
    odds = np.exp(np.asarray(epsilon, dtype=np.float64))
    reachable = odds > 1 - rate
    inner = np.log(np.where(reachable, (odds - (1 - rate)) / rate, 1.0))
    return np.where(reachable, rate * gaussian_delta(noise, inner), 1 - odds)


def table_delta(p: Floats, q: Floats, epsilon: float) -> float:
    """The exact delta between two probability tables, the worse of both directions."""
    odds = math.exp(epsilon)
    return max(float(np.maximum(p - odds * q, 0).sum()), float(np.maximum(q - odds * p, 0).sum()))


def table_divergence(p: Floats, q: Floats, orders: Floats) -> Floats:
    """The Renyi divergence between two positive probability tables at each order, the worse of both directions."""
    log_p, log_q = np.log(p), np.log(q)
    alpha = orders[:, None]
    forward = logsumexp(alpha * log_p + (1 - alpha) * log_q, axis=1)
    backward = logsumexp(alpha * log_q + (1 - alpha) * log_p, axis=1)
    return np.asarray(np.maximum(forward, backward) / (orders - 1))
