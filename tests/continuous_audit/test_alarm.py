"""The state of the continuous audit: tickets, restarts, alarms, damage and resets (W12)."""

import math
from datetime import timedelta
from typing import Any

import httpx
import numpy as np
import pytest
from sqlalchemy import delete, select, text, update

from app.audit.models import AuditEntry
from app.continuous_audit import alarm, resets, service
from app.continuous_audit.bookkeeping import compute_design, load_capitals
from app.continuous_audit.models import AuditState
from app.continuous_audit.service import Outcome
from app.continuous_audit.status import read_status
from app.db import Database, make_engine, now
from app.errors import InvalidRequest, PrivacyAlarm, StateConflict
from app.inference.audit.batches import CANARIES, list_weights
from app.privacy.audit.laws import AnswerLaw
from tests.factories import rows
from tests.factories.worker import House, job_body

CLAIM = AnswerLaw(1.0)


def outcome(noise: float, answers: int = 2000) -> Outcome:
    """Answers without the canary, whose noise is ``noise`` times the claimed one; equal for each call."""
    drawn = noise * np.random.default_rng(1).standard_normal(answers)
    return Outcome(CANARIES, CLAIM, drawn, np.zeros(answers), list_weights())


def record(database: Database, noise: float = 1.0, answers: int = 2000) -> bool:
    with database.write() as tx:
        ticket = service.take_ticket(tx)
    assert ticket is not None
    with database.write() as tx:
        return service.record_batch(tx, ticket, outcome(noise, answers))


def read(database: Database) -> AuditState:
    with database.read() as session:
        return session.scalars(select(AuditState)).one()


def change(database: Database, **values: Any) -> None:
    with database.write() as tx:
        tx.execute(update(AuditState).values(**values))


def is_refused(database: Database) -> bool:
    with database.read() as session:
        try:
            alarm.check(session)
        except PrivacyAlarm:
            return True
    return False


DAMAGES: list[dict[str, Any]] = [
    {"damaged": True},
    {"log_largest": -1.0},
    {"log_evidence": 3.0},
    {"answers": -1},
    {"resets": -1},
]


def test_a_new_installation_has_no_alarm(database: Database) -> None:
    assert not is_refused(database)
    with database.read() as session:
        status = read_status(session)
    assert (status.evidence, status.largest) == (1.0, 1.0)
    assert status.threshold == pytest.approx(1000)


def test_batches_add_up_across_restarts_and_workers(database: Database, database_url: str) -> None:
    """The state survives a process: another engine on the same database continues it."""
    record(database)
    with Database(make_engine(database_url)) as other:
        record(other)
        state = read(other)
    assert (state.answers, state.batches) == (4000, 2)
    one = load_capitals(state.capitals, list_weights())[CANARIES]
    assert one.batches == 2
    assert state.log_evidence == pytest.approx(math.log(0.5 * math.exp(one.compute_log()) + 0.5))


def test_one_batch_is_drawn_at_a_time(database: Database) -> None:
    """W12: a ticket is taken before its answers are drawn."""
    with database.write() as tx:
        first = service.take_ticket(tx)
    with database.write() as tx:
        assert service.take_ticket(tx) is None
    assert first == 1
    change(database, ticket_until=now() - timedelta(seconds=1))
    with database.write() as tx:
        second = service.take_ticket(tx)
    assert second == 2
    with database.write() as tx:
        service.record_batch(tx, first, outcome(0.5))
    assert read(database).batches == 0  # the first worker was too late
    with database.write() as tx:
        service.record_batch(tx, second, outcome(1.0))
        assert not service.record_batch(tx, second, outcome(1.0))  # a ticket is for one batch
    assert read(database).batches == 1


def test_an_alarm_stays_after_evidence_has_fallen(database: Database) -> None:
    assert record(database, noise=0.8)
    state = read(database)
    assert state.alarmed_at is not None
    change(database, log_evidence=0.0)
    assert is_refused(database)
    with database.write() as tx:
        assert service.take_ticket(tx) is None  # until an administrator acts


def test_the_largest_evidence_does_not_fall(database: Database) -> None:
    """W12: ordinary answers after suspicious ones end no alarm."""
    record(database, noise=0.93)
    before = read(database)
    record(database)
    after = read(database)
    assert 0 < after.log_evidence < before.log_evidence == before.log_largest == after.log_largest


