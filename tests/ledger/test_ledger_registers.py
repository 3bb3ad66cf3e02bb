"""W5, W11: registers of people in a series are entries of the ledger, and a worker must have used all of them."""

from collections.abc import Mapping
from typing import Any

import pytest

from app.db import WriteSession
from app.errors import NotFound, StateConflict
from app.ledger import Registration
from app.ledger.account import locked_account
from tests.ledger.support import Bench, costing

SERIES = "visits"
UNIT = {"kind": "column", "column": "person", "max_rows": 2}


def register(bench: Bench, dataset_id: str, place: int, used: Mapping[str, int], series: str = SERIES) -> None:
    added = Registration(series, place, f"register-{place}")

    def act(tx: WriteSession) -> None:
        locked = bench.ledger.lock_accounts(tx, dataset_id)
        bench.ledger.register_people(tx, locked, dataset_id, added=added, used=used)

    bench.write(act)


def open_block(bench: Bench, dataset_id: str, **changes: Any) -> None:
    fields: dict[str, Any] = {"population": dataset_id, "unit": UNIT, "slots": 40, **changes}
    bench.open_account(dataset_id, **fields)


def is_frozen(bench: Bench, dataset_id: str) -> bool:
    with bench.database.read() as session:
        return any(each.kind == "frozen" for each in bench.ledger.entries(session, dataset_id, before=None, limit=100))


@pytest.fixture
def blocks(bench: Bench) -> Bench:
    """Three blocks of one series; the first two have a content each."""
    for name in ("ds_1", "ds_2", "ds_3"):
        open_block(bench, name)
    register(bench, "ds_1", 1, {})
    register(bench, "ds_2", 2, {"register-1": 40})
    return bench


def test_a_registration_is_found_by_its_register(blocks: Bench) -> None:
    with blocks.database.read() as session:
        assert blocks.ledger.registration(session, "ds_2", "register-2") == Registration(SERIES, 2, "register-2")
        assert blocks.ledger.registration(session, "ds_2", "register-1") is None
        assert blocks.ledger.registration(session, "ds_a", "register-1") is None
    assert blocks.verify() == ()


@pytest.mark.parametrize(
    "used",
    [
        {},
        {"register-1": 40},
        {"register-2": 40},
        {"register-1": 40, "register-2": 39},
        {"register-1": 40, "register-9": 40},
        {"register-1": 40, "register-2": 40, "register-9": 40},
    ],
)
def test_other_registers_than_those_of_the_ledger_freeze(blocks: Bench, used: Mapping[str, int]) -> None:
    with pytest.raises(StateConflict, match="registers of this series"):
        register(blocks, "ds_3", 3, used)
    assert is_frozen(blocks, "ds_3")
    with blocks.database.read() as session:
        assert blocks.ledger.registration(session, "ds_3", "register-3") is None
    with pytest.raises(StateConflict):
        blocks.reserve("job_1", costing(0.1), "ds_3")


def test_own_registers_and_other_series_and_owners_do_not_count(blocks: Bench) -> None:
    open_block(blocks, "ds_other_owner", owner_id="key_other")
    open_block(blocks, "ds_other_series")
    register(blocks, "ds_other_owner", 7, {})
    register(blocks, "ds_other_series", 8, {}, series="others")
    register(blocks, "ds_1", 3, {"register-2": 40})
    register(blocks, "ds_3", 4, {"register-1": 40, "register-2": 40, "register-3": 40})
    assert not any(is_frozen(blocks, name) for name in ("ds_1", "ds_2", "ds_3"))
    assert blocks.verify() == ()


def test_an_account_that_does_not_verify_stops_the_series(blocks: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """Unknown means refuse: its registers may be altered."""
    real = locked_account.lock_verified

    def lose(context: object, tx: object, dataset_id: str) -> object:
        return None if dataset_id == "ds_1" else real(context, tx, dataset_id)  # type: ignore[arg-type]

    monkeypatch.setattr(locked_account, "lock_verified", lose)
    with pytest.raises(StateConflict):
        register(blocks, "ds_3", 3, {"register-2": 40})
    monkeypatch.undo()
    register(blocks, "ds_3", 3, {"register-1": 40, "register-2": 40})


def test_a_dataset_without_an_account_registers_nobody(bench: Bench) -> None:
    with pytest.raises(NotFound):
        register(bench, "ds_unknown", 1, {})
