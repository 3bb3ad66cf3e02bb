"""Jobs with split queries end as on one worker, also if helpers fail."""

import re
from collections.abc import Sequence

import numpy as np
import pytest
from numpy.typing import NDArray

from app.errors import DependencyUnavailable
from app.queue import SUM_PARTITION
from tests.factories import rows
from tests.factories.datasets import stored
from tests.factories.representations import REPRESENTATIONS
from tests.factories.worker import JOB, SLOTS, House, memory_tables
from tests.workers.instant_helpers import CHUNK, CHUNKS, PARTS, InstantQueue, recording_tables
from tests.workers.support import failing_tables, kinds, releases
from workers.enclave import OpeningKey
from workers.split_queries.coordinator import Sharing
from workers.split_queries.mailbox import Mailbox

pytestmark = pytest.mark.usefixtures("small_chunks")
STEPS = JOB["privacy"]["iterations"]


def test_helpers_take_every_part_but_the_last(house: House, owner: rows.Key) -> None:
    """One worker reads each slot, and no note remains in the store."""
    mine: list[NDArray[np.int64]] = []
    theirs: list[NDArray[np.int64]] = []
    helper = house.helper(recording_tables(theirs))
    queue = InstantQueue(lambda identifiers: [*map(helper.run, identifiers)].clear())
    dataset_id = house.ready_dataset(owner)
    job_id = house.job(dataset_id, owner)
    house.runner(recording_tables(mine), parts=PARTS, queue=queue).run(job_id)
    assert house.read(job_id).status == "succeeded"
    assert np.array_equal(np.sort(np.concatenate([*mine, *theirs])), np.arange(SLOTS))
    assert min(map(np.min, mine)) == CHUNK * (CHUNKS * (PARTS - 1) // PARTS)
    assert len(releases(house)) == 1
    assert len(stored(house.areas)) == len(REPRESENTATIONS)
    assert kinds(house, dataset_id) == ["account_opened", "reserved", "opened", "settled"]


def test_w3_messages_carry_ids_only(house: House, owner: rows.Key) -> None:
    """W3: job, token, query and part; one message for each part except the last, which the coordinator sums."""
    queue = InstantQueue(lambda _: None)
    job_id = house.job(house.ready_dataset(owner), owner)
    house.runner(memory_tables, parts=PARTS, queue=queue).run(job_id)
    expected = [(SUM_PARTITION, f"{job_id}:1:{q}:{p}") for q in range(STEPS) for p in range(PARTS - 1)]
    assert queue.sent == expected
    assert all(re.fullmatch(r"[a-z0-9_]+:\d+:\d+:\d+", identifier) for _, identifier in queue.sent)
    assert house.read(job_id).status == "succeeded"


@pytest.mark.parametrize(("parts", "least_rows"), [(1, 1), (PARTS, SLOTS + 1)])
def test_small_queries_are_not_split(house: House, owner: rows.Key, parts: int, least_rows: int) -> None:
    """The size follows from slots, plan and settings, which are public."""
    queue = InstantQueue(lambda _: None)
    runner = house.runner(memory_tables, parts=parts, queue=queue)
    runner._sharing = Sharing(house.areas.vault, OpeningKey(house.keys.opening_key), queue, parts, least_rows)
    job_id = house.job(house.ready_dataset(owner), owner)
    runner.run(job_id)
    assert house.read(job_id).status == "succeeded"
    assert queue.sent == []


def test_jobs_on_public_data_are_not_split(house: House, owner: rows.Key) -> None:
    queue = InstantQueue(lambda _: None)
    dataset_id = house.ready_dataset(owner, sensitivity="public")
    job_id = house.job(dataset_id, owner, method="uniform", parameters={}, privacy=None)
    house.runner(memory_tables, parts=PARTS, queue=queue).run(job_id)
    assert house.read(job_id).status == "succeeded"
    assert queue.sent == []


def test_fault_on_rows_in_a_helper_freezes_the_account(house: House, owner: rows.Key) -> None:
    """W14: a fault in a helper may reveal a row like a fault in the coordinator."""
    helper = house.helper(failing_tables(ZeroDivisionError()))
    dataset_id = house.ready_dataset(owner)
    job_id = house.job(dataset_id, owner)
    queue = InstantQueue(lambda identifiers: helper.run(identifiers[0]))
    house.runner(memory_tables, parts=PARTS, queue=queue).run(job_id)
    assert (house.read(job_id).error_code, house.charge(job_id)) == ("run_failed", "settled")
    assert kinds(house, dataset_id)[-1] == "frozen"
    assert stored(house.areas) == []


@pytest.mark.parametrize("error", [DependencyUnavailable(), MemoryError()])
def test_coordinator_sums_the_part_of_a_failing_helper(house: House, owner: rows.Key, error: Exception) -> None:
    """W10: a failure of the helper's machine is not a fault on rows, and the job succeeds."""
    helper = house.helper(failing_tables(error))

    def act(identifiers: Sequence[str]) -> None:
        for identifier in identifiers:
            with pytest.raises(type(error)):
                helper.run(identifier)

    job_id = house.job(house.ready_dataset(owner), owner)
    house.runner(memory_tables, parts=PARTS, queue=InstantQueue(act)).run(job_id)
    assert house.read(job_id).status == "succeeded"


def test_job_succeeds_if_the_store_takes_no_task(
    house: House, owner: rows.Key, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Mailbox, "put_task", lambda *_: False)
    queue = InstantQueue(lambda _: None)
    job_id = house.job(house.ready_dataset(owner), owner)
    house.runner(memory_tables, parts=PARTS, queue=queue).run(job_id)
    assert house.read(job_id).status == "succeeded"
    assert queue.sent == []
