"""The method dp-groups over HTTP: weights of groups, certified, cached and shown."""

import hashlib
import io
from typing import Any

import httpx
import numpy as np
import pyarrow.parquet as pq
import pytest

from app.releases.http.formats import MEDIA_TYPES, STORED_NAMES, Part
from tests.factories import rows
from tests.factories.datasets import problem
from tests.factories.worker import House, job_body
from tests.releases.test_released_beliefs import finish

LOGISTIC = {"family": "logistic-regression", "features": ["age"], "target": "income_gt_50k", "prior": {"scale": 1.0}}
NAMES = ["age", "intercept"]
FORMATS = list(STORED_NAMES[Part.GROUPS])
BELIEF = {"parameters": NAMES, "mean": [0.0, 0.0], "covariance": [[1.0, 0.2], [0.2, 1.0]]}


@pytest.fixture
def dataset_id(house: House, owner: rows.Key) -> str:
    return house.ready_dataset(owner)


def body_of(dataset_id: str, **changes: Any) -> dict[str, Any]:
    chosen = {"groups": ["sex", "income_gt_50k"], "posterior_draws": 8, "belief": BELIEF}
    asked = {"model": LOGISTIC, "method": "dp-groups", "privacy": {"epsilon": 1.0}, "parameters": chosen}
    return job_body(dataset_id, **asked) | changes


def test_groups_are_released_without_points(house: House, api: httpx.Client, owner: rows.Key, dataset_id: str) -> None:
    body = body_of(dataset_id, size=3)
    quote = api.post("/v1/quotes", json=body, headers=owner.headers).json()
    assert (quote["affordable"], quote["size"]) == (True, {"requested": 3, "smallest_exact": 1})
    release = finish(house, api, owner, body)
    assert release["size"] == 0
    assert set(release["links"]) == {"self", "certificate", "groups"}
    statement = release["certificate"]["statement"]
    assert set(statement["digests"]) == set(STORED_NAMES[Part.GROUPS].values())
    assert [query["kind"] for query in statement["queries"]] == ["group_potential_sum"]
    assert statement["iterations"] == 1
    assert "sex, income_gt_50k make 4 declared groups" in statement["clipping"]
    assert release["reliability"]["grade"] in {"centre-only", "not-usable"}
    (block,) = api.get(release["links"]["groups"]).json()["blocks"]
    arrays = block["arrays"]
    assert (block["name"], block["family"]) == ("groups", "group-weights")
    assert arrays["values"] == ["sex", "income_gt_50k"]
    assert arrays["names"][1] == "sex=Female, income_gt_50k=true"
    assert (np.shape(arrays["answers"]), np.shape(arrays["draws"])) == ((4, 8), (8, 2))
    assert np.count_nonzero(arrays["weight"]) <= 3
    for part in ("points", "belief"):
        problem(api.get(f"/v1/releases/{release['id']}/{part}"), 404, "not_found")


def test_each_representation_is_certified_and_cacheable(
    house: House, api: httpx.Client, owner: rows.Key, dataset_id: str
) -> None:
    release = finish(house, api, owner, body_of(dataset_id))
    path, digests = release["links"]["groups"], release["certificate"]["statement"]["digests"]
    for name in FORMATS:
        for _ in range(2):  # the second one is answered from the cache
            answer = api.get(path, params={"format": name})
            assert answer.headers["content-type"] == MEDIA_TYPES[name]
            assert answer.headers["repr-digest"] == digests[f"groups.{name}"]
            assert answer.headers["etag"].strip('"') == hashlib.sha256(answer.content).hexdigest()
            assert answer.headers["cache-control"] == "public, max-age=31536000, immutable"
        assert api.head(path, params={"format": name}).headers["etag"] == answer.headers["etag"]
        assert (
            api.get(path, headers={"If-None-Match": answer.headers["etag"]}, params={"format": name}).status_code == 304
        )
    problem(api.get(path, params={"format": "csv"}), 422, "invalid_request")
    stated = api.get(path).json()["blocks"][0]["arrays"]
    with np.load(io.BytesIO(api.get(path, params={"format": "npz"}).content)) as arrays:
        np.testing.assert_array_equal(arrays["groups.answers"], np.array(stated["answers"]))
        assert arrays["groups.labels"].tolist() == stated["labels"]
    table = pq.read_table(io.BytesIO(api.get(path, params={"format": "parquet"}).content)).to_pylist()
    parts = {row["array"]: row for row in table}
    assert parts["answers"]["shape"] == [4, 8]
    assert parts["labels"]["texts"] == [text for label in stated["labels"] for text in label]


def test_groups_of_a_private_release_need_access(
    house: House, api: httpx.Client, owner: rows.Key, analyst: rows.Key
) -> None:
    """W3: without access, it is answered like a release that does not exist."""
    dataset_id = house.ready_dataset(owner, releases_public=False)
    job = api.post("/v1/jobs", json=body_of(dataset_id), headers=owner.headers).json()["id"]
    house.run(job)
    path = f"/v1/releases/{house.read(job).release_id}/groups"
    assert api.get(path, headers=owner.headers).status_code == 200
    problem(api.get(path), 404, "not_found")


def test_the_page_shows_the_groups(house: House, api: httpx.Client, owner: rows.Key, dataset_id: str) -> None:
    release = finish(house, api, owner, body_of(dataset_id))
    page = api.get(f"/dashboard/releases/{release['id']}")
    assert page.status_code == 200
    for text in ("<h2>Groups</h2>", "income_gt_50k", "Female", "Agreement", "groups?format=json", "weights of groups"):
        assert text in page.text
    assert "<h2>Points</h2>" not in page.text


@pytest.mark.parametrize(
    ("changes", "pointer"),
    [
        ({"parameters": {"groups": ["age"]}}, "/parameters/groups/0"),
        ({"parameters": {}}, "/parameters/groups"),
        ({"parameters": {"groups": ["sex"], "belief": {**BELIEF, "mean": [0]}}}, "/parameters/belief/mean"),
        ({"parameters": {"groups": ["sex"], "iterations": 3}}, "/parameters"),
        ({"privacy": {"noise_multiplier": 3, "sampling_rate": 0.5, "iterations": 1}}, "/privacy/sampling_rate"),
        ({"model": {**LOGISTIC, "family": "gaussian", "features": ["age"], "target": None}}, "/method"),
    ],
)
def test_a_fault_of_the_request_has_a_pointer_and_costs_nothing(
    api: httpx.Client, owner: rows.Key, dataset_id: str, changes: dict[str, Any], pointer: str
) -> None:
    before = api.get(f"/v1/datasets/{dataset_id}/budget", headers=owner.headers).json()["spent"]
    refusal = problem(
        api.post("/v1/jobs", json=body_of(dataset_id) | changes, headers=owner.headers), 422, "invalid_request"
    )
    assert [fault["pointer"] for fault in refusal["errors"]] == [pointer]
    assert api.get(f"/v1/datasets/{dataset_id}/budget", headers=owner.headers).json()["spent"] == before