@pytest.mark.parametrize("resets", [0, 3])
def test_the_largest_evidence_alone_is_an_alarm(database: Database, resets: int) -> None:
    """W12: openings stay refused if the time of the alarm is removed; each reset doubles the threshold."""
    threshold = math.log(1000 * 2**resets)
    change(database, resets=resets, alarmed_at=None, log_largest=threshold - 1e-6)
    assert not is_refused(database)
    change(database, log_largest=threshold + 1e-6)
    assert is_refused(database)


def test_two_percent_too_little_noise_raises_the_alarm(database: Database) -> None:
    """W12: with the answers of a day at a slow pace, which are 500,000."""
    assert record(database, noise=0.98, answers=500_000)


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_state_refuses(database: Database, damage: dict[str, Any]) -> None:
    """W12, unknown means refuse: it cannot be excluded that there was an alarm."""
    record(database)
    change(database, **damage)
    assert is_refused(database)
    with database.read() as session:
        assert read_status(session).is_damaged


def test_a_missing_state_refuses(database: Database) -> None:
    with database.write() as tx:
        tx.execute(delete(AuditState))
    assert is_refused(database)


@pytest.mark.parametrize(
    "capitals",
    [
        {},
        {"canaries": 3},
        {"canaries": {"batches": 1, "bets": [0.0]}},
        {"canaries": {"batches": 1, "bets": [10**400]}},
        {"nothing": {"batches": 0, "bets": []}},
    ],
)
def test_workers_find_capitals_that_contradict_the_evidence(database: Database, capitals: dict[str, Any]) -> None:
    """W12: an unknown state counts as damaged, and refuses."""
    record(database, noise=0.99)
    change(database, capitals=capitals)
    record(database)
    assert read(database).damaged
    assert is_refused(database)


@pytest.mark.parametrize("capitals", [{}, {"canaries": 3}, {"nothing": {"batches": 0, "bets": []}}])
def test_capitals_that_the_status_cannot_read_can_be_reset(database: Database, capitals: dict[str, Any]) -> None:
    """The page and the command agree, before a batch notices the damage and after."""
    record(database, noise=0.99)
    change(database, capitals=capitals)
    with database.read() as session:
        status = read_status(session)
    assert (status.is_damaged, status.is_unnoticed, is_refused(database)) == (True, True, False)
    with database.write() as tx:
        assert resets.reset(tx, "the disk was damaged") == 1
    with database.read() as session:
        assert not read_status(session).is_damaged
    record(database, noise=0.99)
    change(database, capitals=capitals)
    record(database)
    with database.read() as session:
        status = read_status(session)
    assert (status.is_damaged, status.is_unnoticed, is_refused(database)) == (True, False, True)


def test_an_alarm_with_damaged_capitals_is_still_shown_as_an_alarm(database: Database) -> None:
    record(database, noise=0.9, answers=500_000)
    change(database, capitals={})
    with database.read() as session:
        status = read_status(session)
    assert (status.has_alarm, status.is_damaged, status.is_unnoticed) == (True, True, False)


@pytest.mark.sqlite
def test_an_unreadable_time_refuses_and_can_be_reset(database: Database) -> None:
    with database.write() as tx:
        tx.execute(text("UPDATE continuous_audit SET started_at = 'never'"))
    assert is_refused(database)
    with database.write() as tx:
        resets.reset(tx, "the disk was damaged")
    assert not is_refused(database)


def test_another_design_keeps_the_evidence(database: Database) -> None:
    """W12: after an upgrade with other streams, the evidence so far is carried over."""
    record(database, noise=0.98)
    before = read(database).log_evidence
    change(database, design="of an earlier version", capitals={"gone": {}})
    record(database)
    state = read(database)
    assert state.carried == before
    assert set(state.capitals) == {CANARIES}
    assert not state.damaged


def test_the_status_after_an_upgrade_is_not_damaged(database: Database) -> None:
    """Capitals of another design are not read, as in a worker; otherwise the page would advise a refused reset."""
    record(database)
    change(database, design="of an earlier version", capitals={"gone": {}}, log_evidence=3.0, log_largest=3.0)
    change(database, interval_seconds=15.0)
    with database.read() as session:
        status = read_status(session)
    assert not status.is_damaged
    assert math.log(status.evidence) == pytest.approx(3)
    change(database, design=compute_design(list_weights()), capitals={}, carried=3.0)
    with database.read() as session:
        assert read_status(session).expected_seconds == status.expected_seconds  # as after carrying the evidence over
    assert not is_refused(database)


