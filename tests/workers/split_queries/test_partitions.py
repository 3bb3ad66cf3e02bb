"""Jobs whose queries are split among workers: whoever helps, fails or is not there, the job ends as it would alone."""

import re
from collections.abc import Sequence

import numpy as np
import pytest
from numpy.typing import NDArray

from app.errors import DependencyUnavailable
from app.queue import SUM_PARTITION
from tests.factories import rows
from tests.factories.datasets import stored
from tests.factories.worker import JOB, SLOTS, House, memory_tables
from tests.workers.crowd import CHUNK, CHUNKS, PARTS, Crowd, watched
from tests.workers.support import kinds, raising, releases
from workers.enclave import OpeningKey
from workers.split_queries.coordinator import Sharing
from workers.split_queries.mailbox import Exchange

pytestmark = pytest.mark.usefixtures("small_chunks")
STEPS = JOB["privacy"]["iterations"]


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


def test_a_helpers_fault_among_the_rows_freezes_the_account(house: House, owner: rows.Key) -> None:
    """W14: it tells as much of a row there as it would have here."""
    helper = house.helper(raising(ZeroDivisionError()))
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
    helper = house.helper(raising(error))

    def act(identifiers: Sequence[str]) -> None:
        for identifier in identifiers:
            with pytest.raises(type(error)):
                helper.run(identifier)

    job_id = house.job(house.ready_dataset(owner), owner)
    house.runner(memory_tables, parts=PARTS, queue=Crowd(act)).run(job_id)
    assert house.read(job_id).status == "succeeded"


def test_a_store_that_takes_no_task_costs_only_time(
    house: House, owner: rows.Key, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Exchange, "tell", lambda *_: False)
    crowd = Crowd(lambda _: None)
    job_id = house.job(house.ready_dataset(owner), owner)
    house.runner(memory_tables, parts=PARTS, queue=crowd).run(job_id)
    assert house.read(job_id).status == "succeeded"
    assert crowd.sent == []
