"""W11: a signed reservation pins plan, facts and cost of its job."""

from collections.abc import Callable
from typing import Any

import pytest
from sqlalchemy import select, update

from app.errors import StateConflict
from app.ledger import Ledger
from app.vault.signing import Signer
from tests.factories.tampering import rewrite_newest_entry, table
from tests.ledger.support import DELTA, SEED, Bench, commitment, costing

CHARGE = costing(0.2)
ALTERED: dict[str, dict[str, Any]] = {
    "plan": {"commitment": commitment(plan="b" * 64)},
    "facts": {"commitment": commitment(facts="b" * 64)},
    "epsilon": {"epsilon": 0.1},
    "delta": {"delta": DELTA / 2},
    "no cost": {"epsilon": None},
    "dataset": {"dataset_id": "ds_b"},
}


def state(bench: Bench, job_id: str) -> str:
    with bench.database.read() as session:
        return bench.ledger.state(session, job_id)


def is_frozen(bench: Bench, dataset_id: str = "ds_a") -> bool:
    with bench.database.read() as session:
        return bench.ledger.entries(session, dataset_id, limit=1, before=None)[0].kind == "frozen"


def rewrite(bench: Bench, change: Callable[[dict[str, Any]], dict[str, Any]]) -> Bench:
    """Change the newest entry of the account; return a process with an empty cache."""
    with bench.database.write() as tx:
        account_id = tx.scalars(select(table("ledger_datasets").c.account_id)).one()
        rewrite_newest_entry(tx, account_id, change)
    return Bench(bench.database, Ledger(Signer(SEED), max_epsilon=20.0), bench.reserved)


@pytest.mark.parametrize("changes", ALTERED.values(), ids=ALTERED.keys())
def test_other_terms_are_not_opened(bench: Bench, changes: dict[str, Any]) -> None:
    bench.reserve("job_1", CHARGE)
    terms = bench.terms("job_1", **changes)
    with pytest.raises(StateConflict, match="frozen"), bench.database.write() as tx:
        bench.ledger.open(tx, "job_1", CHARGE.events, terms)
    assert is_frozen(bench)
    assert state(bench, "job_1") == "reserved"


@pytest.mark.parametrize("changes", ALTERED.values(), ids=ALTERED.keys())
def test_other_terms_are_detected_before_the_plan_is_read(bench: Bench, changes: dict[str, Any]) -> None:
    bench.reserve("job_1", CHARGE)
    terms = bench.terms("job_1", **changes)
    with pytest.raises(StateConflict, match="frozen"), bench.database.write() as tx:
        bench.ledger.check_terms(tx, "job_1", terms)
    assert is_frozen(bench)


@pytest.mark.parametrize("changes", [None, *(each for name, each in ALTERED.items() if name != "dataset")])
def test_other_terms_are_not_settled_with_a_release(bench: Bench, changes: dict[str, Any] | None) -> None:
    """Also a release that states no terms; the job still ends."""
    bench.reserve("job_1", CHARGE)
    bench.open("job_1")
    terms = None if changes is None else bench.terms("job_1", **changes)
    with pytest.raises(StateConflict, match="frozen"), bench.database.write() as tx:
        bench.ledger.settle(tx, "job_1", CHARGE.events, terms)
    assert is_frozen(bench)
    assert state(bench, "job_1") == "opened"
    bench.settle("job_1")
    assert state(bench, "job_1") == "settled"


@pytest.mark.parametrize("changes", [{"plan": "b" * 64}, {"epsilon": 0.1}, {"grid_bits": 30}])
def test_a_rewritten_reservation_is_refused(bench: Bench, changes: dict[str, Any]) -> None:
    """W11: hashes need no key, so an attacker can recompute them; the signature still fails."""
    bench.reserve("job_1", CHARGE)
    other = rewrite(bench, lambda body: body | changes)
    assert other.verify() == (), "the hashes fit"
    pinned = commitment(**{name: value for name, value in changes.items() if name == "plan"})
    with other.database.read() as session:
        assert not other.ledger.is_opened(session, "job_1", other.terms("job_1", commitment=pinned))
    terms = other.terms("job_1", commitment=pinned)
    with pytest.raises(StateConflict, match="frozen"), other.database.write() as tx:
        other.ledger.open(tx, "job_1", CHARGE.events, terms)
    assert is_frozen(other)


