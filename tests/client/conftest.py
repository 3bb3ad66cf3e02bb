"""What the client's tests share: a clock that does not wait."""

import time

import pytest


@pytest.fixture
def naps(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The seconds that the client wanted to sleep; it does not."""
    slept: list[float] = []
    monkeypatch.setattr(time, "sleep", slept.append)
    return slept
