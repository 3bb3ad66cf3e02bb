"""One running service for all end-to-end tests, because starting one takes seconds.

The scheduler in tests/conftest.py keeps these tests in one process.
"""

from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from tests.e2e.house import House, services


@pytest.fixture(scope="session")
def house(backend: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    folder: Path = tmp_path_factory.mktemp("house")
    with services() as settings:
        running = House(folder, **settings)
        try:
            running.wait_ready()
            yield running
            assert running.stop() == 0
            assert running.group() == []
        finally:
            if running.process.poll() is None:
                running.stop()


@pytest.fixture(scope="session")
def owner(house: House) -> Iterator[httpx.Client]:
    with house.client(house.new_key("owner")) as client:
        yield client


@pytest.fixture(scope="session")
def anyone(house: House) -> Iterator[httpx.Client]:
    with house.client(None) as client:
        yield client
