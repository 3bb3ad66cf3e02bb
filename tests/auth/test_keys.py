"""API keys over HTTP: creation, rotation, revocation and lists."""

from datetime import timedelta

import httpx
import pytest
from sqlalchemy import select

from app.auth.models import ApiKey
from app.db import Database, now
from app.http.requests.models import IdempotentAnswer
from tests.factories import rows

PATH = "/v1/api-keys"


def test_me_shows_the_callers_key(client: httpx.Client, analyst: rows.Key) -> None:
    answer = client.get("/v1/me", headers=analyst.headers)
    assert answer.status_code == 200
    assert answer.json() == {"id": analyst.id, "role": "analyst", "name": "a key"}


@pytest.mark.parametrize(
    "authorization",
    [None, "", "Bearer", "Bearer cv_", "Bearer cv_" + "A" * 43, "Bearer \u00e9", "Basic YTpi", "cv_" + "A" * 43],
)
def test_a_malformed_credential_is_unauthenticated(
    client: httpx.Client, admin: rows.Key, authorization: str | None
) -> None:
    headers = {} if authorization is None else {b"Authorization": authorization.encode()}
    answer = client.get("/v1/me", headers=headers)
    assert (answer.status_code, answer.json()["code"]) == (401, "unauthenticated")
    assert answer.headers["WWW-Authenticate"] == "Bearer"


@pytest.mark.parametrize("ended", [{"expires_at": now() - timedelta(seconds=1)}, {"revoked_at": now()}])
def test_an_ended_key_is_answered_like_an_unknown_one(client: httpx.Client, database: Database, ended: dict) -> None:  # type: ignore[type-arg]
    """W3: it sees nothing from the moment of its end."""
    with database.write() as tx:
        key = rows.api_key(tx, **ended)
    answer = client.get("/v1/me", headers=key.headers)
    assert (answer.status_code, answer.json()["code"]) == (401, "unauthenticated")


def test_a_new_key_works_and_only_its_hash_is_stored(client: httpx.Client, admin: rows.Key, database: Database) -> None:
    answer = client.post(PATH, headers=admin.headers, json={"name": "ward 7", "role": "owner"})
    assert answer.status_code == 201
    created = answer.json()
    assert set(created) == {"id", "name", "role", "key"}
    assert client.get("/v1/me", headers={"Authorization": f"Bearer {created['key']}"}).json()["id"] == created["id"]
    with database.read() as session:
        assert created["key"] not in repr([vars(row) for row in session.scalars(select(ApiKey))])


def test_an_expiry_ends_a_key(client: httpx.Client, admin: rows.Key) -> None:
    body = {"name": "ward 7", "role": "owner", "expires_at": "2999-01-31T12:00:00+01:00"}
    assert client.post(PATH, headers=admin.headers, json=body).status_code == 201
    listed = client.get(PATH, headers=admin.headers).json()["items"]
    assert listed[0]["expires_at"] == "2999-01-31T11:00:00Z"


@pytest.mark.parametrize(
    ("change", "pointer"),
    [
        ({"expires_at": "2001-01-01T00:00:00Z"}, "/expires_at"),
        ({"expires_at": "2999-01-01T00:00:00"}, "/expires_at"),
        ({"expires_at": 5}, "/expires_at"),
        ({"role": "root"}, "/role"),
        ({"name": ""}, "/name"),
        ({"name": 7}, "/name"),
        ({"name": "a\u0000b"}, "/name"),
        ({"is_admin": True}, ""),
    ],
)
def test_a_key_with_a_bad_member_is_refused(client: httpx.Client, admin: rows.Key, change: dict, pointer: str) -> None:  # type: ignore[type-arg]
    answer = client.post(PATH, headers=admin.headers, json={"name": "ward 7", "role": "owner"} | change)
    assert (answer.status_code, answer.json()["code"]) == (422, "invalid_request")
    assert [fault["pointer"] for fault in answer.json()["errors"]] == [pointer]
    assert len(client.get(PATH, headers=admin.headers).json()["items"]) == 1


@pytest.mark.parametrize("role", ["owner", "analyst", "auditor"])
@pytest.mark.parametrize(
    ("method", "path"), [("POST", PATH), ("GET", PATH), ("POST", f"{PATH}/key_0/rotate"), ("DELETE", f"{PATH}/key_0")]
)
def test_only_administrators_may_manage_keys(
    client: httpx.Client, database: Database, role: str, method: str, path: str
) -> None:
    with database.write() as tx:
        key = rows.api_key(tx, role)
    body = {"name": "ward 7", "role": "owner"} if path == PATH and method == "POST" else None
    answer = client.request(method, path, headers=key.headers, json=body)
    assert (answer.status_code, answer.json()["code"]) == (403, "forbidden")
    assert "of the role admin; yours is of the role" in answer.json()["detail"]


