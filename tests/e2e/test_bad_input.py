"""Bad input, end to end: a stable error code, and no change of state."""

import base64
import hashlib
import io
import json
from typing import Any

import httpx
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.e2e.house import House, declaration, job_body, ready_dataset, table, until, wait_for_job

pytestmark = pytest.mark.process

CSV = {"Content-Type": "text/csv"}


@pytest.fixture(scope="module")
def dataset(owner: httpx.Client) -> str:
    return ready_dataset(owner, population="bad-input")


def new_dataset(owner: httpx.Client, **changes: Any) -> str:
    return str(owner.post("/v1/datasets", json=declaration(**changes)).json()["id"])


def upload_rejected(owner: httpx.Client, body: bytes, media_type: str = "text/csv", **changes: Any) -> str:
    name = new_dataset(owner, **changes)
    sent = owner.put(f"/v1/datasets/{name}/content", content=body, headers={"Content-Type": media_type})
    assert sent.status_code == 202, sent.text

    def probe() -> dict[str, Any] | None:
        answer: dict[str, Any] = owner.get(f"/v1/datasets/{name}").json()
        return answer if answer["status"] in {"ready", "rejected"} else None

    answer = until(probe, 30)
    assert answer["status"] == "rejected"
    return str(answer["content"]["rejection"])


def parquet() -> bytes:
    sink = io.BytesIO()
    columns = {"age": [30, 40], "dose": [0.5, 1.5], "group": ["a", "b"], "sick": [True, False]}
    pq.write_table(pa.table(columns), sink)
    return sink.getvalue()


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (b"age,dose,group\n1,2,a\n", "missing_column"),
        (b"age,dose,group,sick,salary\n1,2,a,0,5\n", "unknown_column"),
        (b"", "empty"),
        (table(2100), "too_many_units"),
    ],
)
def test_faulty_file_is_rejected_with_its_reason(owner: httpx.Client, body: bytes, reason: str) -> None:
    assert upload_rejected(owner, body) == reason


def test_truncated_parquet_file_is_malformed(owner: httpx.Client) -> None:
    assert upload_rejected(owner, parquet()[:-20], "application/vnd.apache.parquet") == "malformed"


def test_faulty_rows_neither_reject_the_file_nor_are_counted(owner: httpx.Client) -> None:
    lines = [b"age,dose,group,sick", b"1,2,a", b"30,0.5,a,1,9,9", b"nan,inf,zz,7", b"1e999,-99,b,true", b"x,,,", b",,,"]
    bare = ready_dataset(owner, b"\n".join([*lines, b"40,1.0,c,0"]), population="ragged")
    clean = ready_dataset(owner, b"\n".join([lines[0]] + [b"40,1.0,c,0"] * 7), population="clean")
    first, second = (owner.get(f"/v1/datasets/{name}").json() for name in (bare, clean))
    moments = {"id", "population", "created_at", "content_received_at", "content_ended_at"}
    assert {name: value for name, value in first.items() if name not in moments} == {
        name: value for name, value in second.items() if name not in moments
    }


def test_wrong_media_type_is_refused(owner: httpx.Client) -> None:
    name = new_dataset(owner)
    answer = owner.put(f"/v1/datasets/{name}/content", content=b"{}", headers={"Content-Type": "application/json"})
    assert (answer.status_code, answer.json()["code"]) == (415, "unsupported_media_type")
    coded = owner.put(f"/v1/datasets/{name}/content", content=b"x", headers=CSV | {"Content-Encoding": "gzip"})
    assert (coded.status_code, coded.json()["code"]) == (415, "unsupported_media_type")
    assert owner.get(f"/v1/datasets/{name}").json()["status"] == "created"


def test_upload_with_a_wrong_digest_is_not_stored(owner: httpx.Client, house: House) -> None:
    name = new_dataset(owner)
    digest = base64.b64encode(hashlib.sha256(b"other").digest()).decode()
    before = sorted(path for path in (house.data).rglob("*") if path.is_file() and "broker" not in str(path))
    answer = owner.put(
        f"/v1/datasets/{name}/content", content=table(100), headers=CSV | {"Content-Digest": f"sha-256=:{digest}:"}
    )
    assert (answer.status_code, answer.json()["code"]) == (422, "digest_mismatch")
    assert owner.get(f"/v1/datasets/{name}").json()["status"] == "created"
    after = sorted(path for path in (house.data).rglob("*") if path.is_file() and "broker" not in str(path))
    assert [path for path in after if path not in before and "sqlite" not in path.name] == []


def test_identical_bytes_of_another_population_are_refused(owner: httpx.Client) -> None:
    content = table(321)
    ready_dataset(owner, content, population="original")
    assert upload_rejected(owner, content, population="copy") == "duplicate_content"


