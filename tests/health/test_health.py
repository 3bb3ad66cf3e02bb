"""Health and metrics, and the callers who may read them."""

import shutil
from pathlib import Path
from typing import Any

import httpx
import pytest
import sqlalchemy as sa
from fastapi import FastAPI

from app.db import Database, make_engine
from app.errors import DependencyUnavailable
from app.health.readiness import Readiness
from app.main import create_app
from app.services import Services
from tests.factories import rows
from tests.factories.queue import RecordingQueue
from tests.factories.services import make_services
from tests.factories.transport import AppTransport
from tests.factories.worker import House, job_body

CANARY = "canary-7461"


def _get(application: FastAPI, path: str, address: str = "127.0.0.1", **headers: str) -> httpx.Response:
    transport = AppTransport(application, (address, 50_000))
    with httpx.Client(transport=transport, base_url="http://corevault.test") as client:
        return client.get(path, headers=headers)


def test_a_working_installation_is_live_and_ready(client: httpx.Client) -> None:
    assert client.get("/health/live").json() == {"status": "ok"}
    answer = client.get("/health/ready")
    assert (answer.status_code, answer.json()) == (200, {"status": "ok"})


def _unready(answer: httpx.Response) -> None:
    assert (answer.status_code, answer.json()["code"]) == (503, "dependency_unavailable")
    assert int(answer.headers["Retry-After"]) > 0


@pytest.mark.sqlite
def test_without_migrations_the_api_is_not_ready(tmp_path: Path, queue: RecordingQueue) -> None:
    database = Database(make_engine(f"sqlite:///{tmp_path / 'empty.sqlite3'}"))
    application = create_app(make_services(database, queue, (tmp_path / "storage").as_uri()))
    _unready(_get(application, "/health/ready"))
    assert _get(application, "/health/live").status_code == 200
    database.dispose()


@pytest.mark.sqlite
def test_without_a_database_the_api_is_not_ready(tmp_path: Path, queue: RecordingQueue) -> None:
    database = Database(make_engine(f"sqlite:///{tmp_path / 'no' / 'folder.sqlite3'}"))
    application = create_app(make_services(database, queue, (tmp_path / "storage").as_uri()))
    answer = _get(application, "/health/ready")
    _unready(answer)
    assert "folder.sqlite3" not in answer.text


@pytest.fixture
def on_disk(database: Database, queue: RecordingQueue, tmp_path: Path) -> FastAPI:
    """The application with its areas in a folder."""
    return create_app(make_services(database, queue, (tmp_path / "storage").as_uri()))


def test_without_a_writable_store_the_api_is_not_ready(on_disk: FastAPI, tmp_path: Path) -> None:
    shutil.rmtree(tmp_path / "storage")
    (tmp_path / "storage").write_text("a file where the folder would be")
    _unready(_get(on_disk, "/health/ready"))


