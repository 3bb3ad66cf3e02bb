"""The main job, end to end: upload, quote, job, public release, ledger, deletion."""

import base64
import hashlib
import itertools
from typing import Any

import httpx
import pytest
import rfc8785
from nacl.signing import VerifyKey

from tests.e2e.house import COLUMNS, House, job_body, ready_dataset, wait_for_job

pytestmark = pytest.mark.process


@pytest.fixture(scope="module")
def dataset(owner: httpx.Client) -> str:
    return ready_dataset(owner)


@pytest.fixture(scope="module")
def job(owner: httpx.Client, dataset: str) -> dict[str, Any]:
    sent = owner.post("/v1/jobs", json=job_body(dataset))
    assert sent.status_code == 202, sent.text
    assert sent.headers["Location"].endswith(sent.json()["id"])
    return wait_for_job(owner, sent.json()["id"])


def test_job_succeeds_at_the_requested_cost(job: dict[str, Any]) -> None:
    assert job["status"] == "succeeded"
    assert 0.29 < job["cost"]["epsilon"] <= 0.3


def test_release_is_public_and_has_one_row_for_each_pseudopoint(anyone: httpx.Client, job: dict[str, Any]) -> None:
    answer = anyone.get(f"/v1/releases/{job['release_id']}/points", params={"format": "json"})
    points = answer.json()
    assert len(points["rows"]) == 8
    assert set(points["columns"]) == {"intercept", "age", "dose", "group=b", "group=c", "y", "weight"}
    weight = points["columns"].index("weight")
    assert all(row[weight] >= 0 for row in points["rows"])


def test_certificate_is_signed_and_has_the_digests(anyone: httpx.Client, job: dict[str, Any]) -> None:
    certificate = anyone.get(f"/v1/releases/{job['release_id']}/certificate").json()
    keys = {key["key_id"]: key["public_key"] for key in anyone.get("/v1/keys").json()["items"]}
    public = VerifyKey(base64.b64decode(keys[certificate["key_id"]]))
    public.verify(rfc8785.dumps(certificate["statement"]), base64.b64decode(certificate["signature"]))
    digests = certificate["statement"]["digests"]
    assert len(digests) == 7
    for name, digest in digests.items():
        part, kind = ("belief", name.removeprefix("belief.")) if name.startswith("belief.") else ("points", name)
        content = anyone.get(f"/v1/releases/{job['release_id']}/{part}", params={"format": kind}).content
        assert digest == f"sha-256=:{base64.b64encode(hashlib.sha256(content).digest()).decode()}:"


def test_ledger_has_one_charge(owner: httpx.Client, dataset: str, job: dict[str, Any]) -> None:
    entries = owner.get(f"/v1/datasets/{dataset}/ledger").json()["items"]
    mine = [entry["kind"] for entry in reversed(entries) if entry["job_id"] == job["id"]]
    assert mine == ["reserved", "opened", "settled"]
    for newer, older in itertools.pairwise(entries):
        assert newer["previous_hash"] == older["entry_hash"]
    budget = owner.get(f"/v1/datasets/{dataset}/budget").json()
    assert budget["spent"]["epsilon"] == pytest.approx(entries[0]["epsilon_after"])
    assert budget["reserved"]["epsilon"] == 0


def test_dataset_is_not_found_by_another_owner(house: House, dataset: str) -> None:
    with house.client(house.new_key("owner")) as stranger:
        for path in ("", "/budget", "/ledger"):
            answer = stranger.get(f"/v1/datasets/{dataset}{path}")
            assert (answer.status_code, answer.json()["code"]) == (404, "not_found")


def test_analyst_of_a_shared_dataset_may_quote_but_not_read_the_ledger(
    house: House, owner: httpx.Client, dataset: str
) -> None:
    with house.client(house.new_key("analyst")) as analyst:
        mine = analyst.get("/v1/me").json()["id"]
        assert analyst.post("/v1/quotes", json=job_body(dataset)).status_code == 404
        owner.patch(f"/v1/datasets/{dataset}", json={"shared_with": [mine]}).raise_for_status()
        quote = analyst.post("/v1/quotes", json=job_body(dataset)).json()
        assert quote["affordable"] is True
        assert quote["size"] == {"requested": 8, "smallest_exact": 6}
        assert analyst.get(f"/v1/datasets/{dataset}/budget").status_code == 200
        assert analyst.get(f"/v1/datasets/{dataset}/ledger").status_code == 403
        assert analyst.get(f"/v1/datasets/{dataset}").json()["content"]["rejection"] is None


def test_job_over_the_limit_is_refused_and_changes_no_balance(
    owner: httpx.Client, dataset: str, job: dict[str, Any]
) -> None:
    before = owner.get(f"/v1/datasets/{dataset}/budget").json()
    refused = owner.post("/v1/jobs", json=job_body(dataset, privacy={"epsilon": 5.0}))
    assert (refused.status_code, refused.json()["code"]) == (409, "budget_exceeded")
    assert {"requested", "epsilon_after", "limit", "remaining"} <= refused.json().keys()
    after = owner.get(f"/v1/datasets/{dataset}/budget").json()
    assert after.pop("jobs")["refused"] == before.pop("jobs")["refused"] + 1
    assert after == before


def test_deletion_ends_uploads_but_not_the_ledger(owner: httpx.Client) -> None:
    name = ready_dataset(owner, population="to-be-deleted")
    receipt = owner.delete(f"/v1/datasets/{name}")
    assert receipt.status_code == 200
    assert {"statement", "signature", "key_id"} <= receipt.json().keys()
    assert owner.get(f"/v1/datasets/{name}").json()["status"] == "deleted"
    kinds = [entry["kind"] for entry in owner.get(f"/v1/datasets/{name}/ledger").json()["items"]]
    assert kinds[0] == "dataset_deleted"
    refused = owner.post("/v1/jobs", json=job_body(name))
    assert (refused.status_code, refused.json()["code"]) == (409, "state_conflict")


def test_repeated_idempotency_key_makes_one_job(owner: httpx.Client, dataset: str) -> None:
    headers = {"Idempotency-Key": "once-only"}
    body = job_body(dataset, privacy={"epsilon": 0.1})
    first, second = (owner.post("/v1/jobs", json=body, headers=headers) for _ in range(2))
    assert first.json()["id"] == second.json()["id"]
    other = owner.post("/v1/jobs", json=body | {"size": 9}, headers=headers)
    assert (other.status_code, other.json()["code"]) == (409, "idempotency_conflict")
    assert wait_for_job(owner, first.json()["id"])["status"] == "succeeded"


def test_progress_is_sent_as_server_sent_events(owner: httpx.Client, dataset: str) -> None:
    job = owner.post("/v1/jobs", json=job_body(dataset, privacy={"epsilon": 0.1})).json()["id"]
    with owner.stream("GET", f"/v1/jobs/{job}/events") as answer:
        assert answer.headers["content-type"].startswith("text/event-stream")
        lines = list(answer.iter_lines())
    assert "event: end" in lines
    assert any(line.startswith("id:") for line in lines)


def test_schema_is_returned_as_declared(owner: httpx.Client, dataset: str) -> None:
    columns = owner.get(f"/v1/datasets/{dataset}").json()["columns"]
    assert [column["name"] for column in columns] == [column["name"] for column in COLUMNS]
