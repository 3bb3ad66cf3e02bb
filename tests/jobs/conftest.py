"""A whole installation in this process."""

from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from app.db import Database
from tests.factories.worker import House, make_house


@pytest.fixture
def house(database: Database, tmp_path: Path) -> House:
    return make_house(database, tmp_path)


@pytest.fixture
def api(house: House) -> Iterator[httpx.Client]:
    with house.client() as client:
        yield client
