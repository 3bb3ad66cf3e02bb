"""W10: a job that loses its worker repeatedly ends, and is charged if its data was opened."""

import pytest

from app.jobs.lifecycle import MAX_ATTEMPTS
from tests.factories import rows
from tests.factories.worker import House
from tests.workers.support import lose_lease


@pytest.mark.parametrize(("opens", "charge"), [(True, "settled"), (False, "voided")], ids=["opened", "reserved"])
def test_job_whose_worker_dies_every_time_ends(
    house: House, dataset_id: str, analyst: rows.Key, opens: bool, charge: str
) -> None:
    """W10: every job ends, because attempts are counted."""
    job_id, claims = house.job(dataset_id, analyst), 0
    while claims <= 2 * MAX_ATTEMPTS:
        with house.database.write() as tx:
            claim = house.lifecycle.claim(tx, job_id)
        if claim is None:
            break
        claims += 1
        assert claim.attempt == claims
        if opens:
            with house.database.write() as tx:
                house.lifecycle.open(tx, claim)
        lose_lease(house, job_id)
    assert claims == MAX_ATTEMPTS
    assert (house.read(job_id).status, house.read(job_id).error_code) == ("failed", "interrupted")
    assert house.charge(job_id) == charge
