"""What was done to the data, apart from what it costs. An event's meaning never changes: add an event instead."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

MAX_COUNT = 2**40


class UnknownEvent(ValueError):
    """An event that this code does not know: refused, never priced at zero."""


@dataclass(frozen=True, slots=True)
class GaussianEvent:
    """A sum of L2 sensitivity ``C`` with Gaussian noise of standard deviation ``noise_multiplier * C``."""

    noise_multiplier: float

    def __post_init__(self) -> None:
        if not (math.isfinite(self.noise_multiplier) and self.noise_multiplier > 0):
            raise UnknownEvent("a noise multiplier is a positive finite number")


@dataclass(frozen=True, slots=True)
class PoissonSampledEvent:
    """``event`` on a subsample that holds each slot independently with probability ``sampling_rate``."""

    sampling_rate: float
    event: GaussianEvent

    def __post_init__(self) -> None:
        if not 0 < self.sampling_rate <= 1:
            raise UnknownEvent("a sampling rate lies in (0, 1]")


@dataclass(frozen=True, slots=True)
class SelfComposedEvent:
    """``event`` repeated ``count`` times with fresh randomness, each choice free to depend on earlier answers."""

    event: GaussianEvent | PoissonSampledEvent
    count: int

    def __post_init__(self) -> None:
        if not (isinstance(self.count, int) and 1 <= self.count <= MAX_COUNT):
            raise UnknownEvent("a count is a positive integer")


@dataclass(frozen=True, slots=True)
class NonPrivateEvent:
    """Something without a privacy guarantee: it has no price, so no ledger can admit it."""


AtomicEvent = GaussianEvent | PoissonSampledEvent
PrivacyEvent = AtomicEvent | SelfComposedEvent | NonPrivateEvent


def flatten(events: Sequence[PrivacyEvent]) -> Iterator[tuple[AtomicEvent, int]]:
    """The atomic events in order, run-length encoded.

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


def encode(events: Sequence[tuple[AtomicEvent, int]]) -> tuple[PrivacyEvent, ...]:
    """The inverse of :func:`flatten`: merges neighbouring equal events."""
    merged: list[tuple[AtomicEvent, int]] = []
    for event, count in events:
        if merged and merged[-1][0] == event:
            merged[-1] = (event, merged[-1][1] + count)
        else:
            merged.append((event, count))
    return tuple(event if count == 1 else SelfComposedEvent(event, count) for event, count in merged)


def to_json(event: PrivacyEvent) -> dict[str, Any]:
    """A plain JSON form that says what happened in the field's words."""
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
    """The event that :func:`to_json` wrote.

    Raises:
        UnknownEvent: for any other document.
    """
    try:
        return _parse(document)
    except (KeyError, TypeError) as error:
        raise UnknownEvent("not an event of this version") from error


def _parse(document: Mapping[str, Any]) -> PrivacyEvent:
    kind = document["kind"]
    if kind == "gaussian":
        return GaussianEvent(document["noise_multiplier"])
    if kind == "non_private":
        return NonPrivateEvent()
    inner = _parse(document["event"])
    if kind == "poisson_sampled" and isinstance(inner, GaussianEvent):
        return PoissonSampledEvent(document["sampling_rate"], inner)
    if kind == "self_composed" and isinstance(inner, GaussianEvent | PoissonSampledEvent):
        return SelfComposedEvent(inner, document["count"])
    raise UnknownEvent("not an event of this version")
