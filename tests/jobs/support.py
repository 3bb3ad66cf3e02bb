"""What tests of quotes and jobs over HTTP share."""

from typing import Any

from tests.factories.worker import House

MECHANISM = {"noise_multiplier": 30.0, "sampling_rate": 1.0, "iterations": 5}


def budget(house: House, dataset_id: str) -> tuple[Any, ...]:
    with house.database.read() as session:
        found = house.ledger.budget(session, dataset_id)
    return found.spent, found.reserved, found.version, found.jobs
