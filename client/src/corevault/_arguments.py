"""Arguments that cannot be meant: refused before anything is sent, with a sentence that says what to pass."""

import math
from collections.abc import Mapping
from typing import Any


def as_json(value: Any, place: str = "") -> Any:
    """``value`` as a request's body takes it, with the numbers of NumPy as Python's.

    Raises ``ValueError`` for a number that is not finite and ``TypeError`` for what JSON has no form for; both say
    where it is, as in ``columns[0].upper``.
    """
    plain = value.item() if getattr(value, "ndim", None) == 0 else value
    if isinstance(plain, float) and not math.isfinite(plain):
        raise ValueError(f"{place} must be a finite number.")
    if plain is None or isinstance(plain, str | bool | int | float):
        return plain
    if isinstance(plain, Mapping):
        return {key: as_json(each, f"{place}.{key}" if place else str(key)) for key, each in plain.items()}
    if isinstance(plain, list | tuple):
        return [as_json(each, f"{place}[{index}]") for index, each in enumerate(plain)]
    raise TypeError(f"{place} must be text, a number, true or false, or a list or mapping of them; {what_came(value)}.")


def mapping(value: object, name: str) -> dict[str, Any]:
    """``value`` as a dictionary. Raises ``TypeError`` for anything but a mapping."""
    if not isinstance(value, Mapping):
        raise TypeError(f"{name} must be a mapping of names to values; {what_came(value)}.")
    return dict(value)


def what_came(value: object) -> str:
    """What was given instead."""
    return (
        f"this is the class {value.__name__}" if isinstance(value, type) else f"this is of type {type(value).__name__}"
    )
