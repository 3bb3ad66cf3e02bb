"""The two-phase transfer: reserved, opened, settled once; voided only before opening."""

from collections.abc import Callable
from typing import Any

import pytest
from sqlalchemy import text

from app.errors import BudgetExceeded, Internal, InvalidRequest, MethodNotAllowedOnPrivateData, NotFound, StateConflict
from app.ledger import Cause, Charge, Ledger, Terms
from app.ledger.integrity import certificate_checks
from app.privacy.events import GaussianEvent, NonPrivateEvent, PoissonSampledEvent, PrivacyEvent, SelfComposedEvent
from app.vault.signing import Signer
from tests.ledger.support import DELTA, SEED, Bench, commitment, costing, gaussian, sampled


def state(bench: Bench, job_id: str) -> str:
    with bench.database.read() as session:
        return bench.ledger.state(session, job_id)


def test_a_job_goes_from_reserved_to_settled(bench: Bench) -> None:
    """W9: an opened charge is spent."""
    charge = costing(0.5)
    bench.reserve("job_1", charge)
    reserved = bench.budget()
    assert (state(bench, "job_1"), reserved.spent.epsilon) == ("reserved", 0.0)
    assert reserved.reserved.epsilon == pytest.approx(0.5, abs=1e-6)
    bench.open("job_1")
    opened = bench.budget()
    assert (state(bench, "job_1"), opened.reserved.epsilon) == ("opened", 0.0)
    assert opened.spent.epsilon == pytest.approx(0.5, abs=1e-6)
    bench.settle("job_1", charge.events)
    settled = bench.budget()
    assert (settled.spent, settled.jobs.settled, settled.jobs.reserved) == (opened.spent, 1, 0)


def test_a_void_subtracts_exactly_the_reservation(bench: Bench) -> None:
    before = bench.budget()
    bench.reserve("job_1", sampled(3.0, 0.1, 30))
    bench.void("job_1")
    after = bench.budget()
    assert (after.reserved, after.remaining, after.used_share) == (before.reserved, before.remaining, before.used_share)
    assert after.version == before.version + 2


def test_an_opened_job_is_never_refunded(bench: Bench) -> None:
    """W10: once a run has opened the data, failure never refunds."""
    bench.reserve("job_1", costing(0.5))
    bench.open("job_1")
    with pytest.raises(StateConflict):
        bench.void("job_1")
    bench.settle("job_1", executed=())
    assert bench.budget().spent.epsilon == pytest.approx(0.5, abs=1e-6)


def test_a_job_opened_twice_is_charged_once(bench: Bench) -> None:
    """W10: a crash never charges twice."""
    bench.reserve("job_1", costing(0.5))
    bench.open("job_1")
    before = bench.budget()
    bench.open("job_1")
    assert bench.budget() == before


def test_a_job_is_settled_once(bench: Bench) -> None:
    """W8: every release has exactly one settled charge."""
    bench.run("job_1", costing(0.5))
    before = bench.budget()
    with pytest.raises(StateConflict):
        bench.settle("job_1", costing(0.5).events)
    assert bench.budget() == before


@pytest.mark.parametrize(
    "call", [lambda bench: bench.open("job_1"), lambda bench: bench.settle("job_1")], ids=["open", "settle"]
)
def test_a_voided_job_stays_voided(bench: Bench, call: Callable[[Bench], None]) -> None:
    bench.reserve("job_1", costing(0.5))
    bench.void("job_1")
    bench.void("job_1")
    with pytest.raises(StateConflict):
        call(bench)


def test_a_job_that_was_not_opened_cannot_be_settled(bench: Bench) -> None:
    """W8: no row is read before a durable reservation is opened, so nothing can be settled before."""
    bench.reserve("job_1", costing(0.5))
    with pytest.raises(StateConflict):
        bench.settle("job_1", costing(0.5).events)


def test_a_job_has_one_reservation(bench: Bench) -> None:
    bench.reserve("job_1", costing(0.2))
    with pytest.raises(StateConflict):
        bench.reserve("job_1", costing(0.2))


PLANNED = sampled(3.0, 0.1, 20)
STEP = PoissonSampledEvent(0.1, GaussianEvent(3.0))


@pytest.mark.parametrize("executed", [(), (STEP,), (STEP, SelfComposedEvent(STEP, 19)), PLANNED.events])
def test_executed_events_must_be_a_prefix_of_the_plan(bench: Bench, executed: tuple[PrivacyEvent, ...]) -> None:
    bench.reserve("job_1", PLANNED)
    bench.open("job_1")
    bench.settle("job_1", executed)
    assert state(bench, "job_1") == "settled"


