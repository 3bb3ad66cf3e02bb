"""``/v1/datasets/{id}/budget`` and ``/v1/datasets/{id}/ledger``."""

import itertools
from typing import Any

import httpx
import pytest

from app.db import Database
from app.ledger import Cause
from app.services import Services
from tests.factories import rows
from tests.factories.datasets import Check, declared, everything, problem, public_declaration
from tests.factories.worker import House

FIELDS = {
    "dataset_id", "population", "accountant", "relation", "unit", "slots", "limit", "spent", "reserved", "remaining",
    "used_share", "jobs", "version",
}  # fmt: skip


def budget(client: httpx.Client, key: rows.Key, dataset_id: str) -> httpx.Response:
    return client.get(f"/v1/datasets/{dataset_id}/budget", headers=key.headers)


def change(client: httpx.Client, key: rows.Key, dataset_id: str, **limit: Any) -> httpx.Response:
    return client.put(f"/v1/datasets/{dataset_id}/budget", json=limit, headers=key.headers)


def ledger(client: httpx.Client, key: rows.Key, dataset_id: str, **query: str | int) -> httpx.Response:
    return client.get(f"/v1/datasets/{dataset_id}/ledger", params=query, headers=key.headers)


def test_a_new_account_has_its_whole_limit_left(client: httpx.Client, owner: rows.Key) -> None:
    dataset = declared(client, owner, population="people", budget={"epsilon": 2.0, "delta": 1e-6})
    body = budget(client, owner, dataset["id"]).json()
    assert set(body) == FIELDS
    assert (body["dataset_id"], body["population"], body["slots"]) == (dataset["id"], "people", 33000)
    assert (body["accountant"], body["relation"], body["unit"]) == ("rdp", "zero_out", "row")
    assert body["limit"] == {"epsilon": 2.0, "delta": 1e-6}
    assert (body["spent"]["epsilon"], body["reserved"]["epsilon"], body["used_share"]) == (0.0, 0.0, 0.0)
    assert body["jobs"] == {"settled": 0, "reserved": 0, "refused": 0}
    assert body["remaining"]["epsilon"] == pytest.approx(2.0, rel=0.05)


def test_everyone_who_sees_the_dataset_sees_its_budget(
    client: httpx.Client, database: Database, owner: rows.Key, analyst: rows.Key, auditor: rows.Key, admin: rows.Key
) -> None:
    dataset = declared(client, owner, shared_with=[analyst.id])
    with database.write() as tx:
        strangers = [rows.api_key(tx, "owner"), rows.api_key(tx, "analyst")]
    seen = budget(client, owner, dataset["id"]).json()
    for key in (analyst, auditor, admin):
        assert budget(client, key, dataset["id"]).json() == seen
    for key in strangers:
        problem(budget(client, key, dataset["id"]), 404, "not_found")


def test_the_chain_is_for_owner_administrators_and_auditors(
    client: httpx.Client, database: Database, owner: rows.Key, analyst: rows.Key, auditor: rows.Key, admin: rows.Key
) -> None:
    with database.write() as tx:
        guest, stranger = rows.api_key(tx, "owner"), rows.api_key(tx, "owner")
    dataset = declared(client, owner, shared_with=[analyst.id, guest.id])
    seen = ledger(client, owner, dataset["id"]).json()
    assert [entry["kind"] for entry in seen["items"]] == ["account_opened"]
    assert set(seen["items"][0]) == {
        "sequence", "at", "kind", "dataset_id", "dataset_name", "job_id", "submitted_by", "purpose", "event",
        "epsilon_after", "entry_hash", "previous_hash",
    }  # fmt: skip
    for key in (auditor, admin):
        assert ledger(client, key, dataset["id"]).json() == seen
    for key in (analyst, guest):
        problem(ledger(client, key, dataset["id"]), 403, "forbidden")
    problem(ledger(client, stranger, dataset["id"]), 404, "not_found")


def test_the_chain_is_paged_newest_first_with_linked_hashes(client: httpx.Client, owner: rows.Key) -> None:
    dataset = declared(client, owner)
    for epsilon in (1.5, 1.4, 1.3):
        assert change(client, owner, dataset["id"], epsilon=epsilon).status_code == 200
    entries: list[dict[str, Any]] = []
    query: dict[str, str | int] = {"limit": 3}
    while True:
        body = ledger(client, owner, dataset["id"], **query).json()
        entries += body["items"]
        if body["next_cursor"] is None:
            break
        query = {"limit": 3, "cursor": body["next_cursor"]}
    assert [entry["sequence"] for entry in entries] == [4, 3, 2, 1]
    assert [entry["kind"] for entry in entries] == ["limit_changed"] * 3 + ["account_opened"]
    for newer, older in itertools.pairwise(entries):
        assert newer["previous_hash"] == older["entry_hash"]


