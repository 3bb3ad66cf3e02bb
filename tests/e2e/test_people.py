"""The main job, end to end, for a privacy unit of several rows."""

import csv
import io
from typing import Any

import httpx
import numpy as np
import pytest

from tests.e2e.house import COLUMNS, House, job_body, ready_dataset, until, wait_for_job

pytestmark = pytest.mark.process

PEOPLE = 600
PERSON: dict[str, Any] = {"name": "person", "type": "integer", "lower": 0, "upper": 10**9}
UNIT = {"kind": "column", "column": "person", "max_rows": 4}
DECLARED: dict[str, Any] = {"columns": [PERSON, *COLUMNS], "privacy_unit": UNIT, "slots": 700}


def visits(people: int, seed: int = 0) -> bytes:
    """Up to nine rows a person, in random order, with differently padded ids."""
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
    job = wait_for_job(owner, owner.post("/v1/jobs", json=job_body(dataset)).json()["id"])
    assert job["status"] == "succeeded", job
    statement: dict[str, Any] = owner.get(f"/v1/releases/{job['release_id']}/certificate").json()["statement"]
    return statement


def test_certificate_states_the_privacy_unit(certificate: dict[str, Any]) -> None:
    assert (certificate["unit"], certificate["slots"]) == (UNIT, 700)
    assert "summed over its rows" in certificate["clipping"]


def test_budget_and_cost_count_people(owner: httpx.Client, dataset: str, certificate: dict[str, Any]) -> None:
    """The cost does not depend on the rows of a person: it equals that of a table of single rows."""
    budget = owner.get(f"/v1/datasets/{dataset}/budget").json()
    assert (budget["unit"], budget["slots"], budget["relation"]) == ("column", 700, "zero_out")
    assert budget["spent"]["epsilon"] == pytest.approx(certificate["privacy"]["epsilon"])
    alone = ready_dataset(owner, slots=2000)
    quotes = [owner.post("/v1/quotes", json=job_body(each)).json()["cost"] for each in (dataset, alone)]
    assert quotes[0] == quotes[1]


def test_model_of_the_persons_column_is_refused(owner: httpx.Client, dataset: str) -> None:
    for features, target in ((["person", "age"], "sick"), (["age"], "person")):
        model = {"family": "logistic-regression", "features": features, "target": target}
        refused = owner.post("/v1/quotes", json=job_body(dataset, model=model))
        assert (refused.status_code, refused.json()["code"]) == (422, "invalid_request")


def test_file_of_more_people_than_slots_is_rejected(owner: httpx.Client, dataset: str) -> None:
    """The dataset stays ready with its last content."""
    path = f"/v1/datasets/{dataset}"
    version = owner.get(path).json()["content"]["version"]
    headers = {"Content-Type": "text/csv"}
    assert owner.put(f"{path}/content", content=visits(701), headers=headers).status_code == 202
    content = until(lambda: (found := owner.get(path).json())["content"]["status"] != "received" and found, 40)
    assert content["status"] == "ready"
    assert content["content"] == {"version": version + 1, "status": "rejected", "rejection": "too_many_units"}


def test_people_and_rows_share_no_account(house: House, owner: httpx.Client) -> None:
    """An account has one kind of privacy unit."""
    created = owner.post("/v1/datasets", json={"name": "a", "sensitivity": "private", "population": "visits"} | DECLARED
                         | {"budget": {"epsilon": 1.0, "delta": 1e-6}})  # fmt: skip
    assert created.status_code == 201, created.text
    body = {"name": "b", "sensitivity": "private", "population": "visits", "columns": COLUMNS, "slots": 700}
    refused = owner.post(
        "/v1/datasets", json=body | {"privacy_unit": {"kind": "row"}, "budget": {"epsilon": 1.0, "delta": 1e-6}}
    )
    assert (refused.status_code, refused.json()["code"]) == (409, "state_conflict")
