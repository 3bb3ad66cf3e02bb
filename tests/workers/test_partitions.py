"""Queries on many workers: whoever helps, is late, lies or dies, the sum is one sum, and nothing of it stays."""

import re
import time
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from datetime import timedelta
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from app.datasets.facts import declared_facts
from app.db import now
from app.errors import DependencyUnavailable
from app.inference import partition
from app.inference.partition import Summation, partial_sum
from app.inference.problems import Problem
from app.inference.protocol import Integers, ModelSpec
from app.inference.questions import CountSum, PotentialSum
from app.inference.registry import model_for
from app.jobs import repository
from app.jobs.lifecycle import Claim
from app.queue import SUM_PARTITION
from tests.factories import rows
from tests.factories.datasets import stored
from tests.factories.queue import RecordingQueue
from tests.factories.worker import JOB, SLOTS, House, MemoryRows, memory_tables
from tests.workers.test_runner import kinds, lose_lease, releases
from workers.assignments import Assignment
from workers.enclave import OpeningKey
from workers.enclave.exchange import Exchange, Task
from workers.partitions import PartId, SharedSum, Sharing
from workers.parts import Memory, Parts

CHUNK = 128
CHUNKS = -(-SLOTS // CHUNK)
PARTS = 4
STEPS = JOB["privacy"]["iterations"]
CLAIM = Claim("job_1", 2, 1)
QUESTION = PotentialSum(np.random.default_rng(3).standard_normal((7, 4)), 0.5)


@pytest.fixture(autouse=True)
def _small_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(partition, "chunk_units", lambda *_: CHUNK)


class Crowd(RecordingQueue):
    """A broker whose workers act at once."""

    def __init__(self, act: Callable[[Sequence[str]], None]) -> None:
        super().__init__()
        self._act = act

    def send_group(self, task: str, identifiers: Sequence[str]) -> None:
        super().send_group(task, identifiers)
        self._act(identifiers)


class Watched(MemoryRows):
    """Tells which slots were read."""

    def __init__(self, seen: list[NDArray[np.int64]]) -> None:
        super().__init__()
        self._seen = seen

    def gather(self, indices: NDArray[np.int64]) -> Any:
        self._seen.append(indices)
        return super().gather(indices)


def watched(seen: list[NDArray[np.int64]]) -> Any:
    @contextmanager
    def tables(_: Assignment) -> Iterator[MemoryRows]:
        yield Watched(seen)

    return tables


def failing(error: Exception) -> Any:
    class Failing(MemoryRows):
        def gather(self, indices: NDArray[np.int64]) -> Any:
            raise error

    @contextmanager
    def tables(_: Assignment) -> Iterator[MemoryRows]:
        yield Failing()

    return tables


def test_helpers_take_every_part_but_the_last(house: House, owner: rows.Key) -> None:
    """Each slot is read once, by one worker or another, and stays there; what they told each other is gone."""
    mine: list[NDArray[np.int64]] = []
    theirs: list[NDArray[np.int64]] = []
    helper = house.helper(watched(theirs))
    crowd = Crowd(lambda identifiers: [*map(helper.run, identifiers)].clear())
    dataset_id = house.ready_dataset(owner)
    job_id = house.job(dataset_id, owner)
    house.runner(watched(mine), parts=PARTS, queue=crowd).run(job_id)
    assert house.read(job_id).status == "succeeded"
    assert np.array_equal(np.sort(np.concatenate([*mine, *theirs])), np.arange(SLOTS))
    assert min(map(np.min, mine)) == CHUNK * (CHUNKS * (PARTS - 1) // PARTS)
    assert len(releases(house)) == 1
    assert len(stored(house.areas)) == 4
    assert kinds(house, dataset_id) == ["account_opened", "reserved", "opened", "settled"]


def test_w3_messages_carry_ids_only(house: House, owner: rows.Key) -> None:
    """W3: job, token, query, part; one message a part, but for the last, which whoever asks takes."""
    crowd = Crowd(lambda _: None)
    job_id = house.job(house.ready_dataset(owner), owner)
    house.runner(memory_tables, parts=PARTS, queue=crowd).run(job_id)
    expected = [(SUM_PARTITION, f"{job_id}:1:{q}:{p}") for q in range(STEPS) for p in range(PARTS - 1)]
    assert crowd.sent == expected
    assert all(re.fullmatch(r"[a-z0-9_]+:\d+:\d+:\d+", identifier) for _, identifier in crowd.sent)
    assert house.read(job_id).status == "succeeded"


@pytest.mark.parametrize(("parts", "least_rows"), [(1, 1), (PARTS, SLOTS + 1)])
def test_small_queries_are_not_split(house: House, owner: rows.Key, parts: int, least_rows: int) -> None:
    """By slots, plan and settings, which are public."""
    crowd = Crowd(lambda _: None)
    runner = house.runner(memory_tables, parts=parts, queue=crowd)
    runner._sharing = Sharing(house.areas.vault, OpeningKey(house.keys.opening_key), crowd, parts, least_rows)
    job_id = house.job(house.ready_dataset(owner), owner)
    runner.run(job_id)
    assert house.read(job_id).status == "succeeded"
    assert crowd.sent == []


def test_jobs_on_public_data_are_not_split(house: House, owner: rows.Key) -> None:
    crowd = Crowd(lambda _: None)
    dataset_id = house.ready_dataset(owner, sensitivity="public")
    job_id = house.job(dataset_id, owner, method="uniform", parameters={}, privacy=None)
    house.runner(memory_tables, parts=PARTS, queue=crowd).run(job_id)
    assert house.read(job_id).status == "succeeded"
    assert crowd.sent == []


# Sums, held against the whole: what somebody hands in wrongly is off by a million, so that it would show.
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
    exchange.hand_in(query, Task(task.question, task.slots, task.places), part, sums + 10**6)


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


def problem_of(house: House, owner: rows.Key) -> Problem:
    with house.database.write() as tx:
        facts = declared_facts(rows.dataset(tx, owner.id, slots=SLOTS))
    return model_for(ModelSpec("logistic-regression", ("age", "hours", "sex"), "income_gt_50k"), facts)


def shared_sum(house: House, problem: Problem, behave: Wrong, source: MemoryRows) -> Summation:
    key = OpeningKey(house.keys.opening_key)
    exchange = Exchange(house.areas.vault, key, CLAIM.job_id, CLAIM.fencing_token)

    def act(identifiers: Sequence[str]) -> None:
        for identifier in identifiers:
            wanted = PartId.parse(identifier)
            assert wanted is not None
            task = exchange.told(wanted.query)
            assert task is not None
            sums = partial_sum(task.question, problem.model, problem.design, MemoryRows(), task.units(wanted.part))
            behave(exchange, house, task, wanted.query, wanted.part, sums)

    sharing = Sharing(house.areas.vault, key, Crowd(act), PARTS, 1)
    return SharedSum(sharing, CLAIM, exchange, problem, source)


@pytest.mark.parametrize("behave", BEHAVIOURS, ids=lambda behave: behave.__name__)
def test_w5_each_part_is_added_exactly_once(house: House, owner: rows.Key, behave: Wrong) -> None:
    """W5: bit for bit the sum of the whole: full, sampled and small, whoever hands in what."""
    problem = problem_of(house, owner)
    mine = shared_sum(house, problem, behave, MemoryRows())
    for question in (QUESTION, CountSum()):
        for slots in (range(SLOTS), np.arange(0, SLOTS, 2), np.arange(5), np.arange(0)):
            whole = partial_sum(question, problem.model, problem.design, MemoryRows(), slots)
            assert mine(question, slots).tolist() == whole.tolist()


def test_what_is_handed_in_is_not_computed_again(house: House, owner: rows.Key) -> None:
    seen: list[NDArray[np.int64]] = []
    shared_sum(house, problem_of(house, owner), right, Watched(seen))(QUESTION, range(SLOTS))
    assert sum(map(len, seen)) == SLOTS - CHUNK * (CHUNKS * (PARTS - 1) // PARTS)


def test_rows_stay_in_memory_while_there_is_room(house: House, owner: rows.Key) -> None:
    """Consecutive units only: samples do not come back. The sums are the same either way."""
    problem = problem_of(house, owner)
    whole = partial_sum(QUESTION, problem.model, problem.design, MemoryRows(), range(256)).tolist()
    for room, read in ((10**6, 256), (255 * 17, 3 * 256)):
        seen: list[NDArray[np.int64]] = []
        parts = Parts(problem, 1, room)
        for units in (range(256), np.arange(7), range(256), range(256)):
            found = parts.sum(QUESTION, units, lambda: nullcontext(Watched(seen)))  # noqa: B023
            assert isinstance(units, np.ndarray) or found.tolist() == whole
        assert sum(map(len, seen)) == read + 7


def test_a_helper_forgets_when_it_is_not_asked_again(house: House, owner: rows.Key) -> None:
    """Rows outlive a query in a helper's memory by little, and another attempt's question ends them."""
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


def test_a_helpers_fault_among_the_rows_freezes_the_account(house: House, owner: rows.Key) -> None:
    """W14: it tells as much of a row there as it would have here."""
    helper = house.helper(failing(ZeroDivisionError()))
    dataset_id = house.ready_dataset(owner)
    job_id = house.job(dataset_id, owner)
    crowd = Crowd(lambda identifiers: helper.run(identifiers[0]))
    house.runner(memory_tables, parts=PARTS, queue=crowd).run(job_id)
    assert (house.read(job_id).error_code, house.charge(job_id)) == ("run_failed", "settled")
    assert kinds(house, dataset_id)[-1] == "frozen"
    assert stored(house.areas) == []


@pytest.mark.parametrize("error", [DependencyUnavailable(), MemoryError()])
def test_a_helper_that_cannot_leaves_the_part_to_who_asked(house: House, owner: rows.Key, error: Exception) -> None:
    """W10: what ails a helper's machine is no fault of the rows, and costs the job nothing."""
    helper = house.helper(failing(error))

    def act(identifiers: Sequence[str]) -> None:
        for identifier in identifiers:
            with pytest.raises(type(error)):
                helper.run(identifier)

    job_id = house.job(house.ready_dataset(owner), owner)
    house.runner(memory_tables, parts=PARTS, queue=Crowd(act)).run(job_id)
    assert house.read(job_id).status == "succeeded"


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
}


@pytest.mark.parametrize(("identifier", "changes"), LAPSES.values(), ids=LAPSES.keys())
def test_w8_a_message_that_nobody_waits_for_opens_no_table(
    house: House, owner: rows.Key, identifier: str, changes: dict[str, Any]
) -> None:
    """W8: rows are read for the attempt that holds the job under an opened reservation, and for its current query."""
    job_id, exchange = opened(house, owner)
    exchange.tell(0, Task(QUESTION, range(SLOTS), [0, 256, 512, 768, SLOTS]))
    seen: list[NDArray[np.int64]] = []
    if changes:
        _lapsed(house, job_id, **changes)
    house.helper(watched(seen)).run(identifier.format(job_id))
    assert seen == []
    assert len(stored(house.areas)) == 1


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


def test_a_message_that_somebody_waits_for_is_answered(house: House, owner: rows.Key) -> None:
    job_id, exchange = opened(house, owner)
    task = Task(QUESTION, np.arange(0, SLOTS, 3), [0, 100, 334])
    exchange.tell(4, task)
    house.helper(memory_tables).run(f"{job_id}:1:4:1")
    found = exchange.handed_in(4, task, 1)
    problem = problem_of(house, owner)
    whole = partial_sum(QUESTION, problem.model, problem.design, MemoryRows(), np.arange(300, SLOTS, 3))
    assert found is not None
    assert found.tolist() == whole.tolist()


def test_what_is_handed_in_too_late_is_withdrawn(house: House, owner: rows.Key) -> None:
    """Who asked has gone on meanwhile: nothing stays behind."""
    job_id, exchange = opened(house, owner)
    exchange.tell(0, Task(QUESTION, range(SLOTS), [0, 512, SLOTS]))
    sharing = Sharing(house.areas.vault, OpeningKey(house.keys.opening_key), house.queue, PARTS, 1)

    class Ending(MemoryRows):
        def gather(self, indices: NDArray[np.int64]) -> Any:
            sharing.clear(job_id, 1)
            return super().gather(indices)

    @contextmanager
    def tables(_: Assignment) -> Iterator[MemoryRows]:
        yield Ending()

    house.helper(tables).run(f"{job_id}:1:0:0")
    assert stored(house.areas) == []


@pytest.mark.parametrize("attempts", [1, 3])
def test_w10_nothing_stays_of_workers_that_died_in_mid_query(house: House, owner: rows.Key, attempts: int) -> None:
    """W10: the next attempt destroys what they told each other, or the sweeper once there is none."""
    job_id, exchange = opened(house, owner)
    task = Task(QUESTION, range(SLOTS), [0, 512, SLOTS])
    exchange.tell(3, task)
    exchange.hand_in(3, task, 0, np.zeros(7, np.int64))
    assert len(stored(house.areas)) == 2
    _lapsed(house, job_id, attempts=attempts)
    lose_lease(house, job_id)
    if attempts == 1:
        house.runner(memory_tables, parts=PARTS, queue=Crowd(lambda _: None)).run(job_id)
    assert house.read(job_id).status == ("succeeded" if attempts == 1 else "failed")
    assert len(stored(house.areas)) == (4 if attempts == 1 else 0)


def test_a_store_that_takes_no_task_costs_only_time(
    house: House, owner: rows.Key, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Exchange, "tell", lambda *_: False)
    crowd = Crowd(lambda _: None)
    job_id = house.job(house.ready_dataset(owner), owner)
    house.runner(memory_tables, parts=PARTS, queue=crowd).run(job_id)
    assert house.read(job_id).status == "succeeded"
    assert crowd.sent == []


def test_nothing_stays_of_a_job_that_ended_with_its_dataset(house: House, owner: rows.Key) -> None:
    """W10: its worker is dead, too; no helper opens the table any more, and the sweeper looks at ended jobs again."""
    job_id, exchange = opened(house, owner)
    exchange.tell(0, Task(QUESTION, range(SLOTS), [0, 512, SLOTS]))
    seen: list[NDArray[np.int64]] = []
    with house.database.write() as tx:
        house.lifecycle.dataset_deleted(tx, house.read(job_id).dataset_id)
    house.helper(watched(seen)).run(f"{job_id}:1:0:0")
    assert seen == []
    house.sweeper._rare_at = 0.0
    house.sweeper.sweep()
    assert stored(house.areas) == []
