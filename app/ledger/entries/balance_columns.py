"""The cached balance in two columns: amounts, which change with every entry, and limits, which seldom change.

Limits are long documents. To write them with every entry would cost more than the rest of a reservation.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

_MOVING = frozenset({"spent", "reserved", "settled", "frozen", "unended"})


@dataclass(frozen=True, slots=True)
class BalanceColumns:
    """Two documents of one shape; every member is in one of them."""

    limits: Any
    amounts: Any

    @classmethod
    def of(cls, document: Mapping[str, Any]) -> "BalanceColumns":
        return cls(*_split(document))

    def whole(self) -> Any:
        """The document that was split."""
        return _merge(self.limits, self.amounts)


def _split(document: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    limits: dict[str, Any] = {}
    amounts: dict[str, Any] = {}
    for name, value in document.items():
        if name in _MOVING:
            amounts[name] = value
        elif name == "unit" or not isinstance(value, dict | list):
            limits[name] = value
        elif isinstance(value, dict):
            limits[name], amounts[name] = _split(value)
        else:
            pairs = [_split(each) for each in value]
            limits[name], amounts[name] = [pair[0] for pair in pairs], [pair[1] for pair in pairs]
    return limits, amounts


def _merge(limits: Any, amounts: Any) -> Any:
    if isinstance(limits, list):
        return [_merge(*pair) for pair in zip(limits, amounts, strict=True)]
    if not isinstance(limits, dict):
        raise ValueError("two documents of different shapes")
    shared = {name: _merge(limits[name], amounts[name]) for name in limits.keys() & amounts.keys()}
    return {**limits, **amounts, **shared}
