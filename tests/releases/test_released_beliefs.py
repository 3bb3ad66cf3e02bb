"""The method vips over HTTP: releases of beliefs, with points or without."""

import io
from typing import Any

import httpx
import numpy as np
import pytest

from tests.factories import rows
from tests.factories.datasets import problem
from tests.factories.worker import House, job_body

GAUSSIAN = {"family": "gaussian", "features": ["age", "hours"], "target": None, "prior": {"scale": 1.0}}
LINEAR = {"family": "linear-regression", "features": ["age"], "target": "hours", "prior": {"scale": 1.0}}
LOGISTIC = {"family": "logistic-regression", "features": ["age"], "target": "income_gt_50k", "prior": {"scale": 1.0}}


@pytest.fixture
def dataset_id(house: House, owner: rows.Key) -> str:
    return house.ready_dataset(owner)


def body_of(dataset_id: str, model: dict[str, Any], **changes: Any) -> dict[str, Any]:
    return job_body(dataset_id, model=model, method="vips", privacy={"epsilon": 1.0}, parameters={}) | changes


def finish(house: House, api: httpx.Client, owner: rows.Key, body: dict[str, Any]) -> dict[str, Any]:
    job = api.post("/v1/jobs", json=body, headers=owner.headers)
    assert job.status_code == 202, job.text
    house.run(job.json()["id"])
    ended = api.get(f"/v1/jobs/{job.json()['id']}", headers=owner.headers).json()
    assert ended["status"] == "succeeded", ended
    release: dict[str, Any] = api.get(f"/v1/releases/{ended['release_id']}").json()
    return release


def test_a_belief_without_points_is_released(house: House, api: httpx.Client, owner: rows.Key, dataset_id: str) -> None:
    body = body_of(dataset_id, GAUSSIAN)
    quote = api.post("/v1/quotes", json=body, headers=owner.headers).json()
    assert quote["affordable"] is True
    release = finish(house, api, owner, body)
    path = f"/v1/releases/{release['id']}"
    assert release["size"] == 0
    assert "points" not in release["links"]
    assert [column["name"] for column in release["design"]] == ["age", "hours"]
    assert set(release["certificate"]["statement"]["digests"]) == {"belief.json", "belief.npz", "belief.parquet"}
    problem(api.get(f"{path}/points"), 404, "not_found")
    posterior, noise = api.get(f"{path}/belief").json()["blocks"]
    assert (posterior["family"], noise["family"]) == ("normal-inverse-wishart", "normal")
    with np.load(io.BytesIO(api.get(f"{path}/belief?format=npz").content)) as arrays:
        assert arrays["posterior.scale"].shape == (2, 2)
        assert arrays["posterior.degrees"].shape == (1,)
    page = api.get(f"/dashboard/releases/{release['id']}")
    assert page.status_code == 200
    assert "normal-inverse-wishart" in page.text


@pytest.mark.parametrize("model", [LINEAR, LOGISTIC], ids=lambda model: str(model["family"]))
def test_a_normal_belief_has_points(
    house: House, api: httpx.Client, owner: rows.Key, dataset_id: str, model: dict[str, Any]
) -> None:
    release = finish(house, api, owner, body_of(dataset_id, model))
    points = api.get(f"{release['links']['points']}?format=json").json()
    assert len(points["rows"]) == release["size"] == 6
    names = [block["name"] for block in api.get(release["links"]["belief"]).json()["blocks"]]
    assert names == ["posterior", *(["conjugate"] if model is LINEAR else []), "noise"]
    assert "posterior" in release


@pytest.mark.parametrize(
    ("changes", "pointer"),
    [
        ({"method": "dp-psvi"}, "/method"),
        ({"model": {**LOGISTIC, "family": "probit-regression"}}, "/method"),
        ({"parameters": {"iterations": 3}}, "/parameters"),
        ({"parameters": {"forgetting": 2}}, "/parameters/forgetting"),
        ({"model": {**GAUSSIAN, "features": ["sex"]}}, "/model/features/0"),
        ({"model": {**GAUSSIAN, "target": "age"}}, "/model/target"),
    ],
)
def test_a_fault_of_the_request_has_a_pointer_and_costs_nothing(
    api: httpx.Client, owner: rows.Key, dataset_id: str, changes: dict[str, Any], pointer: str
) -> None:
    before = api.get(f"/v1/datasets/{dataset_id}/budget", headers=owner.headers).json()["spent"]
    refusal = problem(
        api.post("/v1/jobs", json=body_of(dataset_id, GAUSSIAN) | changes, headers=owner.headers),
        422,
        "invalid_request",
    )
    assert [fault["pointer"] for fault in refusal["errors"]] == [pointer]
    assert api.get(f"/v1/datasets/{dataset_id}/budget", headers=owner.headers).json()["spent"] == before
