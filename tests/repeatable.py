"""A pytest plugin with which a test fails again if it failed once.

A release depends on noise from the operating system. With it, a test of one release would sometimes fail by chance, and
the failure could not be repeated. Here noise, samples of rows and Monte Carlo draws follow from the name of the running
test or fixture. Hypothesis chooses its examples in the same way.

Tests of the randomness itself keep the system's; they are in :data:`SYSTEM_NOISE`. Other processes keep it, too.
``RANDOMNESS=fresh`` turns this plugin off, to search for rare failures.
"""

import hashlib
import os
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import hypothesis
import numpy as np
import pytest
from hypothesis.internal.conjecture import providers
from hypothesis.internal.constants_ast import Constants
from numpy.typing import NDArray

from app.inference.private_zone import mechanisms, rng

SYSTEM_NOISE = ("tests/privacy_core", "tests/inference/private_zone", "tests/inference/audit", "tests/enclave")
"""Folders of tests that draw from the operating system."""

FRESH = os.environ.get("RANDOMNESS") == "fresh"


class _Source:
    """The generator of the running test or fixture; None for the operating system's randomness."""

    current: np.random.Generator | None = None


def pytest_configure() -> None:
    if FRESH:
        return
    hypothesis.settings.register_profile("repeatable", derandomize=True)
    hypothesis.settings.load_profile("repeatable")
    # Hypothesis also tries constants of the loaded modules, which depend on the other tests of the run.
    assert callable(providers._get_local_constants)
    providers._get_local_constants = Constants
    draw = mechanisms.DiscreteGaussian._draw

    def draw_repeatably(self: mechanisms.DiscreteGaussian, count: int, scale: float) -> NDArray[np.int64]:
        if _Source.current is None:
            return draw(self, count, scale)
        steps = mechanisms.choose_fine_steps(scale)
        fine = _Source.current.normal(0.0, scale * steps, count)
        return mechanisms.round_to_steps(np.rint(fine).astype(np.int64), steps)

    mechanisms.DiscreteGaussian._draw = draw_repeatably  # type: ignore[method-assign]
    bits = SimpleNamespace(Generator=np.random.Generator, SFC64=_make_fast_bits)
    vars(rng).update(np=SimpleNamespace(random=bits), secrets=SimpleNamespace(randbits=_draw_key))


@pytest.hookimpl(wrapper=True)
def pytest_fixture_setup(fixturedef: Any, request: pytest.FixtureRequest) -> Generator[None, object, object]:
    place = fixturedef.baseid or request.node.nodeid
    with _repeatable(f"{place}::{fixturedef.argname}[{getattr(request, 'param_index', 0)}]"):
        return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, object, object]:
    with _repeatable(item.nodeid):
        return (yield)


@contextmanager
def _repeatable(name: str) -> Iterator[None]:
    """Draw from a generator that follows from ``name``.

    Names in :data:`SYSTEM_NOISE` draw from the operating system.
    """
    outer = _Source.current
    digest = hashlib.sha256(name.encode()).digest()
    _Source.current = None if FRESH or name.startswith(SYSTEM_NOISE) else np.random.default_rng(list(digest))
    try:
        yield
    finally:
        _Source.current = outer


def _make_fast_bits() -> np.random.SFC64:
    if _Source.current is None:
        return np.random.SFC64()
    return np.random.SFC64(int(_Source.current.integers(1 << 62)))


def _draw_key(bits: int) -> int:
    if _Source.current is None:
        return int.from_bytes(os.urandom(bits // 8), "little")
    return int.from_bytes(_Source.current.bytes(bits // 8), "little")