@pytest.mark.parametrize(
    "executed",
    [
        (SelfComposedEvent(STEP, 21),),
        (*PLANNED.events, GaussianEvent(100.0)),
        (PoissonSampledEvent(0.2, GaussianEvent(3.0)),),
        (GaussianEvent(3.0),),
    ],
)
def test_more_than_was_reserved_freezes_the_account(bench: Bench, executed: tuple[PrivacyEvent, ...]) -> None:
    """W8: every release has a settled charge that covers its run."""
    bench.reserve("job_1", PLANNED)
    bench.open("job_1")
    with pytest.raises(StateConflict):
        bench.settle("job_1", executed)
    with pytest.raises(StateConflict):
        bench.reserve("job_2", costing(0.1))
    bench.settle("job_1", ())  # the job still ends


def test_a_plan_that_is_not_the_reserved_one_is_not_opened(bench: Bench) -> None:
    """W8: rows are read for the reserved plan only."""
    bench.reserve("job_1", PLANNED)
    terms = bench.terms("job_1")
    with pytest.raises(StateConflict), bench.database.write() as tx:
        bench.ledger.open(tx, "job_1", gaussian(1.0).events, terms)
    assert state(bench, "job_1") == "reserved"
    with pytest.raises(StateConflict):
        bench.open("job_1")


@pytest.mark.parametrize("events", [(NonPrivateEvent(),), (GaussianEvent(9.0), NonPrivateEvent())])
def test_events_without_a_guarantee_are_refused(bench: Bench, events: tuple[PrivacyEvent, ...]) -> None:
    charge = Charge(events)
    with pytest.raises(MethodNotAllowedOnPrivateData):
        bench.preview(charge)
    with pytest.raises(MethodNotAllowedOnPrivateData):
        bench.reserve("job_1", charge)


def test_a_job_that_does_nothing_is_never_priced_at_zero(bench: Bench) -> None:
    with pytest.raises(Internal):
        bench.reserve("job_1", Charge(()))


@pytest.mark.parametrize("charge", [gaussian(1e-4), gaussian(0.05, 2**40)])
def test_a_job_without_a_finite_price_is_refused(bench: Bench, charge: Charge) -> None:
    with pytest.raises(InvalidRequest):
        bench.reserve("job_1", charge)
    assert bench.budget().version == 1


def test_a_refusal_is_counted_and_changes_nothing_else(bench: Bench) -> None:
    """W9: refusals change no balance."""
    before = bench.budget()
    with pytest.raises(BudgetExceeded, match="Request a cost of at most") as refusal:
        bench.reserve("job_1", costing(2.5))
    assert refusal.value.members["requested"] == {"epsilon": pytest.approx(2.5), "delta": 1e-6}
    assert refusal.value.members["epsilon_after"] == pytest.approx(2.5)
    assert bench.budget() == before
    bench.write(lambda tx: bench.ledger.record_refusal(tx, "ds_a"))
    after = bench.budget()
    assert (after.jobs.refused, after.version, after.remaining) == (1, before.version, before.remaining)
    with bench.database.read() as session:
        assert session.execute(text("SELECT count(*) FROM ledger_entries")).scalar() == 1


def test_a_job_that_was_never_reserved_is_not_found(bench: Bench) -> None:
    terms = Terms("ds_a", commitment(), 0.1, DELTA)
    with pytest.raises(NotFound), bench.database.write() as tx:
        bench.ledger.open(tx, "job_nowhere", PLANNED.events, terms)
    for call in (bench.settle, bench.void):
        with pytest.raises(NotFound):
            call("job_nowhere")


def test_settled_charges_are_found_in_the_chain(bench: Bench) -> None:
    """W11: verification demands that every published release's entry is in the chain."""
    bench.run("job_1", costing(0.2))
    bench.reserve("job_2", costing(0.2))
    with bench.database.read() as session:
        found = [bench.ledger.contains_settled(session, job_id) for job_id in ("job_1", "job_2", "job_3")]
    assert found == [True, False, False]


def test_a_frozen_account_spends_nothing_more(bench: Bench) -> None:
    """W14: after a row-dependent failure the account freezes; the jobs that are open end, charged."""
    bench.reserve("job_1", costing(0.2))
    bench.reserve("job_2", costing(0.2))
    bench.open("job_1")
    bench.write(lambda tx: bench.ledger.freeze(tx, "ds_a", Cause.RUN))
    refused: list[Callable[[], object]] = [
        lambda: bench.reserve("job_3", costing(0.1)),
        lambda: bench.open("job_2"),
        lambda: bench.settle("job_1", costing(0.2).events),
        lambda: bench.change_limit(1.0),
        bench.checkpoint,
    ]
    for call in refused:
        with pytest.raises(StateConflict):
            call()
    bench.settle("job_1", ())
    bench.void("job_2")
    assert not bench.preview(costing(0.1)).affordable
    budget = bench.budget()
    assert (budget.remaining.epsilon, budget.jobs.settled, budget.jobs.reserved) == (0.0, 1, 0)
    assert bench.verify() == ()


