"""Entries that are impossible for a balance are refused (W11)."""

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from app.hashchain.links import hash_entry
from app.ledger.entries import meter
from app.ledger.entries.balance import (
    ACCOUNT_OPENED,
    CONTENT_REPLACED,
    LIMIT_CHANGED,
    OPENED,
    RESERVED,
    SETTLED,
    UNFROZEN,
    VOIDED,
    Balance,
    LedgerEvent,
    Share,
    apply,
)
from app.ledger.entries.balance_columns import BalanceColumns
from app.ledger.entries.meter import Meter, Pot, filter_pot, make_total_pot
from app.ledger.integrity import chain
from app.ledger.integrity.chain import Head
from app.ledger.integrity.verified_heads import REMEMBERED_ACCOUNTS, VerifiedHead, VerifiedHeads
from app.privacy.accounting import INFINITE
from app.privacy.filter import design
from tests.ledger.support import DELTA

RULE = design(1.0, DELTA)
EMPTY = filter_pot(RULE)
OTHER_ORDERS = filter_pot(design(0.25, 1e-9))
BALANCE = Balance(
    owner_id="key_o",
    population="people",
    relation="zero_out",
    unit={"kind": "row"},
    total=make_total_pot(1.0, DELTA, RULE.orders),
    tranches=(EMPTY,),
    distance=Meter((1_000,), (0,), (0,)),
    datasets={"ds_a": Share(100, None)},
)


def used(pot: Pot) -> Pot:
    return pot.move((1,) * len(pot.orders), spent=1, reserved=0)


def event(kind: str, job_id: str | None = None, **body: Any) -> LedgerEvent:
    return LedgerEvent(2, kind, "ds_a", job_id, body)


def with_share(**fields: Any) -> Balance:
    return replace(BALANCE, datasets={"ds_a": Share(100, **{"cap": None, **fields})})


def test_balance_without_use_opens_a_chain() -> None:
    assert apply(None, event(ACCOUNT_OPENED, balance=BALANCE.to_json())) == BALANCE


def test_chain_that_starts_with_another_entry_is_refused() -> None:
    with pytest.raises(ValueError, match="starts with its account"):
        apply(None, event(RESERVED, "job_1"))


def test_end_of_no_freeze_is_refused() -> None:
    with pytest.raises(ValueError, match="only a freeze"):
        apply(BALANCE, event(UNFROZEN))
    assert apply(replace(BALANCE, frozen=True), event(UNFROZEN)) == BALANCE


@pytest.mark.parametrize(
    "changes", [{"settled": 1}, {"frozen": True}, {"total": used(BALANCE.total)}, {"tranches": (used(EMPTY),)}]
)
def test_account_that_opens_with_use_is_refused(changes: dict[str, Any]) -> None:
    """W9: else a chain could start with a spent amount that no entry explains."""
    body = replace(BALANCE, **changes).to_json()
    with pytest.raises(ValueError, match="nothing spent"):
        apply(None, event(ACCOUNT_OPENED, balance=body))


def test_unknown_kind_of_entry_is_refused() -> None:
    with pytest.raises(ValueError, match="unknown kind"):
        apply(BALANCE, event("refunded"))


@pytest.mark.parametrize("kind", [OPENED, VOIDED, SETTLED])
@pytest.mark.parametrize("job_id", [None, "job_1"])
def test_job_that_was_not_reserved_is_refused(kind: str, job_id: str | None) -> None:
    """W9, W10: nothing is opened, voided or settled without its reservation."""
    with pytest.raises(ValueError, match="reserved, then opened"):
        apply(BALANCE, event(kind, job_id))


def test_reservation_without_a_job_is_refused() -> None:
    with pytest.raises(ValueError, match="reserved, then opened"):
        apply(BALANCE, event(RESERVED))


def test_allocation_in_use_cannot_be_removed() -> None:
    before = with_share(allocations={"key_a": used(EMPTY)})
    with pytest.raises(ValueError, match="allocation that is in use"):
        apply(before, event(LIMIT_CHANGED, allocations={}))