def test_a_helper_needs_an_opened_reservation_with_its_terms(bench: Bench) -> None:
    bench.reserve("job_1", CHARGE)
    terms, other = bench.terms("job_1"), bench.terms("job_1", commitment=commitment(plan="b" * 64))
    for opened in (False, True):
        with bench.database.read() as session:
            assert bench.ledger.is_opened(session, "job_1", terms) == opened
            assert not bench.ledger.is_opened(session, "job_1", other)
            assert not bench.ledger.is_opened(session, "job_nowhere", terms)
        if not opened:
            bench.open("job_1")


def test_a_helper_refuses_a_reservation_without_a_signature(bench: Bench) -> None:
    """W11: an attacker rewrites the reservation and marks it as opened."""
    bench.reserve("job_1", CHARGE)
    terms = bench.terms("job_1")
    other = rewrite(bench, lambda body: {name: value for name, value in body.items() if name != "signature"})
    with other.database.write() as tx:
        tx.execute(update(table("ledger_reservations")).values(state="opened"))
    with other.database.read() as session:
        assert not other.ledger.is_opened(session, "job_1", terms)


def without_commitment(body: dict[str, Any]) -> dict[str, Any]:
    return {name: body[name] for name in ("events", "epsilon", "delta", "charge")}


def test_a_reservation_of_an_older_version_is_voided(bench: Bench) -> None:
    """W10, W11: it has no signature, so it is not opened and costs nothing."""
    bench.reserve("job_1", CHARGE)
    terms = bench.terms("job_1")
    other = rewrite(bench, without_commitment)
    with pytest.raises(StateConflict, match="Submit the job again"), other.database.write() as tx:
        other.ledger.open(tx, "job_1", CHARGE.events, terms)
    other.void("job_1")
    other.run("job_2", CHARGE)
    assert other.verify() == ()
    assert other.budget().jobs.settled == 1


@pytest.mark.parametrize("changes", [{"slots": 999}, {"unit": {"kind": "column", "column": "a", "max_rows": 9}}])
def test_an_account_of_an_older_version_knows_unit_and_slots(bench: Bench, changes: dict[str, Any]) -> None:
    bench.open_account("ds_old", population="others", facts=None)
    with pytest.raises(StateConflict, match="frozen"), bench.database.write() as tx:
        bench.ledger.reserve(tx, "ds_old", "job_1", CHARGE, commitment=commitment(**changes))
    assert is_frozen(bench, "ds_old")


def test_the_first_reservation_pins_the_facts_of_an_older_account(bench: Bench) -> None:
    bench.open_account("ds_old", population="others", facts=None)
    bench.declared["ds_old"]["facts"] = "c" * 64
    bench.reserve("job_1", CHARGE, "ds_old")
    bench.void("job_1")
    assert bench.verify() == ()
    with pytest.raises(StateConflict, match="frozen"), bench.database.write() as tx:
        bench.ledger.reserve(tx, "ds_old", "job_2", CHARGE, commitment=commitment())
    assert is_frozen(bench, "ds_old")


@pytest.mark.parametrize("changes", [{"facts": "b" * 64}, {"slots": 999}, {"unit": {"kind": "column", "max_rows": 9}}])
def test_another_declaration_reserves_nothing(bench: Bench, changes: dict[str, Any]) -> None:
    with pytest.raises(StateConflict, match="frozen"), bench.database.write() as tx:
        bench.ledger.reserve(tx, "ds_a", "job_1", CHARGE, commitment=commitment(**changes))
    assert is_frozen(bench)
