"""Meters: amounts against bounds, in integers. A charge fits if at least one amount stays within its bound."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from operator import add, sub
from typing import Any

from app.ledger.entries.numbers import pack, packed_once, unpack, unpack_floats, unpacked_once
from app.privacy.accounting import INFINITE
from app.privacy.filter import Filter


@dataclass(frozen=True, slots=True)
class Meter:
    """Spent amounts (settled and opened) and reserved amounts, against bounds.

    Sums are exact and never saturate, so a voided reservation subtracts exactly the amounts that it added.
    """

    bounds: tuple[int, ...]
    spent: tuple[int, ...]
    reserved: tuple[int, ...]

    @property
    def used(self) -> tuple[int, ...]:
        return tuple(map(add, self.spent, self.reserved))

    @property
    def slack(self) -> tuple[int, ...]:
        return tuple(map(sub, self.bounds, self.used))

    @property
    def holds(self) -> bool:
        """Whether some amount is within its bound."""
        return max(self.slack) >= 0

    def room(self, each: Sequence[int]) -> int:
        """How many charges of ``each`` (all positive) still fit."""
        pairs = zip(self.slack, each, strict=True)
        return max([slack // amount for slack, amount in pairs if slack > 0], default=0)

    def move(self, each: Sequence[int], *, spent: int, reserved: int) -> "Meter":
        """With ``each`` added ``spent`` and ``reserved`` times (-1, 0 or 1)."""
        if len(each) != len(self.bounds):
            raise ValueError("there is one amount for each bound")
        after = replace(self, spent=_move(self.spent, each, spent), reserved=_move(self.reserved, each, reserved))
        if min(after.spent) < 0 or min(after.reserved) < 0:
            raise ValueError("a meter never falls below zero")
        return after

    def to_json(self) -> dict[str, Any]:
        return {"bounds": packed_once(self.bounds), "spent": pack(self.spent), "reserved": pack(self.reserved)}

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> "Meter":
        return cls(unpacked_once(document["bounds"]), unpack(document["spent"]), unpack(document["reserved"]))


def _move(before: tuple[int, ...], each: Sequence[int], times: int) -> tuple[int, ...]:
    if times == 0:
        return before
    return tuple(map(add if times > 0 else sub, before, each))


@dataclass(frozen=True, slots=True)
class Pot:
    """A meter over Renyi orders for ``(epsilon, delta)``; a filter if it has weights, else information at a limit."""

    epsilon: float
    delta: float
    orders: tuple[float, ...]
    weights: tuple[float, ...]
    meter: Meter

    @property
    def main(self) -> int:
        """Index of the order with the largest weight."""
        return max(range(len(self.weights)), key=self.weights.__getitem__)

    @property
    def untouched(self) -> bool:
        return not any(self.meter.used)

    def rebound(self, epsilon: float, delta: float, bounds: Sequence[int]) -> "Pot":
        """With another limit at the same orders."""
        return replace(self, epsilon=epsilon, delta=delta, meter=replace(self.meter, bounds=tuple(bounds)))

    def move(self, each: Sequence[int], *, spent: int, reserved: int) -> "Pot":
        return replace(self, meter=self.meter.move(each, spent=spent, reserved=reserved))

    def to_json(self) -> dict[str, Any]:
        facts = {"epsilon": self.epsilon, "delta": self.delta}
        return {
            **facts,
            "orders": packed_once(self.orders),
            "weights": packed_once(self.weights),
            **self.meter.to_json(),
        }

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> "Pot":
        orders, weights = (unpack_floats(document[name]) for name in ("orders", "weights"))
        return cls(float(document["epsilon"]), float(document["delta"]), orders, weights, Meter.from_json(document))


def filter_pot(rule: Filter) -> Pot:
    """An empty pot with the bounds of the filter."""
    return _empty(rule.epsilon, rule.delta, rule.orders, rule.weights, rule.bounds())


def make_total_pot(epsilon: float, delta: float, orders: tuple[float, ...]) -> Pot:
    """An empty pot for the composed total; each order converts all of delta, as for a fixed plan."""
    return _empty(epsilon, delta, orders, (), compute_total_bounds(epsilon, delta, orders))


def compute_total_bounds(epsilon: float, delta: float, orders: Sequence[float]) -> tuple[int, ...]:
    """Each order's bound if it alone converts all of ``delta``."""
    return tuple(Filter(epsilon, delta, (order,), (1.0,)).bounds()[0] for order in orders)


def _empty(
    epsilon: float, delta: float, orders: tuple[float, ...], weights: tuple[float, ...], bounds: tuple[int, ...]
) -> Pot:
    zeros = (0,) * len(orders)
    if max(bounds) >= INFINITE:
        raise ValueError("a bound must be below the amount that means an infinite cost")
    return Pot(epsilon, delta, orders, weights, Meter(bounds, zeros, zeros))