def test_a_broker_that_is_away_is_named_and_jobs_are_accepted(
    application: FastAPI, queue: RecordingQueue, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Jobs are rows; their messages follow when the broker is back."""
    monkeypatch.setattr(queue, "answers", lambda: False)
    answer = _get(application, "/health/ready")
    assert (answer.status_code, answer.json()) == (200, {"status": "degraded", "without": ["broker"]})


def test_a_probe_leaves_nothing_in_the_store(on_disk: FastAPI, tmp_path: Path) -> None:
    assert _get(on_disk, "/health/ready").status_code == 200
    assert [path for path in (tmp_path / "storage").rglob("*") if path.is_file()] == []


def test_the_ledger_is_verified_once_before_the_api_is_ready(
    services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    """W11: an alteration while the API was stopped is detected before the first call."""
    verified: list[object] = []
    monkeypatch.setattr(type(services.ledger), "verify_and_freeze", lambda _, tx: verified.append(tx))
    readiness = Readiness(services, services.ledger.verify_and_freeze)
    readiness.check()
    readiness.check()
    assert len(verified) == 1


def test_a_ledger_that_could_not_be_verified_is_not_ready(services: Services, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_: object, __: object) -> None:
        raise sa.exc.OperationalError(CANARY, {}, Exception())

    monkeypatch.setattr(type(services.ledger), "verify_and_freeze", fail)
    with pytest.raises(DependencyUnavailable) as raised:
        Readiness(services, services.ledger.verify_and_freeze).check()
    assert CANARY not in str(raised.value)


def test_metrics_count_by_path_template(application: FastAPI, owner: rows.Key, admin: rows.Key) -> None:
    """W3: no path, query or made-up method becomes a series."""
    for path in (f"/v1/api-keys/{CANARY}", f"/{CANARY}", f"/v1/me?{CANARY}=1"):
        _get(application, path, **owner.headers)
    text = _get(application, "/metrics", **admin.headers).text
    assert 'route="/v1/me"' in text
    assert 'route="unmatched"' in text
    assert CANARY not in text


@pytest.mark.parametrize("address", ["127.0.0.1", "::1", "10.1.2.3", "192.168.0.9"])
def test_internal_addresses_read_metrics(application: FastAPI, address: str) -> None:
    answer = _get(application, "/metrics", address)
    assert answer.status_code == 200
    assert answer.headers["Content-Type"].startswith("text/plain; version=0.0.4")


@pytest.mark.parametrize(
    ("address", "headers"),
    [
        ("93.184.216.34", {}),
        ("2606:2800:220:1::1", {}),
        ("testclient", {}),
        ("127.0.0.1", {"X-Forwarded-For": "127.0.0.1"}),
        ("10.0.0.1", {"Forwarded": "for=10.0.0.1"}),
    ],
)
def test_external_addresses_need_an_admin_key(
    application: FastAPI, address: str, headers: dict[str, str], admin: rows.Key, owner: rows.Key
) -> None:
    assert _get(application, "/metrics", address, **headers).status_code == 401
    assert _get(application, "/metrics", address, **headers, **owner.headers).status_code == 403
    assert _get(application, "/metrics", address, **headers, **admin.headers).status_code == 200


def test_metrics_can_be_switched_off(services: Services) -> None:
    assert _get(create_app(services, metrics=False), "/metrics").status_code == 404


def test_logs_contain_the_path_template_only(
    application: FastAPI, owner: rows.Key, capsys: pytest.CaptureFixture[str]
) -> None:
    """W3: paths, queries, headers and bodies may contain data, so they are not logged."""
    _get(application, f"/v1/api-keys/{CANARY}?{CANARY}=1", **owner.headers)
    captured = capsys.readouterr()
    written = captured.out + captured.err
    assert "/v1/api-keys/{key_id}" in written
    assert CANARY not in written
    assert owner.secret not in written


def test_metrics_without_a_key_do_not_depend_on_other_callers(
    house: House, owner: rows.Key, analyst: rows.Key, admin: rows.Key
) -> None:
    """W3: uploads, their rejection and times, others' jobs and refusals are hidden from analysts and the public."""
    application = create_app(house.services)
    before = _shown(application)
    dataset_id = house.ready_dataset(owner)
    with house.database.write() as tx:
        rows.content(tx, dataset_id, version=2, status="rejected", rejection="malformed")
        rows.content(tx, dataset_id, version=3, status="received")
    for epsilon in (0.5, 15.0):
        body = job_body(dataset_id, privacy={"epsilon": epsilon})
        _post(application, "/v1/jobs", body, owner)
    assert 'status="rejected"} 1.0' in _get(create_app(house.services), "/metrics", **admin.headers).text
    for headers in ({}, analyst.headers, owner.headers):
        assert _shown(create_app(house.services), **headers) == before
        assert _shown(application, **headers) == before


def test_an_auditor_reads_all_metrics_from_an_internal_address(application: FastAPI, database: Database) -> None:
    with database.write() as tx:
        auditor = rows.api_key(tx, "auditor")
    assert "corevault_contents" in _get(application, "/metrics", **auditor.headers).text
    assert "corevault_contents" not in _get(application, "/metrics").text
    assert "corevault_contents" in _get(application, "/metrics", **auditor.headers).text  # the full set is still there


def _shown(application: FastAPI, **headers: str) -> list[str]:
    """Return the metrics, without the requests of this test for liveness and metrics."""
    lines = _get(application, "/metrics", **headers).text.splitlines()
    assert "corevault_database_up 1.0" in lines
    return sorted(line for line in lines if not line.startswith("#") and 'route="/metrics"' not in line)


def _post(application: FastAPI, path: str, body: dict[str, Any], key: rows.Key) -> None:
    with httpx.Client(transport=AppTransport(application), base_url="http://corevault.test") as client:
        assert client.post(path, json=body, headers=key.headers).status_code in {202, 409}
