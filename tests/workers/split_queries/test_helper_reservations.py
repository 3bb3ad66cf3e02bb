"""W8: a helper reads rows only under an opened reservation."""

import numpy as np
import pytest
from numpy.typing import NDArray
from sqlalchemy import select

from app.datasets.models import Content
from app.jobs import repository
from app.jobs.lifecycle import Claim
from app.vault.store import ObjectStore
from tests.factories import rows
from tests.factories.datasets import stored
from tests.factories.worker import SLOTS, House
from tests.workers.instant_helpers import PARTS, QUERY, recording_tables
from workers.enclave import OpeningKey
from workers.split_queries.mailbox import Mailbox, Task

pytestmark = pytest.mark.usefixtures("small_chunks")


def _claim_job(house: House, owner: rows.Key) -> Claim:
    """Claim a job whose content is pinned and whose reservation is not opened yet."""
    job_id = house.job(house.ready_dataset(owner), owner)
    with house.database.write() as tx:
        claim = house.lifecycle.claim(tx, job_id)
        assert claim is not None
        repository.change(tx, job_id, content_id=tx.scalars(select(Content.id)).one())
    return claim


@pytest.mark.parametrize("state", ["reserved", "opened", "settled", "voided"])
def test_helper_reads_rows_of_an_opened_reservation_only(house: House, owner: rows.Key, state: str) -> None:
    """W8: the state of the reservation decides, even if the job runs and its task is current."""
    claim = _claim_job(house, owner)
    with house.database.write() as tx:
        if state in {"opened", "settled"}:
            house.lifecycle.open(tx, claim)
        if state == "settled":
            house.ledger.settle(tx, claim.job_id, ())
        if state == "voided":
            house.ledger.void(tx, claim.job_id)
    assert house.charge(claim.job_id) == state
    store: ObjectStore = house.areas.vault
    mailbox = Mailbox(store, OpeningKey(house.keys.opening_key), claim.job_id, claim.fencing_token)
    cuts = [SLOTS * part // PARTS for part in range(PARTS + 1)]
    assert mailbox.put_task(0, Task(QUERY, range(SLOTS), cuts))
    before = stored(house.areas)
    read: list[NDArray[np.int64]] = []
    house.helper(recording_tables(read)).run(f"{claim.job_id}:1:0:0")
    assert (len(read) > 0, stored(house.areas) != before) == ((True, True) if state == "opened" else (False, False))
