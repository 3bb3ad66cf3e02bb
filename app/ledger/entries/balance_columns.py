"""The cached balance as two JSON columns: amounts change with every entry, limits rarely.

The limits are a long document. Writing it with every entry would take longer than the rest of a reservation.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

_AMOUNTS = frozenset({"spent", "reserved", "settled", "frozen", "unended"})


@dataclass(frozen=True, slots=True)
class BalanceColumns:
    """The two columns of one balance.

    Both documents have the same nesting of objects and lists. Each member of the balance is in one of them.
    """

    limits: Any
    amounts: Any

    @classmethod
    def of(cls, document: Mapping[str, Any]) -> "BalanceColumns":
        """Split the JSON form of a balance."""
        return cls(*_split(document))

    def whole(self) -> Any:
        """Return the JSON form of the balance.

        Raises:
            ValueError, TypeError, AttributeError: the columns were edited, and do not match.
        """
        return _merge(self.limits, self.amounts)


def _split(document: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    limits: dict[str, Any] = {}
    amounts: dict[str, Any] = {}
    for name, value in document.items():
        if name in _AMOUNTS:
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
        raise ValueError("the limits and amounts of a balance have different shapes")
    shared = {name: _merge(limits[name], amounts[name]) for name in limits.keys() & amounts.keys()}
    return {**limits, **amounts, **shared}