def test_resets_double_the_threshold_and_are_in_the_audit_log(database: Database) -> None:
    """W12: so all false alarms together stay improbable."""
    for number in (1, 2):
        change(database, alarmed_at=now())
        with database.write() as tx:
            assert resets.reset(tx, "fixed by an upgrade") == number
        assert not is_refused(database)
        with database.read() as session:
            assert read_status(session).threshold == pytest.approx(1000 * 2**number)
    with database.read() as session:
        logged = session.scalars(select(AuditEntry).order_by(AuditEntry.id)).all()
    assert [(each.action, each.reason) for each in logged] == [("corevaultd reset-audit", "fixed by an upgrade")] * 2


def test_a_lost_batch_of_before_a_reset_has_no_effect(database: Database) -> None:
    with database.write() as tx:
        ticket = service.take_ticket(tx)
    assert ticket is not None
    change(database, alarmed_at=now())
    with database.write() as tx:
        resets.reset(tx, "a reason")
    with database.write() as tx:
        service.take_ticket(tx)
        service.record_batch(tx, ticket, outcome(0.5))
    assert read(database).batches == 0


def test_a_quiet_audit_cannot_be_reset(database: Database) -> None:
    """W12: otherwise resets could hide evidence."""
    record(database)
    with pytest.raises(StateConflict), database.write() as tx:
        resets.reset(tx, "a reason")
    assert read(database).batches == 1


@pytest.mark.parametrize("reason", ["", " \n"])
def test_a_reset_without_a_reason_is_refused(database: Database, reason: str) -> None:
    """W12: the audit log names the reason of each reset."""
    change(database, alarmed_at=now())
    with pytest.raises(InvalidRequest, match="reason"), database.write() as tx:
        resets.reset(tx, reason)
    assert is_refused(database)


def test_new_jobs_are_refused_with_a_stable_code(house: House, owner: rows.Key) -> None:
    """W12: nothing is reserved; public data has no privacy mechanism, so its jobs go on."""
    private = house.ready_dataset(owner)
    public = house.ready_dataset(owner, sensitivity="public")
    change(house.database, alarmed_at=now())
    with house.client() as client:
        answer = client.post("/v1/jobs", json=job_body(private), headers=owner.headers)
        budget = client.get(f"/v1/datasets/{private}/budget", headers=owner.headers).json()
        other = client.post("/v1/jobs", json=job_body(public), headers=owner.headers)
    assert (answer.status_code, answer.json()["code"]) == (409, "privacy_alarm")
    assert "an administrator acts" in answer.json()["detail"]
    assert budget["jobs"] == {"settled": 0, "reserved": 0, "refused": 0}
    assert other.status_code == 202


def test_a_queued_job_is_not_opened(house: House, owner: rows.Key) -> None:
    """W12: a job that was reserved before the alarm fails without a charge, and its rows are not read."""
    job_id = house.job(house.ready_dataset(owner), owner)
    change(house.database, alarmed_at=now())
    house.run(job_id)
    assert (house.read(job_id).status, house.read(job_id).error_code) == ("failed", "run_failed")
    assert house.charge(job_id) == "voided"


def test_jobs_go_on_after_a_reset(house: House, owner: rows.Key) -> None:
    dataset = house.ready_dataset(owner)
    change(house.database, alarmed_at=now())
    with house.database.write() as tx:
        resets.reset(tx, "the cause is fixed")
    job_id = house.job(dataset, owner)
    house.run(job_id)
    assert house.read(job_id).status == "succeeded"


def _scrape(client: httpx.Client, admin: rows.Key) -> dict[str, float]:
    lines = client.get("/metrics", headers=admin.headers).text.splitlines()
    found = (line.rpartition(" ") for line in lines if line.startswith("corevault_continuous_audit"))
    return {name.removeprefix("corevault_continuous_audit_"): float(value) for name, _, value in found}


def test_metrics_show_evidence_alarm_and_lost_power(client: httpx.Client, database: Database, admin: rows.Key) -> None:
    record(database)
    record(database, noise=0.8)
    change(database, last_at=now() - timedelta(days=2))
    found = _scrape(client, admin)
    assert found["answers_total"] == 4000
    assert found['evidence{moment="largest"}'] >= found['evidence{moment="threshold"}'] == pytest.approx(1000)
    assert found['refuses{cause="alarm"}'] == 1
    assert found["age_seconds"] == pytest.approx(2 * 86_400, rel=0.01)
    assert found["power_lost"] == 1


def test_an_audit_at_its_usual_pace_has_power(client: httpx.Client, database: Database, admin: rows.Key) -> None:
    record(database)
    change(database, interval_seconds=15.0)
    found = _scrape(client, admin)
    assert found['refuses{cause="alarm"}'] == found['refuses{cause="damaged"}'] == found["power_lost"] == 0
    assert 15 < found["detection_seconds"] < 3600
