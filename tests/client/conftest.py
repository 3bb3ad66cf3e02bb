"""Fixtures of the client's tests: sleeping without waiting."""

import time

import pytest


@pytest.fixture
def naps(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The durations of all calls of ``time.sleep``, which return at once."""
    slept: list[float] = []
    monkeypatch.setattr(time, "sleep", slept.append)
    return slept
