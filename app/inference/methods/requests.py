"""What every method refuses of a request: a size that there is not, and parameters that it does not take."""

from collections.abc import Collection, Iterable, Mapping
from typing import Any, Final

from app.errors import InvalidRequest
from app.inference.core.knobs import Knob

MAX_SIZE: Final = 10_000
"""Points, unless a method takes fewer."""


def check_size(size: object, largest: int = MAX_SIZE) -> None:
    """Raise :class:`InvalidRequest` unless so many points can be asked for."""
    if isinstance(size, bool) or not isinstance(size, int) or not 1 <= size <= largest:
        raise InvalidRequest.at("/size", f"must be at least 1 and at most {largest}")


def check_values(given: Mapping[str, Any], knobs: Iterable[Knob], *, stated: Collection[str] = ()) -> None:
    """Raise :class:`InvalidRequest` for an unknown parameter, one out of range, or one that is ``stated`` already."""
    known = {knob.name: knob for knob in knobs}
    for name, value in given.items():
        if name not in known:
            raise InvalidRequest.at("/parameters", "unknown parameter; GET /v1/methods lists what this method takes")
        if name in stated:
            raise InvalidRequest.at(f"/parameters/{name}", "state it in the mechanism under /privacy")
        known[name].check(value, f"/parameters/{name}")
