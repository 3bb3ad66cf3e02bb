"""Messages to helpers: answered for who waits for them only, and nothing stays of what is told or handed in."""

from datetime import timedelta
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from sqlalchemy import select

from app.datasets.models import Content
from app.db import now
from app.inference.private_zone.partition import partial_sum
from app.jobs import repository
from tests.factories import rows
from tests.factories.datasets import stored
from tests.factories.worker import SLOTS, House, MemoryRows, memory_tables
from tests.workers.crowd import PARTS, QUERY, Crowd, problem_of, watched
from tests.workers.support import interfering, lose_lease
from workers.enclave import OpeningKey
from workers.split_queries.coordinator import Sharing
from workers.split_queries.mailbox import Exchange, Task

pytestmark = pytest.mark.usefixtures("small_chunks")


def opened(house: House, owner: rows.Key) -> tuple[str, Exchange]:
    """A job in its first attempt, in mid-run, and where its workers tell each other."""
    job_id = house.job(house.ready_dataset(owner), owner)
    with house.database.write() as tx:
        claim = house.lifecycle.claim(tx, job_id)
        assert claim is not None
    with house.database.write() as tx:
        house.lifecycle.open(tx, claim)
    key = OpeningKey(house.keys.opening_key)
    return job_id, Exchange(house.areas.vault, key, job_id, 1)


def _lapsed(house: House, job_id: str, **values: Any) -> None:
    with house.database.write() as tx:
        assert repository.change(tx, job_id, **values)


LAPSES: dict[str, tuple[str, dict[str, Any]]] = {
    "nobody's": ("job_00000000000000000000000000:1:0:0", {}),
    "no id": ("1=1; drop table jobs", {}),
    "another attempt's": ("{}:2:0:0", {}),
    "another query's": ("{}:1:1:0", {}),
    "a part that there is not": (f"{{}}:1:0:{PARTS}", {}),
    "after another attempt began": ("{}:1:0:0", {"fencing_token": 2}),
    "after the end": ("{}:1:0:0", {"status": "failed"}),
    "after the lease": ("{}:1:0:0", {"lease_until": now() - timedelta(seconds=1)}),
    "without a reservation": ("{}:1:0:0", {"cost_epsilon": None}),
    "with an altered plan": ("{}:1:0:0", {"plan": {}}),
    "with an altered cost": ("{}:1:0:0", {"cost_delta": 1e-9}),
}


@pytest.mark.parametrize(("identifier", "changes"), LAPSES.values(), ids=LAPSES.keys())
def test_w8_a_message_that_nobody_waits_for_opens_no_table(
    house: House, owner: rows.Key, identifier: str, changes: dict[str, Any]
) -> None:
    """W8: rows are read for the attempt that holds the job under an opened reservation, and for its current query."""
    job_id, exchange = opened(house, owner)
    exchange.tell(0, Task(QUERY, range(SLOTS), [0, 256, 512, 768, SLOTS]))
    seen: list[NDArray[np.int64]] = []
    if changes:
        _lapsed(house, job_id, **changes)
    house.helper(watched(seen)).run(identifier.format(job_id))
    assert seen == []
    assert len(stored(house.areas)) == 1


def test_w8_no_helper_opens_a_table_before_the_reservation_is_opened(house: House, owner: rows.Key) -> None:
    """W8: the job is claimed and runs, and its reservation is not opened yet."""
    job_id = house.job(house.ready_dataset(owner), owner)
    with house.database.write() as tx:
        assert house.lifecycle.claim(tx, job_id) is not None
        assert repository.change(tx, job_id, content_id=select(Content.id).scalar_subquery())
    exchange = Exchange(house.areas.vault, OpeningKey(house.keys.opening_key), job_id, 1)
    exchange.tell(0, Task(QUERY, range(SLOTS), [0, 512, SLOTS]))
    seen: list[NDArray[np.int64]] = []
    house.helper(watched(seen)).run(f"{job_id}:1:0:0")
    assert (house.charge(job_id), seen) == ("reserved", [])


def test_a_message_that_somebody_waits_for_is_answered(house: House, owner: rows.Key) -> None:
    job_id, exchange = opened(house, owner)
    task = Task(QUERY, np.arange(0, SLOTS, 3), [0, 100, 334])
    exchange.tell(4, task)
    house.helper(memory_tables).run(f"{job_id}:1:4:1")
    found = exchange.read_part(4, task, 1)
    problem = problem_of(house, owner)
    whole = partial_sum(QUERY, problem.model, problem.design, MemoryRows(), np.arange(300, SLOTS, 3))
    assert found is not None
    assert found.tolist() == whole.tolist()


def test_what_is_handed_in_too_late_is_withdrawn(house: House, owner: rows.Key) -> None:
    """Who asked has gone on meanwhile: nothing stays behind."""
    job_id, exchange = opened(house, owner)
    exchange.tell(0, Task(QUERY, range(SLOTS), [0, 512, SLOTS]))
    sharing = Sharing(house.areas.vault, OpeningKey(house.keys.opening_key), house.queue, PARTS, 1)
    house.helper(interfering(lambda: sharing.clear(job_id, 1))).run(f"{job_id}:1:0:0")
    assert stored(house.areas) == []


@pytest.mark.parametrize("attempts", [1, 3])
def test_w10_nothing_stays_of_workers_that_died_in_mid_query(house: House, owner: rows.Key, attempts: int) -> None:
    """W10: the next attempt destroys what they told each other, or the sweeper once there is none."""
    job_id, exchange = opened(house, owner)
    task = Task(QUERY, range(SLOTS), [0, 512, SLOTS])
    exchange.tell(3, task)
    exchange.hand_in(3, task, 0, np.zeros(7, np.int64))
    assert len(stored(house.areas)) == 2
    _lapsed(house, job_id, attempts=attempts)
    lose_lease(house, job_id)
    if attempts == 1:
        house.runner(memory_tables, parts=PARTS, queue=Crowd(lambda _: None)).run(job_id)
    assert house.read(job_id).status == ("succeeded" if attempts == 1 else "failed")
    assert len(stored(house.areas)) == (4 if attempts == 1 else 0)


def test_nothing_stays_of_a_job_that_ended_with_its_dataset(house: House, owner: rows.Key) -> None:
    """W10: its worker is dead, too; no helper opens the table any more, and the sweeper looks at ended jobs again."""
    job_id, exchange = opened(house, owner)
    exchange.tell(0, Task(QUERY, range(SLOTS), [0, 512, SLOTS]))
    seen: list[NDArray[np.int64]] = []
    with house.database.write() as tx:
        house.lifecycle.dataset_deleted(tx, house.read(job_id).dataset_id)
    house.helper(watched(seen)).run(f"{job_id}:1:0:0")
    assert seen == []
    house.sweeper._rare_at = 0.0
    house.sweeper.sweep()
    assert stored(house.areas) == []