def test_allocation_without_use_can_be_removed() -> None:
    before = with_share(allocations={"key_a": EMPTY})
    assert apply(before, event(LIMIT_CHANGED, allocations={})).datasets["ds_a"].allocations == {}


@pytest.mark.parametrize("cap", [None, EMPTY])
def test_cap_that_arrives_with_use_is_refused(cap: Pot | None) -> None:
    with pytest.raises(ValueError, match="only its limit"):
        apply(with_share(cap=cap), event(LIMIT_CHANGED, cap=used(EMPTY).to_json()))


def test_cap_for_a_dataset_without_one_is_refused() -> None:
    with pytest.raises(ValueError, match="only its limit"):
        apply(BALANCE, event(LIMIT_CHANGED, cap=EMPTY.to_json()))


def test_cap_in_use_keeps_its_orders() -> None:
    """W9: amounts at other orders would lose the charges."""
    with pytest.raises(ValueError, match="keeps its orders"):
        apply(with_share(cap=used(EMPTY)), event(LIMIT_CHANGED, cap=OTHER_ORDERS.to_json()))


def test_cap_without_use_takes_other_orders() -> None:
    after = apply(with_share(cap=EMPTY), event(LIMIT_CHANGED, cap=OTHER_ORDERS.to_json()))
    assert after.datasets["ds_a"].cap == OTHER_ORDERS


def test_meter_refuses_amounts_of_another_length() -> None:
    with pytest.raises(ValueError, match="one amount for each bound"):
        Meter((5, 5), (0, 0), (0, 0)).move((1,), spent=1, reserved=0)


@pytest.mark.parametrize(("spent", "reserved"), [(-1, 0), (0, -1)])
def test_meter_refuses_to_fall_below_zero(spent: int, reserved: int) -> None:
    """W9: no entry can refund more than was charged."""
    with pytest.raises(ValueError, match="below zero"):
        Meter((5,), (0,), (0,)).move((1,), spent=spent, reserved=reserved)


def test_bound_as_large_as_the_infinite_amount_is_refused() -> None:
    """W9: an unknown charge must never fit."""
    with pytest.raises(ValueError, match="bound must be below"):
        meter._empty(1.0, DELTA, (2.0,), (1.0,), (INFINITE,))


def test_stored_documents_of_two_shapes_are_refused() -> None:
    with pytest.raises(ValueError, match="different shapes"):
        BalanceColumns({"total": 1}, {"total": {"spent": 1}}).whole()


def test_memory_forgets_the_account_it_used_longest_ago() -> None:
    memory = VerifiedHeads()
    seen = VerifiedHead(Head(1, "h", BALANCE), BALANCE.to_columns(), 1)
    for number in range(REMEMBERED_ACCOUNTS + 1):
        memory.remember(f"acc_{number}", seen)
    assert memory.recall("acc_0") is None
    assert memory.recall("acc_1") == memory.recall(f"acc_{REMEMBERED_ACCOUNTS}") == seen


@pytest.mark.parametrize(("sequence", "continues"), [(2, True), (3, False)])
def test_account_chain_has_no_gaps(sequence: int, continues: bool) -> None:
    """W11: an entry that is missing is detected, although hash and link of the next one are correct."""
    head = Head(1, "f" * 64, BALANCE)
    note = LedgerEvent(sequence, CONTENT_REPLACED, "ds_a", None, {"version": 2})
    entry: Any = chain.link("acc_1", head, note, datetime(2026, 1, 1, tzinfo=UTC), 0.5)
    entry = replace(entry, entry_hash=hash_entry(sequence, head.entry_hash, chain._content_of(entry)))
    if continues:
        assert [after.sequence for _, after in chain.replay(head, [entry])] == [sequence]
    else:
        with pytest.raises(chain.Mismatch):
            list(chain.replay(head, [entry]))
