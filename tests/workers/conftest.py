"""Fixtures for tests of workers."""

import pytest

from app.inference.private_zone import partition
from tests.workers.instant_helpers import CHUNK


@pytest.fixture
def small_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make chunks smaller than the house's table, so that it has several parts."""
    monkeypatch.setattr(partition, "compute_chunk_units", lambda *_: CHUNK)
