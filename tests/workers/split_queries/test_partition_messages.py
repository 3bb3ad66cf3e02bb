"""Helpers answer only messages of a waiting coordinator, and no note remains."""

from datetime import timedelta
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from sqlalchemy import select

from app.datasets.models import Content
from app.db import now
from app.inference.private_zone.partition import compute_partial_sum
from app.jobs import repository
from tests.factories import rows
from tests.factories.datasets import stored
from tests.factories.representations import REPRESENTATIONS
from tests.factories.worker import SLOTS, House, MemoryRows, memory_tables
from tests.workers.instant_helpers import PARTS, QUERY, InstantQueue, problem_of, recording_tables
from tests.workers.support import acting_tables, lose_lease
from workers.enclave import OpeningKey
from workers.split_queries.coordinator import Sharing
from workers.split_queries.mailbox import Mailbox, Task

pytestmark = pytest.mark.usefixtures("small_chunks")


def start_job(house: House, owner: rows.Key) -> tuple[str, Mailbox]:
    """Start the first attempt of a job; return its id and its mailbox."""
    job_id = house.job(house.ready_dataset(owner), owner)
    with house.database.write() as tx:
        claim = house.lifecycle.claim(tx, job_id)
        assert claim is not None
    with house.database.write() as tx:
        house.lifecycle.open(tx, claim)
    key = OpeningKey(house.keys.opening_key)
    return job_id, Mailbox(house.areas.vault, key, job_id, 1)


def _change_job(house: House, job_id: str, **values: Any) -> None:
    with house.database.write() as tx:
        assert repository.change(tx, job_id, **values)


INVALID: dict[str, tuple[str, dict[str, Any]]] = {
    "unknown job": ("job_00000000000000000000000000:1:0:0", {}),
    "no id": ("1=1; drop table jobs", {}),
    "another attempt": ("{}:2:0:0", {}),
    "another query": ("{}:1:1:0", {}),
    "a part out of range": (f"{{}}:1:0:{PARTS}", {}),
    "after another attempt began": ("{}:1:0:0", {"fencing_token": 2}),
    "after the end": ("{}:1:0:0", {"status": "failed"}),
    "after the lease": ("{}:1:0:0", {"lease_until": now() - timedelta(seconds=1)}),
    "without a reservation": ("{}:1:0:0", {"cost_epsilon": None}),
    "with an altered plan": ("{}:1:0:0", {"plan": {}}),
    "with an altered cost": ("{}:1:0:0", {"cost_delta": 1e-9}),
}


@pytest.mark.parametrize(("identifier", "changes"), INVALID.values(), ids=INVALID.keys())
def test_w8_message_without_a_waiting_coordinator_opens_no_table(
    house: House, owner: rows.Key, identifier: str, changes: dict[str, Any]
) -> None:
    """W8: rows are read only for the running attempt, under its opened reservation, and for its current query."""
    job_id, mailbox = start_job(house, owner)
    mailbox.put_task(0, Task(QUERY, range(SLOTS), [0, 256, 512, 768, SLOTS]))
    seen: list[NDArray[np.int64]] = []
    if changes:
        _change_job(house, job_id, **changes)
    house.helper(recording_tables(seen)).run(identifier.format(job_id))
    assert seen == []
    assert len(stored(house.areas)) == 1


def test_w8_no_helper_opens_a_table_before_the_reservation_is_opened(house: House, owner: rows.Key) -> None:
    """W8: the job is claimed and runs, and its reservation is not opened yet."""
    job_id = house.job(house.ready_dataset(owner), owner)
    with house.database.write() as tx:
        assert house.lifecycle.claim(tx, job_id) is not None
        assert repository.change(tx, job_id, content_id=select(Content.id).scalar_subquery())
    mailbox = Mailbox(house.areas.vault, OpeningKey(house.keys.opening_key), job_id, 1)
    mailbox.put_task(0, Task(QUERY, range(SLOTS), [0, 512, SLOTS]))
    seen: list[NDArray[np.int64]] = []
    house.helper(recording_tables(seen)).run(f"{job_id}:1:0:0")
    assert (house.charge(job_id), seen) == ("reserved", [])


def test_message_of_a_waiting_coordinator_is_answered(house: House, owner: rows.Key) -> None:
    job_id, mailbox = start_job(house, owner)
    task = Task(QUERY, np.arange(0, SLOTS, 3), [0, 100, 334])
    mailbox.put_task(4, task)
    house.helper(memory_tables).run(f"{job_id}:1:4:1")
    sums = mailbox.read_part(4, task, 1)
    problem = problem_of(house, owner)
    whole = compute_partial_sum(QUERY, problem.model, problem.design, MemoryRows(), np.arange(300, SLOTS, 3))
    assert sums is not None
    assert sums.tolist() == whole.tolist()


def test_part_that_is_put_too_late_is_deleted(house: House, owner: rows.Key) -> None:
    """The coordinator has finished the query, so no note may remain."""
    job_id, mailbox = start_job(house, owner)
    mailbox.put_task(0, Task(QUERY, range(SLOTS), [0, 512, SLOTS]))
    sharing = Sharing(house.areas.vault, OpeningKey(house.keys.opening_key), house.queue, PARTS, 1)
    house.helper(acting_tables(lambda: sharing.clear(job_id, 1))).run(f"{job_id}:1:0:0")
    assert stored(house.areas) == []


@pytest.mark.parametrize("attempts", [1, 3])
def test_w10_notes_of_workers_that_died_during_a_query_are_destroyed(
    house: House, owner: rows.Key, attempts: int
) -> None:
    """W10: the next attempt destroys the mailbox, or the sweeper after the last attempt."""
    job_id, mailbox = start_job(house, owner)
    task = Task(QUERY, range(SLOTS), [0, 512, SLOTS])
    mailbox.put_task(3, task)
    mailbox.put_part(3, task, 0, np.zeros(7, np.int64))
    assert len(stored(house.areas)) == 2
    _change_job(house, job_id, attempts=attempts)
    lose_lease(house, job_id)
    if attempts == 1:
        house.runner(memory_tables, parts=PARTS, queue=InstantQueue(lambda _: None)).run(job_id)
    assert house.read(job_id).status == ("succeeded" if attempts == 1 else "failed")
    assert len(stored(house.areas)) == (len(REPRESENTATIONS) if attempts == 1 else 0)


def test_notes_of_a_job_that_ended_with_its_dataset_are_destroyed(house: House, owner: rows.Key) -> None:
    """W10: no helper opens the table any more, and the sweeper clears the mailbox although the worker is dead."""
    job_id, mailbox = start_job(house, owner)
    mailbox.put_task(0, Task(QUERY, range(SLOTS), [0, 512, SLOTS]))
    seen: list[NDArray[np.int64]] = []
    with house.database.write() as tx:
        house.lifecycle.dataset_deleted(tx, house.read(job_id).dataset_id)
    house.helper(recording_tables(seen)).run(f"{job_id}:1:0:0")
    assert seen == []
    house.sweeper._rare_at = 0.0
    house.sweeper.sweep()
    assert stored(house.areas) == []
