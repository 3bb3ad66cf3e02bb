"""The risk of one unit in words: odds, and true positives at one per cent of false positives."""

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
    shift = risk.find_gaussian_shift(exposure.amounts, exposure.orders)
    if shift is not None:
        rate = risk.compute_gaussian_true_positives(FALSE_POSITIVES, shift)
    else:
        by_cost = risk.bound_true_positives(FALSE_POSITIVES, epsilon, delta)
        rate = min(by_cost, risk.bound_true_positives_by_renyi(FALSE_POSITIVES, exposure.amounts, exposure.orders))
    return Risk(epsilon, delta, risk.compute_odds(epsilon), rate, shift is not None)


def bound_limit(guarantee: Guarantee) -> Risk:
    """Bound the risk of all releases that the account's highest limit so far admits."""
    return bound_cost(guarantee.epsilon, guarantee.delta)


def bound_cost(epsilon: float, delta: float) -> Risk:
    """Bound the risk of releases that cost ``epsilon`` and ``delta`` together."""
    rate = risk.bound_true_positives(FALSE_POSITIVES, epsilon, delta)
    return Risk(epsilon, delta, risk.compute_odds(epsilon), rate, exact=False)
