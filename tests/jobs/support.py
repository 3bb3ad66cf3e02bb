"""Shared code of the tests of quotes and jobs over HTTP."""

from typing import Any

from tests.factories.worker import House

MECHANISM = {"noise_multiplier": 30.0, "sampling_rate": 1.0, "iterations": 5}


def budget(house: House, dataset_id: str) -> tuple[Any, ...]:
    with house.database.read() as session:
        view = house.ledger.budget(session, dataset_id)
    return view.spent, view.reserved, view.version, view.jobs