def test_an_account_verifies_under_a_new_ledger_key(bench: Bench) -> None:
    """A rotation keeps the old public key for older checkpoints and snapshots."""
    bench.run("job_1", costing(0.5))
    old = bench.ledger.signer.public_key
    rotated = Bench(bench.database, Ledger(Signer(b"\x09" * 32, retired=[old]), max_epsilon=20.0), bench.reserved)
    assert rotated.verify() == ()
    rotated.run("job_2", costing(0.5))
    assert rotated.verify() == ()
    forgetful = Bench(bench.database, Ledger(Signer(b"\x09" * 32), max_epsilon=20.0))
    assert len(forgetful.verify()) == 1


def test_terms_of_an_ended_job_are_not_compared(bench: Bench) -> None:
    """A message that arrives after the end freezes nothing."""
    bench.reserve("job_1", costing(0.2))
    other = bench.terms("job_1", commitment=commitment(plan="b" * 64))
    bench.void("job_1")
    bench.write(lambda tx: bench.ledger.check_terms(tx, "job_1", other))
    bench.reserve("job_2", costing(0.1))


def test_a_charge_without_room_in_any_tranche_is_not_admitted(bench: Bench) -> None:
    bench.run("job_1", costing(1.9))
    with bench.database.read() as session:
        admitted = [bench.ledger.admits(session, "ds_a", costing(epsilon)) for epsilon in (0.01, 0.5, 50.0)]
    assert admitted == [True, False, False]


@pytest.fixture
def altered(bench: Bench) -> Bench:
    """A process with an empty cache.

    It has an opened job, and the head of its account was altered.
    """
    bench.reserve("job_1", costing(0.2))
    bench.open("job_1")
    with bench.database.write() as tx:
        tx.execute(text("UPDATE ledger_accounts SET head_hash = :wrong"), {"wrong": "0" * 64})
    return Bench(bench.database, Ledger(Signer(SEED), max_epsilon=20.0), bench.reserved)


def count_entries(bench: Bench, kind: str) -> int:
    with bench.database.read() as session:
        count: int = session.execute(
            text("SELECT count(*) FROM ledger_entries WHERE kind = :k"), {"k": kind}
        ).scalar_one()
    return count


def test_a_failed_job_of_an_altered_account_stays_charged(altered: Bench) -> None:
    """W11: the run must be able to end, and ends no charge in a chain that does not verify."""
    altered.settle("job_1")
    with altered.database.read() as session:
        assert altered.ledger.state(session, "job_1") == "opened"
    assert count_entries(altered, "settled") == 0
    with pytest.raises(StateConflict, match="frozen"):
        altered.reserve("job_2", costing(0.1))


def test_an_altered_account_gets_no_notes_and_no_new_signature(altered: Bench) -> None:
    altered.write(lambda tx: altered.ledger.content_replaced(tx, "ds_a", 2))
    assert count_entries(altered, "content_replaced") == 0
    assert altered.write(altered.ledger.sign_anew) == []


def test_a_certificate_is_chained_at_and_after_its_charge(bench: Bench) -> None:
    """W11: a certificate with an earlier head does not cover the charge."""
    bench.reserve("job_1", costing(0.2))
    bench.checkpoint()
    before = newest_statement(bench)
    bench.open("job_1")
    bench.settle("job_1", costing(0.2).events)
    bench.checkpoint()
    after = newest_statement(bench)
    with bench.database.read() as session:
        chained = [
            certificate_checks.is_chained(session, job_id, stated)
            for job_id, stated in (("job_1", after), ("job_1", before), ("job_nowhere", after))
        ]
    assert chained == [True, False, False]


def newest_statement(bench: Bench) -> dict[str, Any]:
    """The newest checkpoint and its entry, as a certificate states them."""
    query = text("SELECT sequence, checkpoint_hash, account_head FROM ledger_checkpoints ORDER BY sequence DESC")
    with bench.database.read() as session:
        sequence, checkpoint_hash, head = session.execute(query).first() or (0, "", "")
        entry = session.execute(
            text("SELECT sequence FROM ledger_entries WHERE entry_hash = :h"), {"h": head}
        ).scalar_one()
    return {"sequence": entry, "head": head, "checkpoint": {"sequence": sequence, "hash": checkpoint_hash}}
