"""W11: at start-up the API replays every account from its first entry."""

from collections.abc import Callable
from typing import Any

import httpx
import pytest
from sqlalchemy import delete, select, update

from app.ledger.integrity.snapshots import REPLAYED_AT_MOST
from app.main import create_app
from tests.factories import rows
from tests.factories.tampering import drop_triggers, table
from tests.factories.transport import AppTransport
from tests.factories.worker import House
from tests.workers.support import kinds

ENTRIES = table("ledger_entries")
TAMPERED: dict[str, Callable[[Any], Any]] = {
    "altered": lambda first: update(ENTRIES).where(first).values(body={"balance": {}}),
    "lost": lambda first: delete(ENTRIES).where(first),
}


def start(house: House) -> None:
    with httpx.Client(transport=AppTransport(create_app(house.services)), base_url="http://corevault.test") as client:
        client.get("/health/ready")


@pytest.mark.parametrize("tamper", TAMPERED.values(), ids=TAMPERED.keys())
def test_an_altered_old_entry_freezes_its_account_at_start(
    house: House, owner: rows.Key, tamper: Callable[[Any], Any]
) -> None:
    """Several signed snapshots follow the entry, so no charge reads it again."""
    dataset_id, untouched = house.ready_dataset(owner), house.ready_dataset(owner)
    for _ in range(REPLAYED_AT_MOST):
        with house.database.write() as tx:
            house.ledger.change_limit(tx, dataset_id, 2.0, None)
    house.run(house.job(dataset_id, owner))
    with house.database.write() as tx:
        drop_triggers(tx)
        account_id = tx.scalars(select(ENTRIES.c.account_id).where(ENTRIES.c.dataset_id == dataset_id)).first()
        first = (ENTRIES.c.account_id == account_id) & (ENTRIES.c.sequence == 1)
        tx.execute(tamper(first))
    house.job(dataset_id, owner)
    start(house)
    assert "frozen" in kinds(house, dataset_id)
    assert "frozen" not in kinds(house, untouched)