def test_a_limit_falls_at_once_and_rises_with_a_tranche(client: httpx.Client, owner: rows.Key) -> None:
    dataset = declared(client, owner, budget={"epsilon": 2.0, "delta": 1e-6})
    assert change(client, owner, dataset["id"], epsilon=1.0).json()["limit"] == {"epsilon": 1.0, "delta": 1e-6}
    raised = change(client, owner, dataset["id"], epsilon=3.0, delta=1e-6).json()
    assert raised["limit"] == {"epsilon": 3.0, "delta": 2e-6}
    assert raised == budget(client, owner, dataset["id"]).json()
    shown = client.get(f"/v1/datasets/{dataset['id']}", headers=owner.headers).json()
    assert shown["budget"] == raised["limit"]


@pytest.mark.parametrize(
    ("limit", "pointer"),
    [
        ({"epsilon": 0.0}, "/epsilon"),
        ({"epsilon": -1.0}, "/epsilon"),
        ({"epsilon": "inf"}, "/epsilon"),
        ({"epsilon": 1e6, "delta": 1e-6}, "/epsilon"),
        ({"epsilon": 3.0}, "/delta"),
        ({"epsilon": 3.0, "delta": 0.1}, "/delta"),
        ({"epsilon": 3.0, "delta": 0.0}, "/delta"),
        ({}, "/epsilon"),
        ({"epsilon": 1.0, "force": True}, ""),
    ],
)
def test_a_limit_that_is_refused_changes_nothing(
    client: httpx.Client, services: Services, owner: rows.Key, limit: dict[str, Any], pointer: str
) -> None:
    """W9: a refusal leaves the account as it was."""
    dataset = declared(client, owner)
    before = everything(services.database, services.areas)
    faults = problem(change(client, owner, dataset["id"], **limit), 422, "invalid_request")["errors"]
    assert [fault["pointer"] for fault in faults] == [pointer]
    assert everything(services.database, services.areas) == before


def test_only_the_owner_may_change_a_limit(client: httpx.Client, only_its_owner_may: Check) -> None:
    only_its_owner_may(lambda key, dataset_id: change(client, key, dataset_id, epsilon=1.0))


def test_public_data_has_neither_budget_nor_ledger(client: httpx.Client, owner: rows.Key) -> None:
    dataset = client.post("/v1/datasets", json=public_declaration(), headers=owner.headers).json()
    problem(budget(client, owner, dataset["id"]), 409, "state_conflict")
    problem(ledger(client, owner, dataset["id"]), 409, "state_conflict")
    problem(change(client, owner, dataset["id"], epsilon=1.0), 409, "state_conflict")


def test_a_second_dataset_of_a_population_shares_the_account_under_a_cap(client: httpx.Client, owner: rows.Key) -> None:
    first = declared(client, owner, population="people", budget={"epsilon": 2.0, "delta": 1e-6})
    second = declared(client, owner, population="people", budget={"epsilon": 0.5, "delta": 1e-6})
    assert second["budget"] == {"epsilon": 0.5, "delta": 1e-6}
    assert first["budget"]["epsilon"] == 2.0
    chains = [ledger(client, owner, each["id"]).json()["items"] for each in (first, second)]
    assert chains[0][0] == chains[1][0]


def allocate(client: httpx.Client, key: rows.Key, dataset_id: str, *allocations: dict[str, Any]) -> httpx.Response:
    body = {"allocations": list(allocations)}
    return client.patch(f"/v1/datasets/{dataset_id}", json=body, headers=key.headers)


def test_each_analyst_sees_only_the_allocation_of_its_key(
    client: httpx.Client, owner: rows.Key, analyst: rows.Key, auditor: rows.Key
) -> None:
    dataset_id = declared(client, owner, shared_with=[analyst.id])["id"]
    assert allocate(client, owner, dataset_id, {"key_id": owner.id, "epsilon": 0.2}).status_code == 200
    assert "allocations" not in budget(client, analyst, dataset_id).json()
    own = {"key_id": analyst.id, "epsilon": 0.5}
    assert allocate(client, owner, dataset_id, own, {"key_id": owner.id, "epsilon": 0.2}).status_code == 200
    seen = {key.role: budget(client, key, dataset_id).json()["allocations"] for key in (owner, analyst, auditor)}
    assert [each["key_id"] for each in seen["owner"]] == [analyst.id, owner.id]
    assert seen["auditor"] == seen["owner"]
    (mine,) = seen["analyst"]
    assert set(mine) == {"key_id", "limit", "spent", "reserved"}
    assert (mine["key_id"], mine["limit"]["epsilon"], mine["spent"]["epsilon"]) == (analyst.id, 0.5, 0.0)
    kinds = [entry["kind"] for entry in ledger(client, owner, dataset_id).json()["items"]]
    assert kinds == ["limit_changed", "limit_changed", "account_opened"]


def test_invalid_allocations_are_refused_and_change_nothing(
    client: httpx.Client, services: Services, owner: rows.Key, analyst: rows.Key
) -> None:
    dataset_id = declared(client, owner)["id"]
    before = everything(services.database, services.areas)
    each = {"key_id": analyst.id, "epsilon": 0.5}
    for wrong in (
        [{"key_id": analyst.id, "epsilon": 0}],
        [{"key_id": analyst.id, "epsilon": "0.5"}],
        [{"key_id": analyst.id, "epsilon": 1e9}],
        [{"key_id": analyst.id}],
        [{"key_id": "key_01jd0000000000000000000000", "epsilon": 0.5}],
        [each, each],
        [{**each, "delta": 1e-6}],
    ):
        problem(allocate(client, owner, dataset_id, *wrong), 422, "invalid_request")
    assert everything(services.database, services.areas) == before


