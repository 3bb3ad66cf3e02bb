"""Metrics from the database after a busy session (W3: they contain no data)."""

import re
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import httpx
import pytest
from prometheus_client.metrics_core import Metric
from prometheus_client.parser import text_string_to_metric_families
from sqlalchemy import update
from sqlalchemy.exc import OperationalError

from app.datasets.models import Dataset
from app.db import Database, now
from app.health import gauges
from app.health.gauges import Gauges
from app.jobs.models import Job, WorkerLease
from app.ledger import Cause
from app.main import create_app
from tests.factories import rows
from tests.factories.transport import AppTransport
from tests.factories.worker import House, job_body

CANARY = "canary4471"
WORDS = {
    "kind": {"job", "content"},
    "status": set(gauges.JOB_STATUSES) | set(gauges.CONTENT_STATUSES),
    "stage": {"queued", "preparing", "running", "publishing", "ended"},
    "state": {"reserved", "opened"},
    "cause": {"run", "mismatch", "unknown", "alarm", "damaged"},
    "quantile": {"0.5", "0.99", "1.0"},
    "moment": {"now", "largest", "threshold"},
    "method": {"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "other"},
}


@pytest.fixture
def watched(house: House) -> Iterator[httpx.Client]:
    """A client of an API with metrics."""
    transport = AppTransport(create_app(house.services))
    with httpx.Client(transport=transport, base_url="http://corevault.test") as client:
        yield client


def _families(text: str) -> dict[str, Metric]:
    return {family.name: family for family in text_string_to_metric_families(text)}


def _values(database: Database) -> dict[tuple[str, ...], float]:
    """Return (name, label value) -> value of a first scrape."""
    return {
        (sample.name.removeprefix("corevault_"), *sample.labels.values()): sample.value
        for metric in Gauges(database).collect()
        for sample in metric.samples
    }


def test_an_empty_installation_has_every_series_at_zero(database: Database) -> None:
    found = _values(database)
    assert found["database_up",] == 1
    assert found["queue_depth", "job"] == found["queue_age_seconds", "job"] == found["ledger_refusals_total",] == 0
    audit = {name[1:]: value for name, value in found.items() if name[0] == "continuous_audit_evidence"}
    assert audit == {("now",): 1, ("largest",): 1, ("threshold",): pytest.approx(1000)}
    rest = {name: value for name, value in found.items() if not name[0].startswith(("database_up", "continuous_audit"))}
    assert set(rest.values()) == {0}


def test_queues_jobs_and_reservations_are_counted(house: House, owner: rows.Key, database: Database) -> None:
    dataset = house.ready_dataset(owner)
    done, _, waiting = (house.job(dataset, owner) for _ in range(3))
    house.run(done)
    with database.write() as tx:
        tx.execute(update(Job).where(Job.id == waiting).values(created_at=now() - timedelta(minutes=5)))
        taken: dict[str, Any] = {"received_at": now() - timedelta(hours=4), "lease_until": now() + timedelta(hours=1)}
        rows.content(tx, dataset, version=2, status="received")
        rows.content(tx, dataset, version=3, status="received", **taken)  # postponed, or being read
    found = _values(database)
    assert (found["queue_depth", "job"], found["queue_depth", "content"]) == (2, 1)
    assert 299 < found["queue_age_seconds", "job"] < 330
    assert (found["jobs", "queued"], found["jobs", "succeeded"], found["jobs", "running"]) == (2, 1, 0)
    assert (found["reservations", "reserved"], found["reservations", "opened"]) == (2, 0)
    assert (found["contents", "ready"], found["contents", "received"]) == (1, 2)
    assert 4 * 3600 <= found["content_age_seconds",] < 4 * 3600 + 60
    assert 0 <= found["job_claim_seconds", "0.99"] < 60


def test_lost_attempts_and_expired_leases_are_counted(house: House, owner: rows.Key, database: Database) -> None:
    dataset = house.ready_dataset(owner)
    with database.write() as tx:
        late = now() - timedelta(seconds=30)
        rows.job(tx, dataset, owner.id, status="running", stage="running", attempts=3, lease_until=late)
        tx.add(WorkerLease(name="sweeper", holder="a", until=now() + timedelta(seconds=5)))
    found = _values(database)
    assert found["job_attempts_lost_total",] == 2
    assert found["jobs_running", "running"] == 1
    assert 29 < found["job_lease_overdue_seconds",] < 60
    assert found["sweeper_up",] == 1


def test_refused_budgets_and_frozen_accounts_are_counted(house: House, api: httpx.Client, owner: rows.Key) -> None:
    dataset = house.ready_dataset(owner)
    for _ in range(2):
        body = job_body(dataset, privacy={"epsilon": 15.0})
        assert api.post("/v1/jobs", headers=owner.headers, json=body).status_code == 409
    with house.database.write() as tx:
        house.ledger.freeze(tx, dataset, Cause.RUN)
    found = _values(house.database)
    assert found["ledger_refusals_total",] == 2
    assert [found["ledger_accounts_frozen", cause] for cause in ("run", "mismatch", "unknown")] == [1, 0, 0]


def test_without_a_database_only_its_absence_is_shown(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    def away() -> None:
        raise OperationalError(CANARY, {}, Exception())

    monkeypatch.setattr(database, "read", away)
    assert _values(database) == {("database_up",): 0}


def test_scrapes_in_quick_succession_read_the_rows_once(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    clock, asked = [1000.0], [0]
    watched, read = Gauges(database), database.read

    def counted() -> object:
        asked[0] += 1
        return read()

    monkeypatch.setattr("app.health.gauges.time.monotonic", lambda: clock[0])
    monkeypatch.setattr(database, "read", counted)
    for clock[0] in (1000.0, 1001.0, 1004.9, 1005.1):
        list(watched.collect())
    assert asked == [2]


def test_no_label_contains_a_name_or_a_value(
    house: House, watched: httpx.Client, owner: rows.Key, admin: rows.Key
) -> None:
    """W3: after a busy session every label is a word of the code or a path template."""
    dataset = house.ready_dataset(owner, name=CANARY, description=CANARY, population=CANARY)
    done, refused = job_body(dataset), job_body(dataset, privacy={"epsilon": 15.0})
    job = watched.post("/v1/jobs", headers=owner.headers, json=done).json()["id"]
    watched.post("/v1/jobs", headers=owner.headers, json=refused)
    house.run(job)
    for path in (f"/v1/datasets/{dataset}", f"/v1/jobs/{job}", f"/{CANARY}", f"/v1/releases/{CANARY}/points"):
        watched.get(path, headers=owner.headers)
    watched.request(CANARY.upper(), "/v1/me")
    text = watched.get("/metrics", headers=admin.headers).text
    templates = {route.path_format for route in create_app(house.services).routes if hasattr(route, "path_format")}
    for family in _families(text).values():
        for sample in family.samples:
            for name, value in sample.labels.items():
                known = WORDS.get(name, set()) | (templates | {"unmatched"} if name == "route" else set())
                numeric = name in {"le", "status"} and re.fullmatch(r"[0-9.]+|\+Inf", value)
                assert value in known or numeric, (sample.name, name, value)
    for secret in (CANARY, dataset, job, owner.id):
        assert secret.lower() not in text.lower()


def test_a_busy_session_adds_no_series(house: House, owner: rows.Key) -> None:
    """The number of series does not depend on the number of datasets or jobs."""
    before = len(_values(house.database))
    for _ in range(3):
        house.ready_dataset(owner)
    with house.database.read() as session:
        assert len(session.query(Dataset).all()) == 3
    assert len(_values(house.database)) == before
