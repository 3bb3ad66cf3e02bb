"""Declarations of blocks of a series."""

from typing import Any

import httpx
import pytest

from app.datasets.facts import digest_facts
from app.datasets.models import Dataset, Series
from app.db import Database
from tests.factories import rows
from tests.factories.datasets import declaration, declared, problem

PERSON = {"name": "person", "type": "integer", "lower": 0, "upper": 1000}
UNIT = {"kind": "column", "column": "person", "max_rows": 3}


def block(**changes: Any) -> dict[str, Any]:
    body = declaration(series="visits", privacy_unit=UNIT)
    return body | {"columns": [PERSON, *body["columns"]]} | changes


def test_blocks_show_their_series(client: httpx.Client, owner: rows.Key, analyst: rows.Key) -> None:
    first, second = (declared(client, owner, **block(shared_with=[analyst.id])) for _ in range(2))
    assert first["series"] == second["series"] == "visits"
    assert (first["population"], second["population"]) == (first["id"], second["id"])
    seen = client.get(f"/v1/datasets/{first['id']}", headers=analyst.headers).json()
    assert seen["series"] == "visits"
    assert "series" not in declared(client, owner)


@pytest.mark.parametrize(
    ("changes", "pointer", "words"),
    [
        ({"sensitivity": "public", "budget": None}, "/series", "public"),
        ({"privacy_unit": {"kind": "row"}}, "/series", "kind 'column'"),
        ({"population": "patients"}, "/population", "separate populations"),
        ({"series": ""}, "/series", ""),
        ({"series": "a" * 201}, "/series", ""),
        ({"series": "a\x07b"}, "/series", "printable"),
        ({"series": 7}, "/series", ""),
    ],
)
def test_wrong_blocks_are_refused_at_their_member(
    client: httpx.Client, owner: rows.Key, changes: dict[str, Any], pointer: str, words: str
) -> None:
    response = client.post("/v1/datasets", json=block(**changes), headers=owner.headers)
    fault = problem(response, 422, "invalid_request")["errors"][0]
    assert fault["pointer"] == pointer
    assert words in fault["message"]


@pytest.mark.parametrize(
    "person", [PERSON | {"upper": 2000}, PERSON | {"name": "patient"}, PERSON | {"type": "real"}, "categorical"]
)
def test_a_block_with_another_unit_is_refused(
    client: httpx.Client, database: Database, owner: rows.Key, person: Any
) -> None:
    """Otherwise one person could have two values, and count twice (W5)."""
    if person == "categorical":
        person = {"name": "person", "type": "categorical", "categories": ["1", "2"]}
    declared(client, owner, **block())
    body = block(privacy_unit=UNIT | {"column": person["name"]})
    body["columns"][0] = person
    fault = problem(client.post("/v1/datasets", json=body, headers=owner.headers), 422, "invalid_request")["errors"][0]
    assert fault["pointer"] == "/privacy_unit/column"
    declared(client, owner, **block(privacy_unit=UNIT | {"max_rows": 1}, slots=7))  # this may differ
    declared(client, owner, **(body | {"series": "other"}))


def test_series_of_two_owners_are_separate(client: httpx.Client, database: Database, owner: rows.Key) -> None:
    with database.write() as tx:
        other = rows.api_key(tx, "owner")
    declared(client, owner, **block())
    person = PERSON | {"upper": 5}
    body = block()
    body["columns"][0] = person
    declared(client, other, **body)
    with database.read() as session:
        assert {row.owner_id for row in session.query(Series)} == {owner.id, other.id}


def test_the_series_is_a_declared_fact(client: httpx.Client, database: Database, owner: rows.Key) -> None:
    """W11: a block that is taken out of its series in the database has another digest."""
    dataset_id = declared(client, owner, **block())["id"]
    with database.write() as tx:
        dataset = tx.get_one(Dataset, dataset_id)
        before, dataset.series = digest_facts(dataset), None
        assert digest_facts(dataset) != before
