"""Privacy events: records of the mechanisms that ran, without their cost.

The meaning of an event never changes. A new mechanism gets a new event.
"""

import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

MAX_COUNT = 2**40


class UnknownEvent(ValueError):
    """An event is unknown or malformed; it is refused, never priced at zero."""


@dataclass(frozen=True, slots=True)
class GaussianEvent:
    """A sum of L2 sensitivity ``C`` with Gaussian noise.

    The noise has standard deviation ``noise_multiplier * C``.
    """

    noise_multiplier: float

    def __post_init__(self) -> None:
        if not (_is_number(self.noise_multiplier) and 0 < self.noise_multiplier <= sys.float_info.max):
            raise UnknownEvent("a noise multiplier must be a positive finite number")

    @property
    def sampling_rate(self) -> float:
        """1, since every slot takes part."""
        return 1.0


@dataclass(frozen=True, slots=True)
class PoissonSampledEvent:
    """``event`` on a subsample that holds each slot independently with probability ``sampling_rate``."""

    sampling_rate: float
    event: GaussianEvent

    def __post_init__(self) -> None:
        if not (_is_number(self.sampling_rate) and 0 < self.sampling_rate <= 1):
            raise UnknownEvent("a sampling rate must be greater than 0 and at most 1")
        if not isinstance(self.event, GaussianEvent):
            raise UnknownEvent("only a Gaussian event can be sampled")

    @property
    def noise_multiplier(self) -> float:
        """The noise multiplier of the Gaussian event."""
        return self.event.noise_multiplier


@dataclass(frozen=True, slots=True)
class SelfComposedEvent:
    """``event`` repeated ``count`` times with fresh randomness.

    Each repetition may depend on earlier answers (adaptive composition).
    """

    event: GaussianEvent | PoissonSampledEvent
    count: int

    def __post_init__(self) -> None:
        if type(self.count) is not int or not 1 <= self.count <= MAX_COUNT:
            raise UnknownEvent(f"a count must be an integer from 1 to {MAX_COUNT}")
        if not isinstance(self.event, GaussianEvent | PoissonSampledEvent):
            raise UnknownEvent("only an atomic event can be repeated")


@dataclass(frozen=True, slots=True)
class NonPrivateEvent:
    """A step without a privacy guarantee. It has no price, so no ledger can admit it."""


AtomicEvent = GaussianEvent | PoissonSampledEvent
PrivacyEvent = AtomicEvent | SelfComposedEvent | NonPrivateEvent


def flatten(events: Sequence[PrivacyEvent]) -> Iterator[tuple[AtomicEvent, int]]:
    """Yield the atomic events in order, each with its count.

    Raises:
        UnknownEvent: for a non-private or unknown event.
    """
    for event in events:
        if isinstance(event, SelfComposedEvent):
            yield event.event, event.count
        elif isinstance(event, GaussianEvent | PoissonSampledEvent):
            yield event, 1
        else:
            raise UnknownEvent("this event has no price")


def merge(events: Iterable[tuple[AtomicEvent, int]]) -> list[tuple[AtomicEvent, int]]:
    """Merge equal events that follow each other, and add their counts."""
    merged: list[tuple[AtomicEvent, int]] = []
    for event, count in events:
        if merged and merged[-1][0] == event:
            merged[-1] = (event, merged[-1][1] + count)
        else:
            merged.append((event, count))
    return merged


def encode(events: Iterable[tuple[AtomicEvent, int]]) -> tuple[PrivacyEvent, ...]:
    """Encode atomic events with counts in as few events as possible: the inverse of :func:`flatten`."""
    return tuple(event if count == 1 else SelfComposedEvent(event, count) for event, count in merge(events))


def to_json(event: PrivacyEvent) -> dict[str, Any]:
    """Convert ``event`` to plain JSON; the names are the field's terms."""
    match event:
        case GaussianEvent(noise_multiplier):
            return {"kind": "gaussian", "noise_multiplier": noise_multiplier}
        case PoissonSampledEvent(sampling_rate, inner):
            return {"kind": "poisson_sampled", "sampling_rate": sampling_rate, "event": to_json(inner)}
        case SelfComposedEvent(inner, count):
            return {"kind": "self_composed", "count": count, "event": to_json(inner)}
        case NonPrivateEvent():
            return {"kind": "non_private"}


def from_json(document: Mapping[str, Any]) -> PrivacyEvent:
    """Read the event that :func:`to_json` wrote.

    Raises:
        UnknownEvent: for any other document, including one with further members.
    """
    match document:
        case {"kind": "self_composed", "count": int(count), "event": inner, **rest} if not rest:
            return SelfComposedEvent(_parse_atomic(inner), count)
        case {"kind": "non_private", **rest} if not rest:
            return NonPrivateEvent()
    return _parse_atomic(document)


def _parse_atomic(document: Mapping[str, Any]) -> AtomicEvent:
    match document:
        case {"kind": "poisson_sampled", "sampling_rate": rate, "event": inner, **rest} if not rest:
            return PoissonSampledEvent(_parse_number(rate), _parse_gaussian(inner))
    return _parse_gaussian(document)


def _parse_gaussian(document: Mapping[str, Any]) -> GaussianEvent:
    match document:
        case {"kind": "gaussian", "noise_multiplier": noise, **rest} if not rest:
            return GaussianEvent(_parse_number(noise))
    raise UnknownEvent("not an event of this version")


def _parse_number(value: object) -> float:
    """Convert a JSON number to a float; canonical JSON writes 2.0 as 2."""
    if not _is_number(value):
        raise UnknownEvent("not a number")
    try:
        return float(value)  # type: ignore[arg-type]  # _is_number has checked it
    except OverflowError as error:
        raise UnknownEvent("not a finite number") from error


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