def test_only_the_owner_may_allocate(client: httpx.Client, analyst: rows.Key, only_its_owner_may: Check) -> None:
    only_its_owner_may(
        lambda key, dataset_id: allocate(client, key, dataset_id, {"key_id": analyst.id, "epsilon": 0.5})
    )


def test_a_public_dataset_has_no_allocations(client: httpx.Client, owner: rows.Key, analyst: rows.Key) -> None:
    dataset = client.post("/v1/datasets", json=public_declaration(), headers=owner.headers).json()
    problem(allocate(client, owner, dataset["id"], {"key_id": analyst.id, "epsilon": 0.5}), 409, "state_conflict")


def test_an_owner_with_a_shared_dataset_may_not_read_its_ledger(
    client: httpx.Client, owner: rows.Key, database: Database
) -> None:
    """W3: only owner, administrators and auditors read entries."""
    with database.write() as tx:
        other = rows.api_key(tx, "owner")
    dataset_id = declared(client, owner, shared_with=[other.id])["id"]
    refused = problem(ledger(client, other, dataset_id), 403, "forbidden")
    assert "the dataset's owner, or one of the role admin or auditor" in refused["detail"]


def _frozen(house: House, owner: rows.Key, cause: Cause = Cause.RUN) -> str:
    dataset_id = house.ready_dataset(owner)
    with house.database.write() as tx:
        house.ledger.freeze(tx, dataset_id, cause)
    return dataset_id


def _unfreeze(client: httpx.Client, key: rows.Key, dataset_id: str, reason: str = "repaired") -> httpx.Response:
    return client.post(f"/v1/datasets/{dataset_id}/unfreeze", json={"reason": reason}, headers=key.headers)


def test_unfreeze_leaves_its_reason_in_the_audit_log(house: House, admin: rows.Key, owner: rows.Key) -> None:
    dataset_id = _frozen(house, owner)
    with house.client() as client:
        answer = _unfreeze(client, admin, dataset_id, "A fault of the service.")
        assert (answer.status_code, set(answer.json())) == (200, FIELDS)
        assert [entry["kind"] for entry in ledger(client, owner, dataset_id).json()["items"]][:2] == [
            "unfrozen",
            "frozen",
        ]
        entries = client.get("/v1/audit-log", params={"target": dataset_id}, headers=admin.headers).json()["items"]
    assert [(entry["action"], entry["reason"]) for entry in entries] == [
        ("POST /v1/datasets/{dataset_id}/unfreeze", "A fault of the service.")
    ]
    house.job(dataset_id, owner)


def test_unfreeze_after_tampering_is_a_conflict(house: House, admin: rows.Key, owner: rows.Key) -> None:
    """W11: no reason ends such a freeze."""
    dataset_id = _frozen(house, owner, Cause.MISMATCH)
    with house.client() as client:
        answer = _unfreeze(client, admin, dataset_id)
    assert (answer.status_code, answer.json()["code"]) == (409, "state_conflict")


@pytest.mark.parametrize("cause", Cause)
def test_ledger_states_the_cause_of_a_freeze(house: House, owner: rows.Key, cause: Cause) -> None:
    dataset_id = _frozen(house, owner, cause)
    with house.client() as client:
        frozen, *others = ledger(client, owner, dataset_id).json()["items"]
    assert (frozen["kind"], frozen["cause"]) == ("frozen", str(cause))
    assert all("cause" not in entry for entry in others)


def test_unfreeze_of_an_account_that_is_not_frozen_conflicts(house: House, admin: rows.Key, owner: rows.Key) -> None:
    with house.client() as client:
        answer = _unfreeze(client, admin, house.ready_dataset(owner))
    assert (answer.status_code, answer.json()["code"]) == (409, "state_conflict")


@pytest.mark.parametrize("role", ["owner", "analyst", "auditor"])
def test_only_an_administrator_ends_a_freeze(
    house: House, owner: rows.Key, request: pytest.FixtureRequest, role: str
) -> None:
    with house.client() as client:
        answer = _unfreeze(client, request.getfixturevalue(role), _frozen(house, owner))
    assert (answer.status_code, answer.json()["code"]) == (403, "forbidden")


@pytest.mark.parametrize("body", [{}, {"reason": ""}, {"reason": "  "}, {"reason": "a\x00b"}, {"reason": "x" * 501}])
def test_unfreeze_without_a_plain_reason_is_refused(
    house: House, admin: rows.Key, owner: rows.Key, body: dict[str, Any]
) -> None:
    with house.client() as client:
        path = f"/v1/datasets/{_frozen(house, owner)}/unfreeze"
        answer = client.post(path, json=body, headers=admin.headers)
    assert (answer.status_code, answer.json()["code"]) == (422, "invalid_request")
