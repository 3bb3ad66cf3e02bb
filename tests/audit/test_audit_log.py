"""The audit log: its readers, its content, and its entries for floods and replays."""

from typing import Any

import httpx
import pytest
from sqlalchemy import text
from sqlalchemy.exc import DBAPIError

from app.audit.background_writer import AuditRecorder
from app.context import RequestContext
from app.db import Database
from app.http.middleware.outer_middleware import Exchange
from app.services import Services
from tests.factories import rows
from tests.factories.datasets import problem
from tests.factories.worker import House, job_body

CANARY = "canary-9917"


def _log(client: httpx.Client, key: rows.Key, **query: Any) -> list[dict[str, Any]]:
    answer = client.get("/v1/audit-log", headers=key.headers, params=query)
    assert answer.status_code == 200, answer.text
    return list(answer.json()["items"])


def _refusal(actor: str | None = None, action: str = "/v1/jobs", target: str | None = None) -> Exchange:
    context = RequestContext("req_1", "POST", action, actor=actor, target=target, code="not_found")
    return Exchange(context, 404, 0.0)


@pytest.fixture
def recorder(services: Services) -> AuditRecorder:
    return AuditRecorder(services.database, services.signer)


def _counts(database: Database) -> list[int]:
    with database.read() as session:
        return list(session.execute(text("SELECT count FROM audit_entries ORDER BY id")).scalars())


def test_only_administrators_and_auditors_read_it(
    client: httpx.Client, owner: rows.Key, analyst: rows.Key, admin: rows.Key, auditor: rows.Key
) -> None:
    problem(client.get("/v1/audit-log"), 401, "unauthenticated")
    for key in (owner, analyst):
        problem(client.get("/v1/audit-log", headers=key.headers), 403, "forbidden")
    for key in (admin, auditor):
        assert {entry["code"] for entry in _log(client, key)} == {"forbidden", "unauthenticated"}


def test_the_log_is_read_by_pages_and_filters(client: httpx.Client, admin: rows.Key, auditor: rows.Key) -> None:
    for name in ("a", "b", "c"):
        client.post("/v1/api-keys", headers=admin.headers, json={"name": name, "role": "owner"})
    problem(client.post("/v1/api-keys", headers=auditor.headers, json={"name": "d", "role": "owner"}), 403, "forbidden")
    assert len(_log(client, auditor)) == 4
    assert len(_log(client, auditor, actor=admin.id)) == 3
    assert [entry["outcome"] for entry in _log(client, auditor, actor=auditor.id)] == ["refused"]
    assert len(_log(client, auditor, outcome="succeeded", action="POST /v1/api-keys")) == 3
    assert _log(client, auditor, action="DELETE /v1/api-keys/{key_id}") == []
    newest, *_, oldest = _log(client, auditor)
    assert len(_log(client, auditor, since=newest["at"])) == 1
    assert len(_log(client, auditor, until=newest["at"])) == 3
    assert _log(client, auditor, target=oldest["target"])[0]["id"] == oldest["id"]
    first = client.get("/v1/audit-log?limit=3", headers=admin.headers).json()
    rest = client.get(f"/v1/audit-log?limit=3&cursor={first['next_cursor']}", headers=admin.headers).json()
    ids = [entry["id"] for entry in first["items"] + rest["items"]]
    assert ids == sorted(ids, reverse=True)
    assert len(ids) == 4
    problem(client.get("/v1/audit-log?since=yesterday", headers=admin.headers), 422, "invalid_request")


def test_entries_on_a_page_are_chained(client: httpx.Client, admin: rows.Key) -> None:
    for name in ("a", "b"):
        client.post("/v1/api-keys", headers=admin.headers, json={"name": name, "role": "owner"})
    later, earlier = _log(client, admin)
    assert (earlier["sequence"], later["sequence"]) == (1, 2)
    assert later["previous_hash"] == earlier["entry_hash"]
    assert earlier["previous_hash"] == "0" * 64


def test_the_log_contains_no_text_of_callers(
    client: httpx.Client, owner: rows.Key, admin: rows.Key, database: Database
) -> None:
    """W3: no body, query, path, header or made-up method."""
    client.post(f"/v1/datasets?{CANARY}=1", headers=owner.headers, json={CANARY: CANARY})
    client.patch(f"/v1/datasets/{CANARY}", headers=owner.headers, json={"description": CANARY})
    client.request(CANARY.upper(), f"/{CANARY}", headers={CANARY: CANARY})
    client.post("/v1/api-keys", headers=admin.headers, json={"name": CANARY, "role": "owner"})
    assert len(_log(client, admin)) == 4
    with database.read() as session:
        cells = repr(session.execute(text("SELECT * FROM audit_entries")).all())
    assert CANARY not in cells.lower()


def test_a_refused_budget_is_in_the_log(house: House, api: httpx.Client, owner: rows.Key, auditor: rows.Key) -> None:
    dataset = house.ready_dataset(owner)
    answer = api.post("/v1/jobs", headers=owner.headers, json=job_body(dataset, privacy={"epsilon": 15.0}))
    problem(answer, 409, "budget_exceeded")
    (entry,) = _log(api, auditor, outcome="refused")
    assert (entry["actor"], entry["target"], entry["code"]) == (owner.id, dataset, "budget_exceeded")
    assert entry["request_id"] == answer.headers["X-Request-Id"]


