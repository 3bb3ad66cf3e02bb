"""What tests of workers share."""

import pytest

from app.inference.private_zone import partition
from tests.workers.crowd import CHUNK


@pytest.fixture
def small_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Chunks so small that the house's table has several, of which parts are made."""
    monkeypatch.setattr(partition, "chunk_units", lambda *_: CHUNK)
