"""Fixture of a private dataset that is ready for jobs."""

import pytest

from tests.factories import rows
from tests.factories.worker import House


@pytest.fixture
def dataset_id(house: House, owner: rows.Key, analyst: rows.Key) -> str:
    return house.ready_dataset(owner, shared_with=(analyst.id,))