@pytest.mark.parametrize(
    "change",
    [
        {"method": "no-such-method"},
        {"model": {"family": "no-such-model", "features": ["age"], "target": "sick"}},
        {"model": {"family": "logistic-regression", "features": ["salary"], "target": "sick"}},
        {"model": {"family": "logistic-regression", "features": ["age", "age"], "target": "sick"}},
        {"model": {"family": "logistic-regression", "features": ["age", "sick"], "target": "sick"}},
        {"model": {"family": "logistic-regression", "features": ["age"], "target": "dose"}},
        {"privacy": {"epsilon": 0}},
        {"privacy": {"epsilon": -1}},
        {"privacy": {"epsilon": "inf"}},
        {"privacy": {"epsilon": True}},
        {"privacy": {"epsilon": 1e6}},
        {"privacy": {}},
        {"privacy": {"noise_multiplier": 2.0, "sampling_rate": 1.5, "iterations": 5}, "parameters": {}},
        {"privacy": {"noise_multiplier": 2.0, "sampling_rate": 0.5, "iterations": 0}, "parameters": {}},
        {"privacy": {"noise_multiplier": 0.0, "sampling_rate": 0.5, "iterations": 5}, "parameters": {}},
        {"privacy": {"noise_multiplier": 2.0, "sampling_rate": 0.5, "iterations": 5}, "parameters": {"iterations": 5}},
        {"size": 0},
        {"size": -3},
        {"size": 2.5},
        {"parameters": {"iterations": 0}},
        {"parameters": {"iterations": 10**9}},
        {"parameters": {"sampling_rate": 1.5}},
        {"parameters": {"sampling_rate": 0}},
        {"parameters": {"seed": 1}},
        {"seed": 1},
    ],
    ids=lambda change: json.dumps(change)[:60],
)
def test_invalid_job_is_refused_and_changes_no_balance(
    owner: httpx.Client, dataset: str, change: dict[str, Any]
) -> None:
    before = owner.get(f"/v1/datasets/{dataset}/budget").json()
    for path in ("/v1/quotes", "/v1/jobs"):
        answer = owner.post(path, json=job_body(dataset) | change)
        assert (answer.status_code, answer.json()["code"]) == (422, "invalid_request"), answer.text
        assert answer.headers["content-type"] == "application/problem+json"
        assert all(error.keys() >= {"pointer", "message"} for error in answer.json()["errors"])
        assert "salary" not in answer.text
    assert owner.get(f"/v1/datasets/{dataset}/budget").json() == before


@pytest.mark.parametrize("number", ["1e400", "NaN", "Infinity", "-Infinity", "1" * 5000])
def test_numbers_outside_of_json_are_refused(owner: httpx.Client, dataset: str, number: str) -> None:
    text = json.dumps(job_body(dataset, privacy={"epsilon": 7})).replace("7}", f"{number}}}")
    answer = owner.post("/v1/jobs", content=text, headers={"Content-Type": "application/json"})
    assert (answer.status_code, answer.json()["code"]) == (422, "invalid_request")


@pytest.mark.parametrize(
    "change",
    [
        {"budget": {"epsilon": 1.0, "delta": 0.01}},
        {"budget": {"epsilon": 0.0}},
        {"budget": {"epsilon": "inf"}},
        {"slots": 0},
        {"columns": []},
        {"columns": [{"name": "weight of it", "type": "real", "lower": 0, "upper": 1}]},
        {"columns": [{"name": "a", "type": "real", "lower": 1, "upper": 0}]},
        {"columns": [{"name": "a", "type": "categorical", "categories": ["x", "x"]}]},
        {"privacy_unit": {"kind": "column", "column": "dose", "max_rows": 3}},
    ],
    ids=lambda change: json.dumps(change)[:60],
)
def test_invalid_declaration_is_refused(owner: httpx.Client, change: dict[str, Any]) -> None:
    before = owner.get("/v1/datasets").json()
    answer = owner.post("/v1/datasets", json=declaration() | change)
    assert (answer.status_code, answer.json()["code"]) == (422, "invalid_request"), answer.text
    assert owner.get("/v1/datasets").json() == before


def test_job_on_a_dataset_without_content_is_a_state_conflict(owner: httpx.Client) -> None:
    answer = owner.post("/v1/jobs", json=job_body(new_dataset(owner)))
    assert (answer.status_code, answer.json()["code"]) == (409, "state_conflict")


def test_method_without_privacy_is_for_public_data_only(owner: httpx.Client, dataset: str) -> None:
    body = job_body(dataset, method="uniform", parameters={})
    body.pop("privacy")
    for path in ("/v1/quotes", "/v1/jobs"):
        answer = owner.post(path, json=body)
        assert (answer.status_code, answer.json()["code"]) == (422, "method_not_allowed_on_private_data"), answer.text
    public = ready_dataset(owner, sensitivity="public", budget=None, population="published")
    sent = owner.post("/v1/jobs", json=body | {"dataset_id": public})
    assert sent.status_code == 202, sent.text
    job = wait_for_job(owner, sent.json()["id"])
    assert (job["status"], job["cost"]) == ("succeeded", None)


def test_another_owners_dataset_is_not_found(house: House, dataset: str) -> None:
    with house.client(house.new_key("owner")) as stranger:
        answer = stranger.post("/v1/jobs", json=job_body(dataset))
        assert (answer.status_code, answer.json()["code"]) == (404, "not_found")
