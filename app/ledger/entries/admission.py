"""Admission of charges, in integers: one tranche must have room, and every cap."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import lru_cache

from app.ledger.entries.balance import Balance, Share
from app.ledger.entries.charge import Charge, Pinned, check_priced, compute_amounts
from app.ledger.entries.meter import Pot
from app.privacy.accounting import INFINITE, UNIT_BITS, compute_epsilon

_MARGIN = 1e-9
"""Margin below the largest Gaussian, so that noise calibrated to its epsilon is admitted despite rounding."""

_LEAST_RHO = 2.0**UNIT_BITS / (2 * 10_000.0**2)
"""Divergence per Renyi order, in units, of a noise multiplier of 10,000. Less room counts as none: a job of many
queries would need more noise per query than accountants can resolve (:data:`app.privacy.accounting.MOST_NOISE`)."""


class Obstacle(StrEnum):
    """Why a charge is not admitted: the first of these that has no room for it."""

    FROZEN = "frozen"
    """The account is frozen."""
    LIMIT = "limit"
    """The account's limit."""
    CAP = "cap"
    """The dataset's limit within the account."""
    ALLOCATION = "allocation"
    """The caller's part of the dataset's limit."""


@dataclass(frozen=True, slots=True)
class Preview:
    """The cost of a charge and the state after it.

    ``obstacle`` is None for a charge that fits. ``more_like_this`` counts identical jobs after this one.
    """

    cost_epsilon: float
    cost_delta: float
    obstacle: Obstacle | None
    epsilon_after: float
    more_like_this: int

    @property
    def affordable(self) -> bool:
        """Whether the charge fits."""
        return self.obstacle is None


@dataclass(frozen=True, slots=True)
class Decision:
    """``pinned`` is None for a charge that does not fit."""

    preview: Preview
    pinned: Pinned | None


def decide(balance: Balance, dataset_id: str, charge: Charge, caller_id: str | None = None) -> Decision:
    """Price ``charge`` and check it against account, cap and allocation.

    Raises:
        MethodNotAllowedOnPrivateData, InvalidRequest, Internal: the charge has no price.
    """
    priced = _price(balance, dataset_id, charge, caller_id)
    tranches = tuple(compute_amounts(charge, tranche.orders) for tranche in balance.tranches)
    rooms = [pot.meter.room(each) for pot, each in zip(balance.tranches, tranches, strict=True)]
    counts = {Obstacle.FROZEN: 0} if balance.frozen else {}
    counts[Obstacle.LIMIT] = min(sum(rooms), balance.total.meter.room(priced.amounts))
    cap = balance.datasets[dataset_id].cap
    if cap is not None:
        counts[Obstacle.CAP] = cap.meter.room(priced.cap_amounts)
    if priced.caller_id is not None:
        allocation = balance.datasets[dataset_id].allocations[priced.caller_id]
        counts[Obstacle.ALLOCATION] = allocation.meter.room(priced.caller_amounts)
    preview = _preview(balance, priced, counts)
    if not preview.affordable:
        return Decision(preview, None)
    chosen = next(index for index, room in enumerate(rooms) if room > 0)
    return Decision(preview, replace(priced, tranche=chosen, tranche_amounts=tranches[chosen]))


def is_admissible(balance: Balance, dataset_id: str, charge: Charge, caller_id: str | None = None) -> bool:
    """Whether :func:`decide` would admit ``charge``. The tranches have few orders, so they are checked first.

    Raises:
        As :func:`decide`, if a tranche has room.
    """
    if not any(pot.meter.room(compute_amounts(charge, pot.orders)) for pot in balance.tranches):
        return False
    return decide(balance, dataset_id, charge, caller_id).pinned is not None


def compose(balance: Balance, extra: tuple[int, ...] | None = None) -> float:
    """The epsilon of all settled, opened and reserved charges, and of ``extra``."""
    vector = balance.total.meter.used
    if extra is not None:
        vector = tuple(map(sum, zip(vector, extra, strict=True)))
    return convert_at_limit(balance, vector)


def convert_at_limit(balance: Balance, vector: tuple[int, ...]) -> float:
    """The epsilon of any vector over the account's orders, at the account's delta."""
    return compute_epsilon(vector, balance.total.delta, balance.total.orders)


_cost = lru_cache(maxsize=1024)(compute_epsilon)


def _price(balance: Balance, dataset_id: str, charge: Charge, caller_id: str | None) -> Pinned:
    vector = compute_amounts(charge, balance.total.orders)
    check_priced(vector)
    cap = balance.datasets[dataset_id].cap
    capped = compute_amounts(charge, cap.orders) if cap is not None else ()
    priced = Pinned(vector, 0, (), capped)
    allocation = balance.datasets[dataset_id].allocations.get(caller_id or "")
    if allocation is None:
        return priced
    return replace(priced, caller_id=caller_id, caller_amounts=compute_amounts(charge, allocation.orders))


def _preview(balance: Balance, priced: Pinned, counts: Mapping[Obstacle, int]) -> Preview:
    """``counts``: how many such charges each obstacle leaves room for, in the order of :class:`Obstacle`."""
    return Preview(
        cost_epsilon=_cost(priced.amounts, balance.total.delta, balance.total.orders),
        cost_delta=balance.total.delta,
        obstacle=next((obstacle for obstacle, count in counts.items() if count == 0), None),
        epsilon_after=compose(balance, priced.amounts),
        more_like_this=max(0, min(counts.values()) - 1),
    )


def find_largest_gaussian(balance: Balance, dataset_id: str, caller_id: str | None = None) -> float:
    """The epsilon of the largest full-batch Gaussian job that would be admitted; 0 if none.

    Within the allocation of ``caller_id``, if there is one. A Gaussian's divergence is ``rho * order``, so the tightest
    of the meters leaves ``rho = max slack/order``.
    """
    return find_largest_on_any(balance, (dataset_id,), caller_id)


def find_largest_on_any(balance: Balance, dataset_ids: Iterable[str], caller_id: str | None = None) -> float:
    """The largest of :func:`find_largest_gaussian` over several datasets, at least one."""
    best = max(_largest_rho(pot) for pot in balance.tranches)
    shares = (balance.datasets[dataset_id] for dataset_id in dataset_ids)
    rho = min(best, _largest_rho(balance.total), max(_largest_rho_within(share, caller_id) for share in shares))
    if rho < _LEAST_RHO or balance.frozen:
        return 0.0
    return convert_at_limit(balance, tuple(min(int(rho * order), INFINITE) for order in balance.total.orders))


def _largest_rho_within(share: Share, caller_id: str | None) -> float:
    """The divergence per order that the dataset's cap and the caller's allocation leave."""
    pots = (share.cap, None if caller_id is None else share.allocations.get(caller_id))
    return min((_largest_rho(pot) for pot in pots if pot is not None), default=math.inf)


def _largest_rho(pot: Pot) -> float:
    best = max(left / order for left, order in zip(pot.meter.slack, pot.orders, strict=True))
    return best * (1 - _MARGIN) - 1