def test_an_owner_reads_the_refused_jobs_of_an_account(
    house: House, api: httpx.Client, owner: rows.Key, analyst: rows.Key, auditor: rows.Key
) -> None:
    """W3: refusals follow from budgets. Other accounts and other kinds of refusals are not listed."""
    first, second = (
        house.ready_dataset(owner, name=name, population="people", shared_with=(analyst.id,)) for name in ("a", "b")
    )
    other = house.ready_dataset(owner, shared_with=(analyst.id,))
    for dataset in (first, second, other, first):
        answer = api.post("/v1/jobs", headers=analyst.headers, json=job_body(dataset, privacy={"epsilon": 15.0}))
        problem(answer, 409, "budget_exceeded")
    api.post("/v1/jobs", headers=analyst.headers, json=job_body(first, size=-1))
    _log(api, auditor)  # writes the counted refusals
    by = {"id": analyst.id, "name": "a key"}
    for key in (owner, auditor):
        answer = api.get(f"/v1/datasets/{first}/refusals", headers=key.headers)
        seen = [{name: each[name] for name in each if name != "at"} for each in answer.json()["items"]]
        assert sorted(seen, key=lambda each: each["dataset_name"]) == [
            {"dataset_id": first, "dataset_name": "a", "submitted_by": by, "count": 2, "reason": "limit"},
            {"dataset_id": second, "dataset_name": "b", "submitted_by": by, "count": 1, "reason": "limit"},
        ]
    pages = [api.get(f"/v1/datasets/{first}/refusals", headers=owner.headers, params={"limit": 1}).json()]
    cursor = {"limit": 1, "cursor": pages[0]["next_cursor"]}
    pages.append(api.get(f"/v1/datasets/{first}/refusals", headers=owner.headers, params=cursor).json())
    assert [each for page in pages for each in page["items"]] == answer.json()["items"]
    assert pages[1]["next_cursor"] is None
    problem(api.get(f"/v1/datasets/{first}/refusals", headers=analyst.headers), 403, "forbidden")


def test_a_replay_has_a_separate_entry_and_changes_nothing(
    house: House, api: httpx.Client, owner: rows.Key, auditor: rows.Key
) -> None:
    body, headers = job_body(house.ready_dataset(owner)), owner.headers | {"Idempotency-Key": "once"}
    answers = [api.post("/v1/jobs", headers=headers, json=body) for _ in range(2)]
    assert len({answer.json()["id"] for answer in answers}) == 1
    replay, effect = _log(api, auditor, action="POST /v1/jobs")
    assert effect["target"] == answers[0].json()["id"]
    assert [replay["request_id"], effect["request_id"]] == [each.headers["X-Request-Id"] for each in answers[::-1]]


def test_public_reads_are_not_logged(client: httpx.Client, auditor: rows.Key) -> None:
    for path in ("/v1/releases", "/v1/releases/rel_none/points", "/v1/keys", "/health/ready", "/metrics", "/v1/me"):
        client.get(path)
    assert [entry["action"] for entry in _log(client, auditor)] == ["GET /v1/me"]


def test_a_flood_is_two_entries_a_minute(
    recorder: AuditRecorder, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = [1000.0]
    monkeypatch.setattr("app.audit.background_writer.time.monotonic", lambda: clock[0])
    recorder.observe(_refusal())
    for _ in range(125):
        recorder.flush()
        clock[0] += 1
        for _ in range(50):
            recorder.observe(_refusal())
    assert _counts(database)[0] == 1
    assert len(_counts(database)) == 3
    assert sum(_counts(database)) > 50 * 110


def test_keys_routes_and_codes_are_counted_separately(recorder: AuditRecorder, database: Database) -> None:
    for exchange in (_refusal(), _refusal("key_1"), _refusal("key_2"), _refusal("key_2", "/v1/quotes")):
        recorder.observe(exchange)
    recorder.flush()
    assert _counts(database) == [1, 1, 1, 1]


def test_counts_that_could_not_be_written_are_kept(
    recorder: AuditRecorder, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    def away() -> None:
        raise OSError

    recorder.observe(_refusal())
    with monkeypatch.context() as patched:
        patched.setattr(database, "write", away)
        recorder.flush()
    assert _counts(database) == []
    recorder.flush()
    assert _counts(database) == [1]


def test_a_stop_writes_remaining_counts(recorder: AuditRecorder, database: Database) -> None:
    with recorder.run_in_background():
        recorder.observe(_refusal())
        recorder.flush()
        recorder.observe(_refusal())
    assert _counts(database) == [1, 1]


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE audit_entries SET actor = 'key_other'",
        "UPDATE audit_entries SET sequence = 7",
        "DELETE FROM audit_entries",
        "UPDATE audit_heads SET signature = ''",
        "DELETE FROM audit_heads",
    ],
)
def test_entries_can_be_neither_changed_nor_removed(
    recorder: AuditRecorder, database: Database, statement: str
) -> None:
    """W11."""
    recorder.observe(_refusal())
    recorder.flush()
    with pytest.raises(DBAPIError, match="append-only"), database.write() as tx:
        tx.execute(text(statement))


def test_an_entry_without_a_place_cannot_be_changed(client: httpx.Client, admin: rows.Key, database: Database) -> None:
    client.post("/v1/api-keys", headers=admin.headers, json={"name": "a", "role": "owner"})
    with pytest.raises(DBAPIError, match="append-only"), database.write() as tx:
        tx.execute(text("UPDATE audit_entries SET outcome = 'refused'"))
