"""Checks of requests that all methods share: size and parameters."""

from collections.abc import Collection, Iterable, Mapping
from typing import Any, Final

from app.errors import InvalidRequest
from app.inference.core.knobs import Knob

MAX_SIZE: Final = 10_000
"""Largest number of points; some methods have a lower limit."""


def check_size(size: object, largest: int = MAX_SIZE) -> None:
    """Raise :class:`InvalidRequest` unless ``size`` is an integer from 1 to ``largest``."""
    if isinstance(size, bool) or not isinstance(size, int) or not 1 <= size <= largest:
        raise InvalidRequest.at("/size", f"Use an integer of at least 1 and at most {largest}.")


def check_values(given: Mapping[str, Any], knobs: Iterable[Knob], *, stated: Collection[str] = ()) -> None:
    """Raise :class:`InvalidRequest` for a parameter that is unknown or out of range.

    Parameters in ``stated`` are refused too, because the mechanism states them.
    """
    parameters = {knob.name: knob for knob in knobs}
    for name, value in given.items():
        if name not in parameters:
            raise InvalidRequest.at(
                "/parameters", "Unknown parameter; GET /v1/methods lists the parameters of each method."
            )
        if name in stated:
            raise InvalidRequest.at(f"/parameters/{name}", "State this parameter in the mechanism under /privacy.")
        parameters[name].check(value, f"/parameters/{name}")
