"""The risk of one unit in words: odds, and true positives at one per cent of false positives."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from app.ledger import Exposure, Guarantee
from app.privacy import risk

FALSE_POSITIVES: Final = 0.01


@dataclass(frozen=True, slots=True)
class Risk:
    """The power of an attacker who has every release.

    ``exact`` is true if ``true_positives`` is reached by the best test, and false if it is an upper bound.
    """

    epsilon: float
    delta: float
    odds: float
    true_positives: float
    exact: bool


def measure_spent(exposure: Exposure, epsilon: float, delta: float) -> Risk | None:
    """Measure the risk of the charges that opened the data; None if there is none.

    If all of them are full-batch Gaussians, the trade-off curve is known exactly.
    """
    if not any(exposure.amounts):
        return None
    is_exact = risk.find_gaussian_shift(exposure.amounts, exposure.orders) is not None
    (rate,) = trace_spent(exposure, epsilon, delta, (FALSE_POSITIVES,))
    return Risk(epsilon, delta, risk.compute_odds(epsilon), rate, is_exact)


def trace_spent(exposure: Exposure, epsilon: float, delta: float, rates: Iterable[float]) -> tuple[float, ...]:
    """True positives of the spent charges, at rates of false positives.

    The rates are between 0 and 1. The results are exact for full-batch Gaussians, and upper bounds otherwise.
    """
    shift = risk.find_gaussian_shift(exposure.amounts, exposure.orders)
    if shift is not None:
        return tuple(risk.compute_gaussian_true_positives(rate, shift) for rate in rates)
    return tuple(
        min(
            risk.bound_true_positives(rate, epsilon, delta),
            risk.bound_true_positives_by_renyi(rate, exposure.amounts, exposure.orders),
        )
        for rate in rates
    )


def trace_limit(guarantee: Guarantee, rates: Iterable[float]) -> tuple[float, ...]:
    """Bounds on true positives if the highest limit so far is spent; as :func:`trace_spent`."""
    return tuple(risk.bound_true_positives(rate, guarantee.epsilon, guarantee.delta) for rate in rates)


def bound_limit(guarantee: Guarantee) -> Risk:
    """Bound the risk of all releases that the account's highest limit so far admits."""
    return bound_cost(guarantee.epsilon, guarantee.delta)


def bound_cost(epsilon: float, delta: float) -> Risk:
    """Bound the risk of releases that cost ``epsilon`` and ``delta`` together."""
    rate = risk.bound_true_positives(FALSE_POSITIVES, epsilon, delta)
    return Risk(epsilon, delta, risk.compute_odds(epsilon), rate, exact=False)
