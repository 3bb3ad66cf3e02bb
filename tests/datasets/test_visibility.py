"""Visibility of datasets and of their members, by caller."""

import httpx
import pytest

from app.db import Database, now
from tests.factories import rows
from tests.factories.datasets import declared, problem, public_declaration

HIDDEN = {"shared_with", "content_received_at", "content_ended_at", "deleted_at"}


@pytest.fixture
def other_owner(database: Database) -> rows.Key:
    with database.write() as tx:
        return rows.api_key(tx, "owner")


def contents(database: Database, dataset_id: str, *statuses: str) -> None:
    with database.write() as tx:
        for version, status in enumerate(statuses, start=1):
            rejection = "malformed" if status == "rejected" else None
            rows.content(tx, dataset_id, version=version, status=status, rejection=rejection)


def shown(client: httpx.Client, key: rows.Key, dataset_id: str) -> tuple[str, object]:
    body = client.get(f"/v1/datasets/{dataset_id}", headers=key.headers).json()
    content = body["content"]
    return body["status"], content and (content["version"], content["status"], content["rejection"])


def test_invisible_dataset_is_reported_as_not_found(
    client: httpx.Client, owner: rows.Key, other_owner: rows.Key, analyst: rows.Key
) -> None:
    dataset = declared(client, owner)
    for key in (other_owner, analyst):
        hidden = client.get(f"/v1/datasets/{dataset['id']}", headers=key.headers)
        missing = client.get("/v1/datasets/ds_01jd0000000000000000000000", headers=key.headers)
        assert problem(hidden, 404, "not_found")["detail"] == problem(missing, 404, "not_found")["detail"]
        assert client.get("/v1/datasets", headers=key.headers).json() == {"items": [], "next_cursor": None}
    problem(client.get(f"/v1/datasets/{dataset['id']}"), 401, "unauthenticated")


def test_owner_auditor_and_administrator_see_the_whole_declaration(
    client: httpx.Client, owner: rows.Key, auditor: rows.Key, admin: rows.Key
) -> None:
    dataset = declared(client, owner)
    for key in (owner, auditor, admin):
        assert client.get(f"/v1/datasets/{dataset['id']}", headers=key.headers).json() == dataset
        assert client.get("/v1/datasets", headers=key.headers).json()["items"] == [dataset]


def test_analyst_sees_only_the_declared_facts(client: httpx.Client, owner: rows.Key, analyst: rows.Key) -> None:
    dataset = declared(client, owner, shared_with=[analyst.id])
    declared(client, owner)
    facts = {name: value for name, value in dataset.items() if name not in HIDDEN}
    assert client.get(f"/v1/datasets/{dataset['id']}", headers=analyst.headers).json() == facts
    assert client.get("/v1/datasets", headers=analyst.headers).json()["items"] == [facts]


@pytest.mark.parametrize(
    ("statuses", "for_owner", "for_analyst"),
    [
        ((), ("created", None), ("created", None)),
        (("received",), ("received", (1, "received", None)), ("created", None)),
        (("rejected",), ("rejected", (1, "rejected", "malformed")), ("created", None)),
        (("ready",), ("ready", (1, "ready", None)), ("ready", (1, "ready", None))),
        (("ready", "received"), ("ready", (2, "received", None)), ("ready", (1, "ready", None))),
        (("ready", "rejected"), ("ready", (2, "rejected", "malformed")), ("ready", (1, "ready", None))),
        (("rejected", "ready"), ("ready", (2, "ready", None)), ("ready", (2, "ready", None))),
    ],
)
def test_outcome_of_an_upload_is_hidden_from_analysts(
    client: httpx.Client,
    database: Database,
    owner: rows.Key,
    analyst: rows.Key,
    statuses: tuple[str, ...],
    for_owner: tuple[str, object],
    for_analyst: tuple[str, object],
) -> None:
    """W3: a rejection depends on the file, so analysts see only the last ready version."""
    dataset = declared(client, owner, shared_with=[analyst.id])
    contents(database, dataset["id"], *statuses)
    for key, (status, content) in ((owner, for_owner), (analyst, for_analyst)):
        assert shown(client, key, dataset["id"]) == (status, content)


def test_deleted_dataset_is_still_readable(client: httpx.Client, database: Database, owner: rows.Key) -> None:
    with database.write() as tx:
        gone = rows.dataset(tx, owner.id, sensitivity="public", deleted_at=now())
        dataset_id = gone.id
    body = client.get(f"/v1/datasets/{dataset_id}", headers=owner.headers).json()
    assert body["status"] == "deleted"
    assert body["deleted_at"] is not None


def test_lists_are_paged_newest_first(client: httpx.Client, owner: rows.Key) -> None:
    created = [
        client.post("/v1/datasets", json=public_declaration(name=f"set {n}"), headers=owner.headers).json()["id"]
        for n in range(5)
    ]
    seen: list[str] = []
    query: dict[str, str | int] = {"limit": 2}
    while True:
        body = client.get("/v1/datasets", params=query, headers=owner.headers).json()
        seen += [item["id"] for item in body["items"]]
        if body["next_cursor"] is None:
            break
        query = {"limit": 2, "cursor": body["next_cursor"]}
    assert seen == sorted(created, reverse=True)


@pytest.mark.parametrize("query", [{"limit": 0}, {"limit": 201}, {"cursor": "§"}, {"cursor": "MTI"}, {"sort": "name"}])
def test_bad_queries_are_refused(client: httpx.Client, owner: rows.Key, query: dict[str, str | int]) -> None:
    problem(client.get("/v1/datasets", params=query, headers=owner.headers), 422, "invalid_request")
