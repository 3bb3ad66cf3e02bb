"""Sums of parts equal the sum of the whole, also with wrong helpers."""

import time
import weakref
from collections.abc import Callable, Sequence
from contextlib import nullcontext

import numpy as np
import pytest
from numpy.typing import NDArray

from app.inference.core.problems import Problem
from app.inference.core.query import Integers
from app.inference.private_zone.partition import Summation, compute_partial_sum
from app.inference.private_zone.queries import MeanSum
from app.jobs.lifecycle import Claim
from tests.factories import rows
from tests.factories.worker import SLOTS, House, MemoryRows
from tests.workers.instant_helpers import CHUNK, CHUNKS, PARTS, QUERY, InstantQueue, RecordingRows, problem_of
from workers.enclave import OpeningKey
from workers.split_queries.coordinator import Sharing, SplitSum
from workers.split_queries.mailbox import Mailbox, Task
from workers.split_queries.part_id import PartId
from workers.split_queries.resident_parts import PartSummer, SummerCache

pytestmark = pytest.mark.usefixtures("small_chunks")
CLAIM = Claim("job_1", 2, 1)
Behaviour = Callable[[Mailbox, House, Task, int, int, Integers], None]
"""Puts the sums of a part. Behaviour sums are too large by a million, so that they would change the total."""


def correctly(mailbox: Mailbox, _: House, task: Task, query: int, part: int, sums: Integers) -> None:
    mailbox.put_part(query, task, part, sums)


def twice(mailbox: Mailbox, house: House, task: Task, query: int, part: int, sums: Integers) -> None:
    for _ in range(2):
        correctly(mailbox, house, task, query, part, sums)


def every_second_part(mailbox: Mailbox, house: House, task: Task, query: int, part: int, sums: Integers) -> None:
    if part % 2:
        correctly(mailbox, house, task, query, part, sums)


def for_an_earlier_attempt(_: Mailbox, house: House, task: Task, query: int, part: int, sums: Integers) -> None:
    earlier = Mailbox(house.areas.vault, OpeningKey(house.keys.opening_key), CLAIM.job_id, CLAIM.fencing_token - 1)
    earlier.put_part(query, task, part, sums + 10**6)


def for_the_last_query(mailbox: Mailbox, _: House, task: Task, query: int, part: int, sums: Integers) -> None:
    mailbox.put_part(query - 1 if query else 9, task, part, sums + 10**6)


def under_another_key(mailbox: Mailbox, _: House, task: Task, query: int, part: int, sums: Integers) -> None:
    mailbox.put_part(query, Task(task.query, task.slots, task.places), part, sums + 10**6)


def for_a_part_out_of_range(mailbox: Mailbox, house: House, task: Task, query: int, part: int, sums: Integers) -> None:
    mailbox.put_part(query, task, part + PARTS, sums + 10**6)


def for_the_coordinators_part(
    mailbox: Mailbox, house: House, task: Task, query: int, part: int, sums: Integers
) -> None:
    mailbox.put_part(query, task, PARTS - 1, sums + 10**6)


BEHAVIOURS: list[Behaviour] = [
    correctly,
    twice,
    every_second_part,
    for_an_earlier_attempt,
    for_the_last_query,
    under_another_key,
    for_a_part_out_of_range,
    for_the_coordinators_part,
]


def make_split_sum(house: House, problem: Problem, behave: Behaviour, source: MemoryRows) -> Summation:
    key = OpeningKey(house.keys.opening_key)
    mailbox = Mailbox(house.areas.vault, key, CLAIM.job_id, CLAIM.fencing_token)

    def act(identifiers: Sequence[str]) -> None:
        for identifier in identifiers:
            part_id = PartId.parse(identifier)
            assert part_id is not None
            task = mailbox.read_task(part_id.query)
            assert task is not None
            sums = compute_partial_sum(
                task.query, problem.model, problem.design, MemoryRows(), task.units(part_id.part)
            )
            behave(mailbox, house, task, part_id.query, part_id.part, sums)

    sharing = Sharing(house.areas.vault, key, InstantQueue(act), PARTS, 1)
    return SplitSum(sharing, CLAIM, mailbox, problem, source)


@pytest.mark.parametrize("behave", BEHAVIOURS, ids=lambda behave: behave.__name__)
def test_w5_each_part_is_added_exactly_once(house: House, owner: rows.Key, behave: Behaviour) -> None:
    """W5: the sum is exactly that of the whole, for full, sampled and small queries."""
    problem = problem_of(house, owner)
    mine = make_split_sum(house, problem, behave, MemoryRows())
    for query in (QUERY, MeanSum(1.0, problem.design.width, intercept=True, clip=1.0)):
        for slots in (range(SLOTS), np.arange(0, SLOTS, 2), np.arange(5), np.arange(0)):
            whole = compute_partial_sum(query, problem.model, problem.design, MemoryRows(), slots)
            assert mine(query, slots).tolist() == whole.tolist()


def test_part_from_a_helper_is_not_computed_again(house: House, owner: rows.Key) -> None:
    seen: list[NDArray[np.int64]] = []
    make_split_sum(house, problem_of(house, owner), correctly, RecordingRows(seen))(QUERY, range(SLOTS))
    assert sum(map(len, seen)) == SLOTS - CHUNK * (CHUNKS * (PARTS - 1) // PARTS)


def test_rows_of_consecutive_units_stay_in_memory(house: House, owner: rows.Key) -> None:
    """They stay only if the limit allows it, and rows of samples do not. The sums are the same in all cases."""
    problem = problem_of(house, owner)
    whole = compute_partial_sum(QUERY, problem.model, problem.design, MemoryRows(), range(256)).tolist()
    for room, read in ((10**6, 256), (255 * 17, 3 * 256)):
        seen: list[NDArray[np.int64]] = []
        summer = PartSummer(problem, 1, room)
        for units in (range(256), np.arange(7), range(256), range(256)):
            sums = summer.sum(QUERY, units, lambda: nullcontext(RecordingRows(seen)))  # noqa: B023
            assert isinstance(units, np.ndarray) or sums.tolist() == whole
        assert sum(map(len, seen)) == read + 7


def test_idle_helper_forgets_its_rows(house: House, owner: rows.Key) -> None:
    """Rows leave a helper's memory soon after a query, or when another attempt asks."""
    problem = problem_of(house, owner)
    cache = SummerCache(0.01)
    first = cache.get(("job_1", 1), lambda: PartSummer(problem, 1))
    assert cache.get(("job_1", 1), lambda: PartSummer(problem, 1)) is first
    second = cache.get(("job_1", 2), lambda: PartSummer(problem, 1))
    assert second is not first
    cache.start_timer()
    assert cache.get(("job_1", 2), lambda: PartSummer(problem, 1)) is second
    cache.start_timer()
    reference = weakref.ref(second)
    del second
    deadline = time.monotonic() + 30
    while reference() is not None:
        assert time.monotonic() < deadline
        time.sleep(0.01)
