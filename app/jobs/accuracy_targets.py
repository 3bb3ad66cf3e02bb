"""The cost of a wanted accuracy: quotes with estimates, until the intervals have the wanted widening.

Estimated noise falls about in proportion to epsilon, so a secant step on logarithms needs few quotes. Estimates are
public: they follow from the request and the declaration alone (:mod:`app.inference.expected_accuracy`).
"""

import math
from collections.abc import Callable
from typing import Final

from app.errors import InvalidRequest
from app.jobs.schemas import ExpectedAccuracyView, QuoteView

MOST_QUOTES: Final = 4
"""Most quotes of a search. Each may take about a second of a core."""
LEAST, MOST = 1.01, 10.0
"""Widenings that can be asked for. Smaller ones are within the error of estimates."""
POINTER: Final = "/widening"
_START, _LEAST_EPSILON = 0.5, 0.01
_CLOSE: Final = 0.05
"""Relative difference of the noise from the wanted noise that ends a search; estimates vary about as much."""
_MOST_STEP: Final = 100.0
"""Largest change of the logarithm of epsilon; a larger one leaves every range."""
_SLOPES: Final = (-3.0, -0.3)
"""Credible slopes of the logarithm of noise over that of epsilon. Estimates are random, so two may have another."""


def find_epsilon(quote: Callable[[float], QuoteView], widening: float, most: float) -> tuple[float, QuoteView]:
    """Find the epsilon at which the widest interval has a wanted widening.

    Args:
        quote: quotes the job at an epsilon, with its expected accuracy.
        widening: how many times as wide as without noise the widest interval shall be.
        most: the largest epsilon of a job.

    Returns:
        Epsilon, with three digits, and its quote: the closest of all that were made. It states the widening that is
        expected at this epsilon. Estimates are random, and no allowed epsilon may suffice. So it may differ from the
        wanted one.

    Raises:
        InvalidRequest: at ``/widening``, for a factor out of range and for a job whose accuracy is not estimated.
    """
    if not LEAST <= widening <= MOST:
        raise InvalidRequest.at(POINTER, f"Enter a number from {LEAST:g} to {MOST:g}.")
    wanted, slope = math.log(widening**2 - 1) / 2, -1.0
    tried = [_quote(quote, _round(min(_START, most), most))]
    while len(tried) < MOST_QUOTES:
        epsilon, _, noise = tried[-1]
        step = min((wanted - noise) / slope, _MOST_STEP)
        following = _round(min(max(epsilon * math.exp(step), _LEAST_EPSILON), most), most)
        if abs(noise - wanted) < _CLOSE or following == epsilon:
            break
        try:
            tried.append(_quote(quote, following))
        except InvalidRequest:  # no noise makes the job cost so little
            break
        slope = min(max((tried[-1][2] - noise) / math.log(following / epsilon), _SLOPES[0]), _SLOPES[1])
    epsilon, found, _ = min(tried, key=lambda each: abs(each[2] - wanted))
    return epsilon, found


def find_widest(accuracy: ExpectedAccuracyView) -> str:
    """Find the parameter whose interval widens most."""
    return max(accuracy.interval_widening, key=accuracy.interval_widening.__getitem__)


def _quote(quote: Callable[[float], QuoteView], epsilon: float) -> tuple[float, QuoteView, float]:
    """Return epsilon, its quote, and the logarithm of the largest noise."""
    found = quote(epsilon)
    if found.expected_accuracy is None:
        raise InvalidRequest.at(POINTER, f"{found.warnings[-1]} State the cost ε instead.")
    return epsilon, found, math.log(max(*found.expected_accuracy.noise_in_posterior_sds.values(), 1e-6))


def _round(epsilon: float, most: float) -> float:
    """Round to three digits, and down if ``most`` requires it."""
    nearest = float(f"{epsilon:.3g}")
    return nearest if nearest <= most else float(f"{0.995 * epsilon:.3g}")