def test_rotation_ends_the_old_secret_at_once(client: httpx.Client, admin: rows.Key, owner: rows.Key) -> None:
    answer = client.post(f"{PATH}/{owner.id}/rotate", headers=admin.headers)
    assert answer.status_code == 200
    assert answer.json()["id"] == owner.id
    assert client.get("/v1/me", headers=owner.headers).status_code == 401
    assert client.get("/v1/me", headers={"Authorization": f"Bearer {answer.json()['key']}"}).status_code == 200


def test_an_expired_key_cannot_be_rotated(client: httpx.Client, admin: rows.Key, database: Database) -> None:
    with database.write() as tx:
        key = rows.api_key(tx, expires_at=now() - timedelta(days=1))
    answer = client.post(f"{PATH}/{key.id}/rotate", headers=admin.headers)
    assert (answer.status_code, answer.json()["code"]) == (409, "state_conflict")


def test_a_revoked_key_is_not_found(client: httpx.Client, admin: rows.Key, owner: rows.Key) -> None:
    answer = client.delete(f"{PATH}/{owner.id}", headers=admin.headers)
    assert (answer.status_code, answer.content) == (204, b"")
    assert client.get("/v1/me", headers=owner.headers).status_code == 401
    assert [key["id"] for key in client.get(PATH, headers=admin.headers).json()["items"]] == [admin.id]
    assert client.delete(f"{PATH}/{owner.id}", headers=admin.headers).json()["code"] == "not_found"
    assert client.post(f"{PATH}/{owner.id}/rotate", headers=admin.headers).json()["code"] == "not_found"


def test_the_last_working_admin_key_is_not_revoked(client: httpx.Client, admin: rows.Key, database: Database) -> None:
    with database.write() as tx:
        rows.api_key(tx, "admin", expires_at=now() - timedelta(days=1))
    answer = client.delete(f"{PATH}/{admin.id}", headers=admin.headers)
    assert (answer.status_code, answer.json()["code"]) == (409, "state_conflict")
    with database.write() as tx:
        rows.api_key(tx, "admin")
    assert client.delete(f"{PATH}/{admin.id}", headers=admin.headers).status_code == 204


def test_a_repeated_creation_omits_the_secret(client: httpx.Client, admin: rows.Key, database: Database) -> None:
    headers = admin.headers | {"Idempotency-Key": "once"}
    body = {"name": "ward 7", "role": "owner"}
    first = client.post(PATH, headers=headers, json=body)
    second = client.post(PATH, headers=headers, json=body)
    assert second.status_code == 201
    assert second.json() == {name: value for name, value in first.json().items() if name != "key"}
    assert len(client.get(PATH, headers=admin.headers).json()["items"]) == 2
    with database.read() as session:
        assert first.json()["key"] not in repr([vars(row) for row in session.scalars(select(IdempotentAnswer))])


def test_keys_are_listed_newest_first_page_by_page(client: httpx.Client, admin: rows.Key, database: Database) -> None:
    with database.write() as tx:
        made = [admin.id] + [rows.api_key(tx).id for _ in range(4)]
    seen: list[str] = []
    cursor: dict[str, str] = {}
    while True:
        answer = client.get(PATH, headers=admin.headers, params={"limit": "2", **cursor}).json()
        seen += [key["id"] for key in answer["items"]]
        if answer["next_cursor"] is None:
            break
        cursor = {"cursor": answer["next_cursor"]}
    assert seen == sorted(made, reverse=True)
    assert "secret_hash" not in answer["items"][0]


def test_no_part_of_a_key_is_logged_or_counted(
    client: httpx.Client,
    admin: rows.Key,
    database: Database,
    capsys: pytest.CaptureFixture[str],
    caplog: pytest.LogCaptureFixture,
) -> None:
    """W3: secrets that are sent or created do not occur in logs and metrics."""
    caplog.set_level("DEBUG")
    with database.write() as tx:
        revoked = rows.api_key(tx, revoked_at=now())
    created = client.post(PATH, headers=admin.headers, json={"name": "canary-name", "role": "owner"}).json()
    rotated = client.post(f"{PATH}/{created['id']}/rotate", headers=admin.headers).json()
    wrong = ["canary-token", "cv_" + "A" * 43, admin.secret[:-1], revoked.secret, created["key"]]
    for text in wrong:
        assert client.get("/v1/me", headers={"Authorization": f"Bearer {text}"}).status_code == 401
    shown = capsys.readouterr()
    written = shown.out + shown.err + caplog.text + client.get("/metrics", headers=admin.headers).text
    assert "request" in written
    for text in (*wrong, admin.secret, rotated["key"], "canary-name"):
        assert text not in written
        assert text[-43:] not in written
