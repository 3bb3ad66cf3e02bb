"""``POST /v1/datasets``: a declaration takes effect completely or not at all."""

from typing import Any

import httpx
import pytest

from app.db import Database, WriteSession, generate_id
from app.errors import DependencyUnavailable
from app.services import Services
from app.vault.wrapped_keys import WrappedKeys
from tests.factories import rows
from tests.factories.datasets import declaration, declared, everything, problem, public_declaration

CANARY = "canary7f3a9c"


def test_declaration_is_returned_unchanged(client: httpx.Client, owner: rows.Key, analyst: rows.Key) -> None:
    sent = declaration(population="census-1994", shared_with=[analyst.id])
    response = client.post("/v1/datasets", json=sent, headers=owner.headers)
    body = response.json()
    assert response.status_code == 201
    assert response.headers["location"] == f"/v1/datasets/{body['id']}"
    assert body["id"].startswith("ds_")
    assert {name: body[name] for name in sent} == sent
    assert (body["status"], body["content"]) == ("created", None)


def test_declaration_creates_a_separate_key_and_an_account(
    client: httpx.Client, services: Services, owner: rows.Key
) -> None:
    first, second = declared(client, owner), declared(client, owner)
    sealed = {services.areas.keys.box(each["id"]) for each in (first, second)}
    assert len(sealed) == 2
    budget = client.get(f"/v1/datasets/{first['id']}/budget", headers=owner.headers).json()
    assert (budget["limit"], budget["slots"]) == ({"epsilon": 2.0, "delta": 1e-6}, 33000)
    assert budget["population"] == first["population"] == first["id"]


@pytest.mark.parametrize(("slots", "delta"), [(1, 1e-6), (100_000, 1e-6), (1_000_000, 1e-7)])
def test_default_delta_is_a_millionth_or_less_for_many_slots(
    client: httpx.Client, owner: rows.Key, slots: int, delta: float
) -> None:
    shown = declared(client, owner, slots=slots, budget={"epsilon": 1.0})
    assert shown["budget"] == {"epsilon": 1.0, "delta": pytest.approx(delta)}


