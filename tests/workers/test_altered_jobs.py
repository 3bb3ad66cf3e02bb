"""A job's row is not signed: whatever is written into it, rows are read under the reservation of their own account."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from app.jobs import repository
from tests.factories import rows
from tests.factories.worker import House, MemoryRows, memory_tables
from workers.assignments import Assignment


@pytest.mark.parametrize("alteration", ["no cost", "another dataset"])
def test_an_altered_job_reads_no_row(house: House, owner: rows.Key, alteration: str) -> None:
    """W8: without a reservation of the dataset's own account nothing is opened, and nothing is charged elsewhere."""
    dataset_id, other_id = house.ready_dataset(owner), house.ready_dataset(owner)
    job_id = house.job(dataset_id, owner)
    changes: dict[str, Any] = {"cost_epsilon": None} if alteration == "no cost" else {"dataset_id": other_id}
    with house.database.write() as tx:
        repository.change(tx, job_id, **changes)
    opened: list[str] = []

    @contextmanager
    def tables(assignment: Assignment) -> Iterator[MemoryRows]:
        opened.append(assignment.run.dataset_id)
        with memory_tables(assignment) as table:
            yield table

    house.runner(tables).run(job_id)
    assert opened == []
    assert (house.read(job_id).status, house.read(job_id).release_id) == ("failed", None)
