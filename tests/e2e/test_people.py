"""The main job where the privacy unit is a person of several rows, from the outside."""

import csv
import io
from typing import Any

import httpx
import numpy as np
import pytest

from tests.e2e.house import COLUMNS, House, ended, job_body, ready_dataset, until

pytestmark = pytest.mark.process

PEOPLE = 600
PERSON: dict[str, Any] = {"name": "person", "type": "integer", "lower": 0, "upper": 10**9}
UNIT = {"kind": "column", "column": "person", "max_rows": 4}
DECLARED: dict[str, Any] = {"columns": [PERSON, *COLUMNS], "privacy_unit": UNIT, "slots": 700}


def visits(people: int, seed: int = 0) -> bytes:
    """Up to nine rows of each of so many people, in any order, their names padded in several ways."""
    rng = np.random.default_rng(seed)
    rows = [
        (f"{person:0{rng.integers(1, 9)}}", rng.integers(18, 90), round(rng.normal(), 4), "abc"[rng.integers(3)], sick)
        for person in range(people)
        for sick in rng.integers(0, 2, rng.integers(1, 10))
    ]
    text = io.StringIO()
    csv.writer(text).writerows(
        [[column["name"] for column in DECLARED["columns"]], *(rows[place] for place in rng.permutation(len(rows)))]
    )
    return text.getvalue().encode()


@pytest.fixture(scope="module")
def dataset(owner: httpx.Client) -> str:
    return ready_dataset(owner, visits(PEOPLE), **DECLARED)


@pytest.fixture(scope="module")
def certificate(owner: httpx.Client, dataset: str) -> dict[str, Any]:
    job = ended(owner, owner.post("/v1/jobs", json=job_body(dataset)).json()["id"])
    assert job["status"] == "succeeded", job
    statement: dict[str, Any] = owner.get(f"/v1/releases/{job['release_id']}/certificate").json()["statement"]
    return statement


def test_the_certificate_says_whom_it_protects(certificate: dict[str, Any]) -> None:
    assert (certificate["unit"], certificate["slots"]) == (UNIT, 700)
    assert "summed over its rows" in certificate["clipping"]


def test_the_budget_is_that_of_people(owner: httpx.Client, dataset: str, certificate: dict[str, Any]) -> None:
    """The price follows from slots, hence people; it is what as many single rows would cost."""
    budget = owner.get(f"/v1/datasets/{dataset}/budget").json()
    assert (budget["unit"], budget["slots"], budget["relation"]) == ("column", 700, "zero_out")
    assert budget["spent"]["epsilon"] == pytest.approx(certificate["privacy"]["epsilon"])
    alone = ready_dataset(owner, slots=2000)
    quotes = [owner.post("/v1/quotes", json=job_body(each)).json()["cost"] for each in (dataset, alone)]
    assert quotes[0] == quotes[1]


def test_the_persons_column_is_never_modelled(owner: httpx.Client, dataset: str) -> None:
    for features, target in ((["person", "age"], "sick"), (["age"], "person")):
        model = {"family": "logistic-regression", "features": features, "target": target}
        refused = owner.post("/v1/quotes", json=job_body(dataset, model=model))
        assert (refused.status_code, refused.json()["code"]) == (422, "invalid_request")


def test_one_person_more_than_slots_rejects_the_file(owner: httpx.Client, dataset: str) -> None:
    """Only its owner sees it; the content in force stays in force."""
    path = f"/v1/datasets/{dataset}"
    version = owner.get(path).json()["content"]["version"]
    headers = {"Content-Type": "text/csv"}
    assert owner.put(f"{path}/content", content=visits(701), headers=headers).status_code == 202
    content = until(lambda: (found := owner.get(path).json())["content"]["status"] != "received" and found, 40)
    assert content["status"] == "ready"
    assert content["content"] == {"version": version + 1, "status": "rejected", "rejection": "too_many_units"}


def test_people_and_rows_share_no_account(house: House, owner: httpx.Client) -> None:
    """One population, one kind of unit: the account's promise is about one or the other."""
    created = owner.post("/v1/datasets", json={"name": "a", "sensitivity": "private", "population": "visits"} | DECLARED
                         | {"budget": {"epsilon": 1.0, "delta": 1e-6}})  # fmt: skip
    assert created.status_code == 201, created.text
    body = {"name": "b", "sensitivity": "private", "population": "visits", "columns": COLUMNS, "slots": 700}
    refused = owner.post(
        "/v1/datasets", json=body | {"privacy_unit": {"kind": "row"}, "budget": {"epsilon": 1.0, "delta": 1e-6}}
    )
    assert (refused.status_code, refused.json()["code"]) == (409, "state_conflict")
