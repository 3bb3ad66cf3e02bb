"""Second derivations of divergences and deltas, independent of the accounting library."""

import decimal
import math
from decimal import Decimal

import numpy as np
import numpy.typing as npt
from scipy.special import logsumexp, ndtr

Floats = npt.NDArray[np.float64]

_CONTEXT = decimal.Context(prec=60, Emax=decimal.MAX_EMAX, Emin=decimal.MIN_EMIN)


def sampled_exact(rate: float, noise: float, order: int) -> Decimal:
    """Compute the Rényi divergence of the sampled Gaussian by the binomial expansion.

    ``order`` is an integer; the result has sixty digits.
    """
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
    """Compute both Rényi divergences by the trapezoid rule in log space.

    Returns:
        The divergence of the mixture from the base, and that of the base from the mixture.
    """
    x = np.linspace(-40 * noise, order + 40 * noise + 1, 100_001)
    base = -(x**2) / (2 * noise**2) - math.log(noise * math.sqrt(2 * math.pi))
    ratio = np.logaddexp(math.log1p(-rate), math.log(rate) + (2 * x - 1) / (2 * noise**2))
    step = math.log(x[1] - x[0])
    forward, backward = (float(logsumexp(base + power * ratio)) + step for power in (order, 1 - order))
    return forward / (order - 1), backward / (order - 1)


def gaussian_delta(noise: float, epsilon: float | Floats) -> Floats:
    """Compute the exact delta of one Gaussian event.

    It is the hockey-stick divergence between N(0, s^2) and N(1, s^2).
    """
    mean = 1 / (2 * noise)
    tail = np.asarray(epsilon) * noise
    return np.asarray(ndtr(mean - tail) - np.exp(np.minimum(epsilon, 700.0)) * ndtr(-mean - tail))


def sampled_delta(rate: float, noise: float, epsilon: float | Floats) -> Floats:
    """Compute the exact delta of one sampled Gaussian event, mixture from base."""
    odds = np.exp(np.asarray(epsilon, dtype=np.float64))
    reachable = odds > 1 - rate
    inner = np.log(np.where(reachable, (odds - (1 - rate)) / rate, 1.0))
    return np.where(reachable, rate * gaussian_delta(noise, inner), 1 - odds)


def table_delta(p: Floats, q: Floats, epsilon: float) -> float:
    """Compute the exact delta between two probability tables, the larger of both directions."""
    odds = math.exp(epsilon)
    return max(float(np.maximum(p - odds * q, 0).sum()), float(np.maximum(q - odds * p, 0).sum()))


def table_divergence(p: Floats, q: Floats, orders: Floats) -> Floats:
    """Compute the Rényi divergence between two positive probability tables at each order.

    It is the larger of both directions.
    """
    log_p, log_q = np.log(p), np.log(q)
    alpha = orders[:, None]
    forward = logsumexp(alpha * log_p + (1 - alpha) * log_q, axis=1)
    backward = logsumexp(alpha * log_q + (1 - alpha) * log_p, axis=1)
    return np.asarray(np.maximum(forward, backward) / (orders - 1))
