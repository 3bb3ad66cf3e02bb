"""Lists of datasets have figures of budgets and names of owners; declarations have warnings."""

from typing import Any

import httpx
import pytest
import sqlalchemy as sa

from app.db import Database
from app.ledger import Cause
from tests.factories import rows
from tests.factories.datasets import declaration, declared, public_declaration
from tests.factories.worker import House, job_body

FIGURES = ("spent", "reserved", "remaining")


def read(client: httpx.Client, key: rows.Key, path: str) -> Any:
    answer = client.get(path, headers=key.headers)
    assert answer.status_code == 200, answer.text
    return answer.json()


def test_list_has_the_figures_of_each_budget(
    house: House, api: httpx.Client, owner: rows.Key, analyst: rows.Key
) -> None:
    first = house.ready_dataset(owner, shared_with=(analyst.id,), population="people")
    second = house.ready_dataset(owner, shared_with=(analyst.id,), population="people")
    third = house.ready_dataset(owner, shared_with=(analyst.id,))
    house.run(house.job(first, analyst))
    house.job(second, analyst)
    allocation = {"allocations": [{"key_id": analyst.id, "epsilon": 0.4}]}
    assert api.patch(f"/v1/datasets/{third}", json=allocation, headers=owner.headers).status_code == 200
    for key in (owner, analyst):
        listed = {each["id"]: each for each in read(api, key, "/v1/datasets")["items"]}
        assert set(listed) == {first, second, third}
        for dataset_id, shown in listed.items():
            budget = read(api, key, f"/v1/datasets/{dataset_id}/budget")
            assert {name: shown[name] for name in FIGURES} == {name: budget[name] for name in FIGURES}
            assert shown["budget"] == budget["limit"]
            assert {name: read(api, key, f"/v1/datasets/{dataset_id}")[name] for name in FIGURES} == {
                name: shown[name] for name in FIGURES
            }
        assert listed[first]["spent"] == listed[second]["spent"]
        assert listed[first]["spent"]["epsilon"] > 0
        assert listed[second]["reserved"]["epsilon"] > 0
        assert listed[third]["spent"]["epsilon"] == 0
    assert listed[third]["remaining"]["epsilon"] <= 0.4, "the analyst's allocation"


def test_public_dataset_has_no_figures(client: httpx.Client, owner: rows.Key) -> None:
    answer = client.post("/v1/datasets", json=public_declaration(), headers=owner.headers)
    assert answer.status_code == 201, answer.text
    (listed,) = read(client, owner, "/v1/datasets")["items"]
    for shown in (answer.json(), listed):
        assert [shown[name] for name in ("budget", *FIGURES)] == [None] * 4


def test_queries_of_a_list_do_not_grow_with_its_length(
    client: httpx.Client, database: Database, owner: rows.Key
) -> None:
    seen: list[str] = []
    sa.event.listen(database.engine, "before_cursor_execute", lambda *sent: seen.append(str(sent[2])))
    counts = []
    for _ in range(3):
        declared(client, owner)
        seen.clear()
        read(client, owner, "/v1/datasets")
        counts.append(len(seen))
    assert counts[0] == counts[1] == counts[2]


def test_everyone_who_sees_a_dataset_sees_its_owner(
    client: httpx.Client, database: Database, owner: rows.Key, analyst: rows.Key, auditor: rows.Key
) -> None:
    with database.write() as tx:
        office = rows.api_key(tx, "owner", name="Statistics office")
    dataset = declared(client, office, shared_with=[analyst.id])
    for key in (office, analyst, auditor):
        assert read(client, key, f"/v1/datasets/{dataset['id']}")["owner"] == {
            "id": office.id,
            "name": "Statistics office",
        }


def test_names_of_releases_as_columns_are_warned_of(client: httpx.Client, owner: rows.Key) -> None:
    columns = [{"name": name, "type": "binary"} for name in ("age", "weight", "y", "Weight", "intercept")]
    warnings = declared(client, owner, columns=columns)["warnings"]
    assert [(each["code"], each["pointer"]) for each in warnings] == [
        ("reserved_column", f"/columns/{index}/name") for index in (1, 2, 4)
    ]
    assert all("target but not a feature" in each["message"] for each in warnings)


@pytest.mark.parametrize(("epsilon", "codes"), [(8.0, []), (8.5, ["weak_guarantee"])])
def test_high_limit_is_warned_of(client: httpx.Client, owner: rows.Key, epsilon: float, codes: list[str]) -> None:
    warnings = declared(client, owner, budget={"epsilon": epsilon}).get("warnings", [])
    assert [each["code"] for each in warnings] == codes
    assert {each["pointer"] for each in warnings} <= {"/budget/epsilon"}


def test_repeated_declaration_answers_the_same_warnings(client: httpx.Client, owner: rows.Key) -> None:
    headers = owner.headers | {"Idempotency-Key": "k"}
    body = declaration(budget={"epsilon": 10.0})
    first, second = (client.post("/v1/datasets", json=body, headers=headers).json() for _ in range(2))
    assert first == second
    assert len(first["warnings"]) == 1
    assert "warnings" not in read(client, owner, f"/v1/datasets/{first['id']}")


def test_a_frozen_account_has_nothing_remaining_in_the_list(
    house: House, api: httpx.Client, analyst: rows.Key, owner: rows.Key
) -> None:
    dataset_id = house.ready_dataset(owner, shared_with=(analyst.id,))
    assert api.post("/v1/jobs", json=job_body(dataset_id), headers=analyst.headers).status_code == 202
    with house.database.write() as tx:
        house.ledger.freeze(tx, dataset_id, Cause.RUN)
    (shown,) = read(api, analyst, "/v1/datasets")["items"]
    assert shown["remaining"]["epsilon"] == 0
