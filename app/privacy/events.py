"""What was done to the data, apart from what it costs. An event's meaning never changes: add an event instead."""

import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
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
        if not (_is_number(self.noise_multiplier) and 0 < self.noise_multiplier <= sys.float_info.max):
            raise UnknownEvent("a noise multiplier is a positive finite number")

    @property
    def sampling_rate(self) -> float:
        """One: of every slot."""
        return 1.0


@dataclass(frozen=True, slots=True)
class PoissonSampledEvent:
    """``event`` on a subsample that holds each slot independently with probability ``sampling_rate``."""

    sampling_rate: float
    event: GaussianEvent

    def __post_init__(self) -> None:
        if not (_is_number(self.sampling_rate) and 0 < self.sampling_rate <= 1):
            raise UnknownEvent("a sampling rate lies in (0, 1]")
        if not isinstance(self.event, GaussianEvent):
            raise UnknownEvent("only a Gaussian event can be sampled")

    @property
    def noise_multiplier(self) -> float:
        """That of the event."""
        return self.event.noise_multiplier


@dataclass(frozen=True, slots=True)
class SelfComposedEvent:
    """``event`` repeated ``count`` times with fresh randomness, each choice free to depend on earlier answers."""

    event: GaussianEvent | PoissonSampledEvent
    count: int

    def __post_init__(self) -> None:
        if type(self.count) is not int or not 1 <= self.count <= MAX_COUNT:
            raise UnknownEvent("a count is a positive integer")
        if not isinstance(self.event, GaussianEvent | PoissonSampledEvent):
            raise UnknownEvent("only an atomic event can be repeated")


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


def merge(events: Iterable[tuple[AtomicEvent, int]]) -> list[tuple[AtomicEvent, int]]:
    """The same sequence with neighbouring equal events made one."""
    merged: list[tuple[AtomicEvent, int]] = []
    for event, count in events:
        if merged and merged[-1][0] == event:
            merged[-1] = (event, merged[-1][1] + count)
        else:
            merged.append((event, count))
    return merged


def encode(events: Iterable[tuple[AtomicEvent, int]]) -> tuple[PrivacyEvent, ...]:
    """The inverse of :func:`flatten`, in as few events as there can be."""
    return tuple(event if count == 1 else SelfComposedEvent(event, count) for event, count in merge(events))


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
        UnknownEvent: for any other document, one with more fields included.
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
            return PoissonSampledEvent(_number(rate), _parse_gaussian(inner))
    return _parse_gaussian(document)


def _parse_gaussian(document: Mapping[str, Any]) -> GaussianEvent:
    match document:
        case {"kind": "gaussian", "noise_multiplier": noise, **rest} if not rest:
            return GaussianEvent(_number(noise))
    raise UnknownEvent("not an event of this version")


def _number(value: object) -> float:
    """A JSON number as a float: canonical JSON writes 2.0 as 2."""
    if not _is_number(value):
        raise UnknownEvent("not a number")
    try:
        return float(value)  # type: ignore[arg-type]  # it is a number: just checked
    except OverflowError as error:
        raise UnknownEvent("not a finite number") from error


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
