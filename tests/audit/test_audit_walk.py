"""Every state-changing route leaves one entry per change or refusal."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import httpx
import pytest
from sqlalchemy import select

from app.audit.models import AuditEntry
from app.db import WriteSession
from app.ledger import Cause
from app.main import create_app
from tests.factories import rows
from tests.factories.worker import House, job_body

CSV = {"Content-Type": "text/csv"}
TABLE = b"age,hours,sex,income_gt_50k\r\n39,40,Male,0\r\n"
NOBODY = {"Authorization": "Bearer cv_" + "0" * 43}
DECLARATION: dict[str, Any] = {
    "name": "adult",
    "sensitivity": "private",
    "columns": rows.COLUMNS,
    "privacy_unit": {"kind": "row"},
    "slots": 100,
    "budget": {"epsilon": 1.0, "delta": 1e-6},
}


@dataclass
class World:
    """An installation with something of everything, whose calls are looked up in the log."""

    house: House
    client: httpx.Client
    admin: rows.Key
    owner: rows.Key
    dataset: str

    def entries(self) -> list[AuditEntry]:
        with self.house.database.read() as session:
            return list(session.scalars(select(AuditEntry).order_by(AuditEntry.id)))

    def call(self, method: str, path: str, key: rows.Key, **options: Any) -> httpx.Response:
        headers = key.headers | options.pop("headers", {})
        return self.client.request(method, path, headers=headers, **options)


Call = Callable[[World], httpx.Response]


def _create_key(world: World) -> httpx.Response:
    return world.call("POST", "/v1/api-keys", world.admin, json={"name": "new", "role": "analyst"})


def _new_key(world: World) -> str:
    return str(_create_key(world).json()["id"])


def _job(world: World) -> httpx.Response:
    return world.call("POST", "/v1/jobs", world.owner, json=job_body(world.dataset))


def _cancel(world: World) -> httpx.Response:
    job = _job(world).json()["id"]
    return world.call("POST", f"/v1/jobs/{job}/cancel", world.owner)


def _dataset(world: World) -> httpx.Response:
    return world.call("POST", "/v1/datasets", world.owner, json=DECLARATION)


def _content(world: World) -> httpx.Response:
    return world.call(
        "PUT", f"/v1/datasets/{_dataset(world).json()['id']}/content", world.owner, content=TABLE, headers=CSV
    )


def _begin(world: World) -> httpx.Response:
    body = {"media_type": "text/csv"}
    return world.call("POST", f"/v1/datasets/{_dataset(world).json()['id']}/uploads", world.owner, json=body)


def _send(world: World, address: str) -> httpx.Response:
    return world.call("PATCH", address, world.owner, content=TABLE, headers={"Upload-Offset": "0"})


def _complete(world: World) -> httpx.Response:
    address = _begin(world).headers["Location"]
    assert _send(world, address).status_code == 204
    return world.call("POST", f"{address}/complete", world.owner)


def _unfreeze(world: World) -> httpx.Response:
    with world.house.database.write() as tx:
        world.house.ledger.freeze(tx, world.dataset, Cause.RUN)
    return world.call("POST", f"/v1/datasets/{world.dataset}/unfreeze", world.admin, json={"reason": "mended"})


SUCCESSES: dict[str, Call] = {
    "POST /v1/api-keys": _create_key,
    "POST /v1/api-keys/{key_id}/rotate": lambda w: w.call("POST", f"/v1/api-keys/{_new_key(w)}/rotate", w.admin),
    "DELETE /v1/api-keys/{key_id}": lambda w: w.call("DELETE", f"/v1/api-keys/{_new_key(w)}", w.admin),
    "POST /v1/datasets": _dataset,
    "PATCH /v1/datasets/{dataset_id}": lambda w: w.call(
        "PATCH", f"/v1/datasets/{w.dataset}", w.owner, json={"description": "new"}
    ),
    "DELETE /v1/datasets/{dataset_id}": lambda w: w.call("DELETE", f"/v1/datasets/{w.dataset}", w.owner),
    "PUT /v1/datasets/{dataset_id}/content": _content,
    "PUT /v1/datasets/{dataset_id}/budget": lambda w: w.call(
        "PUT", f"/v1/datasets/{w.dataset}/budget", w.owner, json={"epsilon": 1.5}
    ),
    "POST /v1/datasets/{dataset_id}/unfreeze": _unfreeze,
    "POST /v1/datasets/{dataset_id}/uploads": _begin,
    "PATCH /v1/datasets/{dataset_id}/uploads/{upload_id}": lambda w: _send(w, _begin(w).headers["Location"]),
    "DELETE /v1/datasets/{dataset_id}/uploads/{upload_id}": lambda w: w.call(
        "DELETE", _begin(w).headers["Location"], w.owner
    ),
    "POST /v1/datasets/{dataset_id}/uploads/{upload_id}/complete": _complete,
    "POST /v1/jobs": _job,
    "POST /v1/jobs/{job_id}/cancel": _cancel,
}
READS_BY_POST = {
    "POST /v1/quotes",
    *(f"POST /v1/datasets/{{dataset_id}}/what-if/{kind}" for kind in ("job", "limit", "allocation")),
}


@pytest.fixture
def world(house: House, api: httpx.Client, admin: rows.Key, owner: rows.Key) -> World:
    return World(house, api, admin, owner, house.ready_dataset(owner))


def _changing(house: House) -> set[str]:
    paths = create_app(house.services).openapi()["paths"]
    return {
        f"{method.upper()} {path}"
        for path, operations in paths.items()
        for method in operations
        if method in {"post", "put", "patch", "delete"}
    }


def test_the_walk_knows_every_route(house: House) -> None:
    assert _changing(house) == set(SUCCESSES) | READS_BY_POST


@pytest.mark.parametrize("action", SUCCESSES)
def test_a_change_leaves_one_entry_in_its_transaction(world: World, action: str) -> None:
    """The log is not flushed in between: the entry was committed with the change."""
    answer = SUCCESSES[action](world)
    assert answer.status_code < 300, answer.text
    found = [entry for entry in world.entries() if entry.request_id == answer.headers["X-Request-Id"]]
    assert [(entry.action, entry.outcome, entry.status, entry.code, entry.count) for entry in found] == [
        (action, "succeeded", answer.status_code, None, 1)
    ]
    assert found[0].actor in {world.admin.id, world.owner.id}
    assert found[0].target is not None


@pytest.mark.parametrize("action", SUCCESSES)
def test_a_change_that_is_rolled_back_leaves_none(world: World, action: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The entry and the change are one transaction: a commit that fails loses both."""
    commit, written = WriteSession.commit, select(AuditEntry.id).where(AuditEntry.action == action)
    met: list[str] = []

    def failing(tx: WriteSession) -> None:
        met.extend(tx.scalars(written).all())
        if met:
            raise OSError
        commit(tx)

    monkeypatch.setattr(WriteSession, "commit", failing)
    answer = SUCCESSES[action](world)
    assert (answer.status_code, len(met)) == (500, 1)
    assert action not in {entry.action for entry in world.entries()}


@pytest.mark.parametrize("action", [*SUCCESSES, *sorted(READS_BY_POST)])
def test_a_refusal_leaves_exactly_one_entry(world: World, admin: rows.Key, action: str) -> None:
    method, _, template = action.partition(" ")
    path = template.format(key_id="key_none", dataset_id="ds_none", job_id="job_none", upload_id="up_none")
    with world.house.database.write() as tx:
        auditor = rows.api_key(tx, "auditor")
    before = {entry.id for entry in world.entries()}
    for headers in (NOBODY, auditor.headers):
        answer = world.client.request(
            method, path, headers=headers | {"Content-Type": "application/json"}, content=b"{"
        )
        assert answer.status_code >= 400
    read = world.call("GET", "/v1/audit-log", admin)
    assert read.status_code == 200
    fresh = [entry for entry in world.entries() if entry.id not in before and entry.action == action]
    assert sorted((entry.actor is None, entry.outcome, entry.count) for entry in fresh) == [
        (False, "refused", 1),
        (True, "refused", 1),
    ]
    assert {entry.code for entry in fresh if entry.actor is None} == {"unauthenticated"}
    assert all("none" not in (entry.target or "") for entry in fresh), "nothing that was typed is kept"
