"""Events: they survive JSON, and every other document is refused."""

import json
import math
from collections.abc import Callable
from typing import Any

import pytest
import rfc8785
from hypothesis import given
from hypothesis import strategies as st

from app.privacy.events import (
    MAX_COUNT,
    AtomicEvent,
    GaussianEvent,
    NonPrivateEvent,
    PoissonSampledEvent,
    PrivacyEvent,
    SelfComposedEvent,
    UnknownEvent,
    encode,
    flatten,
    from_json,
    to_json,
)

GAUSSIAN = {"kind": "gaussian", "noise_multiplier": 1.5}
SAMPLED = {"kind": "poisson_sampled", "sampling_rate": 0.1, "event": GAUSSIAN}

gaussians = st.builds(GaussianEvent, st.floats(1e-3, 1e6))
atoms = gaussians | st.builds(PoissonSampledEvent, st.floats(1e-9, 1.0), gaussians)
events = atoms | st.builds(SelfComposedEvent, atoms, st.integers(1, MAX_COUNT)) | st.just(NonPrivateEvent())


@given(events)
def test_an_event_survives_plain_and_canonical_json(event: PrivacyEvent) -> None:
    document = to_json(event)
    assert from_json(json.loads(json.dumps(document))) == event
    assert from_json(json.loads(rfc8785.dumps(document))) == event


@pytest.mark.parametrize(
    ("event", "document"),
    [
        (GaussianEvent(1.5), GAUSSIAN),
        (PoissonSampledEvent(0.1, GaussianEvent(1.5)), SAMPLED),
        (SelfComposedEvent(GaussianEvent(1.5), 3), {"kind": "self_composed", "count": 3, "event": GAUSSIAN}),
        (NonPrivateEvent(), {"kind": "non_private"}),
    ],
)
def test_an_event_is_stored_by_its_kind(event: PrivacyEvent, document: dict[str, Any]) -> None:
    """Stored entries outlive this version, so their documents never change."""
    assert to_json(event) == document
    assert from_json(document) == event


def test_whole_numbers_are_read_as_floats() -> None:
    event = from_json({"kind": "gaussian", "noise_multiplier": 2})
    assert event == GaussianEvent(2.0)
    assert type(to_json(event)["noise_multiplier"]) is float


@pytest.mark.parametrize(
    "document",
    [
        None,
        [],
        "gaussian",
        {},
        {"kind": "gaussian"},
        {"kind": ["gaussian"], "noise_multiplier": 1.0},
        {"kind": "laplace", "noise_multiplier": 1.0},
        {**GAUSSIAN, "count": 2},
        *({"kind": "gaussian", "noise_multiplier": noise} for noise in (True, "1", None, 0, -1.0, [1.0], 10**400)),
        *({"kind": "gaussian", "noise_multiplier": float(noise)} for noise in ("nan", "inf", "-inf")),
        *({**SAMPLED, "sampling_rate": rate} for rate in (True, "0.1", None, 0, -0.1, 1.1, float("nan"), 10**400)),
        {**SAMPLED, "event": SAMPLED},
        {**SAMPLED, "event": {"kind": "non_private"}},
        {**SAMPLED, "slots": 7},
        *(
            {"kind": "self_composed", "event": SAMPLED, "count": count}
            for count in (True, 0, -1, 1.0, "3", None, MAX_COUNT + 1, 10**400)
        ),
        {"kind": "self_composed", "count": 2, "event": {"kind": "self_composed", "count": 2, "event": GAUSSIAN}},
        {"kind": "self_composed", "count": 2, "event": {"kind": "non_private"}},
        {"kind": "non_private", "event": GAUSSIAN},
    ],
    ids=repr,
)
def test_any_other_document_is_refused(document: Any) -> None:
    with pytest.raises(UnknownEvent):
        from_json(document)


def test_a_deeply_nested_document_is_refused_without_recursion() -> None:
    document: dict[str, Any] = GAUSSIAN
    for _ in range(100_000):
        document = {"kind": "self_composed", "count": 1, "event": document}
    with pytest.raises(UnknownEvent):
        from_json(document)


@pytest.mark.parametrize("noise", [True, "1", None, 0.0, -1.0, float("nan"), float("inf"), 10**400])
def test_a_noise_multiplier_that_is_not_positive_and_finite_is_refused(noise: Any) -> None:
    with pytest.raises(UnknownEvent):
        GaussianEvent(noise)


def test_nested_events_without_a_price_are_refused() -> None:
    sampled = PoissonSampledEvent(0.1, GaussianEvent(1.0))
    with pytest.raises(UnknownEvent):
        PoissonSampledEvent(0.1, sampled)  # type: ignore[arg-type]
    with pytest.raises(UnknownEvent):
        SelfComposedEvent(SelfComposedEvent(sampled, 2), 2)  # type: ignore[arg-type]
    with pytest.raises(UnknownEvent):
        SelfComposedEvent(NonPrivateEvent(), 2)  # type: ignore[arg-type]


@pytest.mark.parametrize("stranger", [NonPrivateEvent(), object(), None, "gaussian"])
def test_flattening_refuses_an_event_without_a_price(stranger: Any) -> None:
    with pytest.raises(UnknownEvent):
        list(flatten((GaussianEvent(1.0), stranger)))


@given(st.lists(st.tuples(st.sampled_from([GaussianEvent(1.0), GaussianEvent(2.0)]), st.integers(1, 5)), max_size=8))
def test_encoding_keeps_every_step_in_order(runs: list[tuple[AtomicEvent, int]]) -> None:
    encoded = encode(runs)
    steps = [event for event, count in runs for _ in range(count)]
    assert [event for event, count in flatten(encoded) for _ in range(count)] == steps
    assert encode(list(flatten(encoded))) == encoded


@pytest.mark.parametrize("make", [GaussianEvent, lambda noise: PoissonSampledEvent(0.1, GaussianEvent(noise))])
def test_events_that_differ_by_rounding_are_not_merged(make: Callable[[float], AtomicEvent]) -> None:
    """W9: one price for both would be too low for one of them."""
    near = [(make(noise), 1) for noise in (1.5, math.nextafter(1.5, 2.0))]
    assert list(flatten(encode(near))) == near
