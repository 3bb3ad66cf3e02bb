"""A release without its charge is detected before the API serves requests."""

import pytest
import sqlalchemy as sa

from app.errors import StateConflict
from app.releases.audit import freeze_unaccounted
from tests.factories import rows
from tests.factories.worker import House


def test_a_release_without_a_settled_charge_freezes_its_account(house: House, owner: rows.Key) -> None:
    """W8, W11: a release whose row was moved to another job has no charge in the chain."""
    dataset_id = house.ready_dataset(owner)
    first, second = house.job(dataset_id, owner), house.job(dataset_id, owner)
    house.run(first)
    with house.database.write() as tx:
        assert freeze_unaccounted(tx, house.ledger) == ()
    with house.database.write() as tx:
        tx.execute(sa.text("UPDATE releases SET job_id = :job"), {"job": second})
    with house.database.write() as tx:
        assert len(freeze_unaccounted(tx, house.ledger)) == 1
    with pytest.raises(StateConflict):
        house.job(dataset_id, owner)