def test_declaration_fails_while_the_key_area_is_unavailable(
    client: httpx.Client, services: Services, owner: rows.Key, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No dataset or account is left behind, and the call can be repeated."""

    def away(*_: object) -> None:
        raise DependencyUnavailable

    tables, names = everything(services.database, services.areas)
    with monkeypatch.context() as patch:
        patch.setattr(WrappedKeys, "keep", away)
        problem(client.post("/v1/datasets", json=declaration(), headers=owner.headers), 503, "dependency_unavailable")
    after, left = everything(services.database, services.areas)
    for table in ("datasets", "ledger_accounts", "ledger_entries"):
        assert after[table] == tables[table]
    assert left == names
    declared(client, owner)


def test_commit_whose_reply_was_lost_keeps_the_key(
    client: httpx.Client, services: Services, owner: rows.Key, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The dataset exists after all, and without its key it could never be decrypted."""

    def unanswered(session: WriteSession) -> None:
        declares = bool(session.info.get("after_rollback"))
        session.commit()
        if declares:
            raise DependencyUnavailable

    headers = owner.headers | {"Idempotency-Key": "once"}
    with monkeypatch.context() as patch:
        patch.setattr("app.db.session.commit", unanswered)
        problem(client.post("/v1/datasets", json=declaration(), headers=headers), 503, "dependency_unavailable")
    replayed = client.post("/v1/datasets", json=declaration(), headers=headers)
    assert replayed.status_code == 201
    assert services.areas.keys.box(replayed.json()["id"])


def test_public_data_has_no_account(client: httpx.Client, services: Services, owner: rows.Key) -> None:
    response = client.post("/v1/datasets", json=public_declaration(), headers=owner.headers)
    assert (response.status_code, response.json()["budget"]) == (201, None)
    tables, _ = everything(services.database, services.areas)
    assert not any(entries for name, entries in tables.items() if name.startswith("ledger_"))


def test_repeated_declaration_with_one_idempotency_key_declares_once(
    client: httpx.Client, services: Services, owner: rows.Key
) -> None:
    headers = owner.headers | {"Idempotency-Key": "once"}
    first = client.post("/v1/datasets", json=declaration(), headers=headers)
    before = everything(services.database, services.areas)
    second = client.post("/v1/datasets", json=declaration(), headers=headers)
    assert (second.status_code, second.json()) == (201, first.json())
    problem(client.post("/v1/datasets", json=declaration(slots=5), headers=headers), 409, "idempotency_conflict")
    assert everything(services.database, services.areas) == before


@pytest.mark.parametrize("role", ["admin", "analyst", "auditor"])
def test_only_owners_may_declare(
    client: httpx.Client, services: Services, role: str, request: pytest.FixtureRequest
) -> None:
    key: rows.Key = request.getfixturevalue(role)
    before = everything(services.database, services.areas)
    problem(client.post("/v1/datasets", json=declaration(), headers=key.headers), 403, "forbidden")
    assert everything(services.database, services.areas) == before


@pytest.mark.parametrize(
    "column",
    [
        {"type": "real", "lower": 2_459_000, "upper": 2_459_001},
        {"type": "real", "lower": 1e12, "upper": 1e12 + 1e3},
        {"type": "real", "lower": -1e100, "upper": 1e100},
        {"type": "real", "lower": 0, "upper": 1e-100},
        {"type": "integer", "lower": 2**53 - 9, "upper": 2**53 - 1},
    ],
    ids=str,
)
def test_bounds_that_double_precision_resolves_are_accepted(
    client: httpx.Client, owner: rows.Key, column: dict[str, Any]
) -> None:
    assert declared(client, owner, columns=[{"name": "a", **column}])["columns"] == [{"name": "a", **column}]


@pytest.mark.parametrize(
    ("body", "pointer"),
    [
        (declaration(**{CANARY: 1}), ""),
        (declaration(columns=[{"name": f"{CANARY} ", "type": "binary"}]), "/columns/0/name"),
        (declaration(columns=[{"name": "a", "type": CANARY}]), "/columns/0"),
        (declaration(columns=[{"name": "a", "type": "real", "lower": CANARY, "upper": 1}]), "/columns/0/lower"),
        (declaration(columns=[{"name": "a", "type": "real", "lower": 1, "upper": 0}]), "/columns/0/upper"),
        (declaration(columns=[{"name": "a", "type": "real", "lower": 1e12, "upper": 1e12 + 1e-3}]), "/columns/0/upper"),
        (declaration(columns=[{"name": "a", "type": "real", "lower": -1e-110, "upper": 0}]), "/columns/0/upper"),
        (declaration(columns=[{"name": "a", "type": "binary", CANARY: 1}]), "/columns/0"),
        (declaration(columns=[{"name": CANARY, "type": "binary"}] * 2), "/columns/1/name"),
        (
            declaration(
                columns=[{"name": "a", "type": "categorical", "categories": ["b"], "missing": {"impute": CANARY}}]
            ),
            "/columns/0/missing/impute",
        ),
        (declaration(privacy_unit={"kind": "column", "column": "age", "max_rows": 5}), "/columns/0/missing"),
        (declaration(privacy_unit={"kind": "column", "column": "hours", "max_rows": 10**9}), "/privacy_unit/max_rows"),
        (declaration(privacy_unit={"kind": CANARY}), "/privacy_unit"),
        (declaration(slots=0), "/slots"),
        (declaration(slots=10**9), "/slots"),
        (declaration(sensitivity=CANARY), "/sensitivity"),
        (declaration(budget=None), "/budget"),
        (declaration(budget={"epsilon": 0}), "/budget/epsilon"),
        (declaration(budget={"epsilon": -1.0}), "/budget/epsilon"),
        (declaration(budget={"epsilon": "inf"}), "/budget/epsilon"),
        (declaration(budget={"epsilon": 1e9}), "/budget/epsilon"),
        (declaration(budget={"epsilon": 1.0, "delta": 0.5}), "/budget/delta"),
        (declaration(budget={"epsilon": 1.0, "delta": 0}), "/budget/delta"),
        (public_declaration() | {"budget": {"epsilon": 1.0}}, "/budget"),
        (declaration(shared_with=["key_01jd0000000000000000000000"]), "/shared_with/0"),
        (declaration(shared_with=[CANARY]), "/shared_with/0"),
        (declaration(name="\x07"), "/name"),
    ],
)
def test_refusal_points_at_the_member_and_repeats_no_input(
    client: httpx.Client, services: Services, owner: rows.Key, body: dict[str, Any], pointer: str
) -> None:
    before = everything(services.database, services.areas)
    response = client.post("/v1/datasets", json=body, headers=owner.headers)
    faults = problem(response, 422, "invalid_request")["errors"]
    assert pointer in [fault["pointer"] for fault in faults]
    assert CANARY not in response.text
    assert everything(services.database, services.areas) == before


@pytest.mark.parametrize("number", ["NaN", "1e400", "-Infinity"])
def test_numbers_that_json_cannot_represent_are_refused(
    client: httpx.Client, services: Services, owner: rows.Key, number: str
) -> None:
    before = everything(services.database, services.areas)
    raw = httpx.Request("POST", "http://x", json=declaration()).read().replace(b"2.0", number.encode())
    headers = owner.headers | {"Content-Type": "application/json"}
    problem(client.post("/v1/datasets", content=raw, headers=headers), 422, "invalid_request")
    assert everything(services.database, services.areas) == before


def test_other_delta_for_the_same_population_is_refused(
    client: httpx.Client, services: Services, owner: rows.Key
) -> None:
    declared(client, owner, population="people")
    declared(client, owner, population="people", budget={"epsilon": 1.0})
    before = everything(services.database, services.areas)
    other = declaration(population="people", budget={"epsilon": 1.0, "delta": 1e-7})
    problem(client.post("/v1/datasets", json=other, headers=owner.headers), 409, "state_conflict")
    assert everything(services.database, services.areas) == before


def test_id_of_a_dataset_in_a_named_population_is_refused(client: httpx.Client, owner: rows.Key) -> None:
    """W3: otherwise a mistake would open a second budget over the same people."""
    alone, member = declared(client, owner), declared(client, owner, population="people")
    assert declared(client, owner, population=alone["id"])["population"] == alone["id"]
    for name in (member["id"], generate_id("ds")):
        response = client.post("/v1/datasets", json=declaration(population=name), headers=owner.headers)
        fault = problem(response, 422, "invalid_request")["errors"][0]
        assert fault["pointer"] == "/population"
        assert "State the member 'population' of the dataset" in fault["message"]


def test_populations_of_two_owners_are_separate(client: httpx.Client, database: Database, owner: rows.Key) -> None:
    declared(client, owner, population="people")
    with database.write() as tx:
        other = rows.api_key(tx, "owner")
    shown = declared(client, other, population="people", budget={"epsilon": 1.0, "delta": 1e-8})
    assert shown["budget"]["delta"] == 1e-8
