"""Sums of parts, held against the sum of the whole, whoever hands in what."""

import time
import weakref
from collections.abc import Callable, Sequence
from contextlib import nullcontext

import numpy as np
import pytest
from numpy.typing import NDArray

from app.inference.core.problems import Problem
from app.inference.core.query import Integers
from app.inference.private_zone.partition import Summation, partial_sum
from app.inference.private_zone.queries import MeanSum
from app.jobs.lifecycle import Claim
from tests.factories import rows
from tests.factories.worker import SLOTS, House, MemoryRows
from tests.workers.crowd import CHUNK, CHUNKS, PARTS, QUERY, Crowd, Watched, problem_of
from workers.enclave import OpeningKey
from workers.split_queries.coordinator import SharedSum, Sharing
from workers.split_queries.mailbox import Exchange, Task
from workers.split_queries.part_id import PartId
from workers.split_queries.resident_parts import Memory, Parts

pytestmark = pytest.mark.usefixtures("small_chunks")
CLAIM = Claim("job_1", 2, 1)
# What somebody hands in wrongly is off by a million, so that it would show.
Wrong = Callable[[Exchange, House, Task, int, int, Integers], None]


def right(exchange: Exchange, _: House, task: Task, query: int, part: int, sums: Integers) -> None:
    exchange.hand_in(query, task, part, sums)


def twice(exchange: Exchange, house: House, task: Task, query: int, part: int, sums: Integers) -> None:
    for _ in range(2):
        right(exchange, house, task, query, part, sums)


def half(exchange: Exchange, house: House, task: Task, query: int, part: int, sums: Integers) -> None:
    if part % 2:
        right(exchange, house, task, query, part, sums)


def of_an_earlier_attempt(_: Exchange, house: House, task: Task, query: int, part: int, sums: Integers) -> None:
    earlier = Exchange(house.areas.vault, OpeningKey(house.keys.opening_key), CLAIM.job_id, CLAIM.fencing_token - 1)
    earlier.hand_in(query, task, part, sums + 10**6)


def of_the_last_query(exchange: Exchange, _: House, task: Task, query: int, part: int, sums: Integers) -> None:
    exchange.hand_in(query - 1 if query else 9, task, part, sums + 10**6)


def under_another_key(exchange: Exchange, _: House, task: Task, query: int, part: int, sums: Integers) -> None:
    exchange.hand_in(query, Task(task.query, task.slots, task.places), part, sums + 10**6)


def of_a_part_that_there_is_not(
    exchange: Exchange, house: House, task: Task, query: int, part: int, sums: Integers
) -> None:
    exchange.hand_in(query, task, part + PARTS, sums + 10**6)


def of_the_part_that_was_not_asked(
    exchange: Exchange, house: House, task: Task, query: int, part: int, sums: Integers
) -> None:
    exchange.hand_in(query, task, PARTS - 1, sums + 10**6)


BEHAVIOURS: list[Wrong] = [
    right,
    twice,
    half,
    of_an_earlier_attempt,
    of_the_last_query,
    under_another_key,
    of_a_part_that_there_is_not,
    of_the_part_that_was_not_asked,
]


def shared_sum(house: House, problem: Problem, behave: Wrong, source: MemoryRows) -> Summation:
    key = OpeningKey(house.keys.opening_key)
    exchange = Exchange(house.areas.vault, key, CLAIM.job_id, CLAIM.fencing_token)

    def act(identifiers: Sequence[str]) -> None:
        for identifier in identifiers:
            wanted = PartId.parse(identifier)
            assert wanted is not None
            task = exchange.read_task(wanted.query)
            assert task is not None
            sums = partial_sum(task.query, problem.model, problem.design, MemoryRows(), task.units(wanted.part))
            behave(exchange, house, task, wanted.query, wanted.part, sums)

    sharing = Sharing(house.areas.vault, key, Crowd(act), PARTS, 1)
    return SharedSum(sharing, CLAIM, exchange, problem, source)


@pytest.mark.parametrize("behave", BEHAVIOURS, ids=lambda behave: behave.__name__)
def test_w5_each_part_is_added_exactly_once(house: House, owner: rows.Key, behave: Wrong) -> None:
    """W5: bit for bit the sum of the whole: full, sampled and small, whoever hands in what."""
    problem = problem_of(house, owner)
    mine = shared_sum(house, problem, behave, MemoryRows())
    for query in (QUERY, MeanSum(1.0, problem.design.width, intercept=True, clip=1.0)):
        for slots in (range(SLOTS), np.arange(0, SLOTS, 2), np.arange(5), np.arange(0)):
            whole = partial_sum(query, problem.model, problem.design, MemoryRows(), slots)
            assert mine(query, slots).tolist() == whole.tolist()


def test_what_is_handed_in_is_not_computed_again(house: House, owner: rows.Key) -> None:
    seen: list[NDArray[np.int64]] = []
    shared_sum(house, problem_of(house, owner), right, Watched(seen))(QUERY, range(SLOTS))
    assert sum(map(len, seen)) == SLOTS - CHUNK * (CHUNKS * (PARTS - 1) // PARTS)


def test_rows_stay_in_memory_while_there_is_room(house: House, owner: rows.Key) -> None:
    """Consecutive units only: samples do not come back. The sums are the same either way."""
    problem = problem_of(house, owner)
    whole = partial_sum(QUERY, problem.model, problem.design, MemoryRows(), range(256)).tolist()
    for room, read in ((10**6, 256), (255 * 17, 3 * 256)):
        seen: list[NDArray[np.int64]] = []
        parts = Parts(problem, 1, room)
        for units in (range(256), np.arange(7), range(256), range(256)):
            found = parts.sum(QUERY, units, lambda: nullcontext(Watched(seen)))  # noqa: B023
            assert isinstance(units, np.ndarray) or found.tolist() == whole
        assert sum(map(len, seen)) == read + 7


def test_a_helper_forgets_when_it_is_not_asked_again(house: House, owner: rows.Key) -> None:
    """Rows outlive a query in a helper's memory by little, and another attempt's query ends them."""
    problem = problem_of(house, owner)
    memory = Memory(0.01)
    first = memory.of(("job_1", 1), lambda: Parts(problem, 1))
    assert memory.of(("job_1", 1), lambda: Parts(problem, 1)) is first
    second = memory.of(("job_1", 2), lambda: Parts(problem, 1))
    assert second is not first
    memory.keep()
    assert memory.of(("job_1", 2), lambda: Parts(problem, 1)) is second
    memory.keep()
    gone = weakref.ref(second)
    del second
    deadline = time.monotonic() + 30
    while gone() is not None:
        assert time.monotonic() < deadline
        time.sleep(0.01)
