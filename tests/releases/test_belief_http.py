"""Beliefs over HTTP are served like points: certified, immutable, conditional, and in parts."""

import base64
import hashlib
import io
from typing import Any

import httpx
import numpy as np
import pytest
from sqlalchemy import select

from app.releases.http.formats import MEDIA_TYPES, STORED_NAMES, Part
from app.releases.models import Release
from tests.factories import rows
from tests.factories.datasets import problem
from tests.factories.worker import House, job_body

pytestmark = pytest.mark.long

FORMATS = list(STORED_NAMES[Part.BELIEF])
NAMES = ["age", "hours", "sex=Male", "intercept"]


def _release(house: House, api: httpx.Client, owner: rows.Key, dataset: dict[str, Any], **job: Any) -> str:
    body = job_body(house.ready_dataset(owner, **dataset), **job)
    job_id = api.post("/v1/jobs", json=body, headers=owner.headers).json()["id"]
    house.run(job_id)
    return str(house.read(job_id).release_id)


@pytest.fixture
def release_id(house: House, api: httpx.Client, owner: rows.Key) -> str:
    return _release(house, api, owner, {})


def _digest(content: bytes) -> str:
    return f"sha-256=:{base64.b64encode(hashlib.sha256(content).digest()).decode()}:"


def test_noise_of_points_is_stated_in_the_belief(api: httpx.Client, release_id: str) -> None:
    release = api.get(f"/v1/releases/{release_id}").json()
    assert release["links"]["belief"] == f"/v1/releases/{release_id}/belief"
    document = api.get(release["links"]["belief"]).json()
    (noise,) = document["blocks"]
    assert (noise["name"], noise["family"], noise["arrays"]["names"]) == ("noise", "normal", NAMES)
    covariance = np.array(noise["arrays"]["covariance"])
    assert covariance.shape == (4, 4)
    assert np.linalg.eigvalsh(covariance)[0] > 0


def test_reliability_is_stated_and_certified(api: httpx.Client, release_id: str) -> None:
    """The mechanism of this job is so noisy that nothing can be used."""
    release = api.get(f"/v1/releases/{release_id}").json()
    assert release["reliability"]["grade"] == "not-usable"
    assert {"code", "words"} == set(release["reliability"]["reasons"][0])
    assert "noise-dominates" in [reason["code"] for reason in release["reliability"]["reasons"]]
    assert release["diagnostics"]["trusted"] is False
    assert release["certificate"]["statement"]["reliability"] == release["reliability"]


@pytest.mark.parametrize("covariance", ["covariance", "variance"])
def test_a_stated_posterior_is_in_the_belief_too(
    house: House, api: httpx.Client, owner: rows.Key, covariance: str
) -> None:
    chosen = {"covariance": {"covariance": "fisher", "variance": "mean-field"}[covariance]}
    release_id = _release(house, api, owner, {}, method="dp-vi", parameters=chosen)
    stated = api.get(f"/v1/releases/{release_id}").json()["posterior"]
    posterior, noise = api.get(f"/v1/releases/{release_id}/belief").json()["blocks"]
    assert (posterior["name"], noise["name"]) == ("posterior", "noise")
    assert posterior["arrays"]["names"] == stated["parameters"] == noise["arrays"]["names"]
    assert posterior["arrays"]["mean"] == stated["mean"]
    assert posterior["arrays"][covariance] == stated[covariance]
    assert noise["arrays"]["mean"] == [0.0] * 4


@pytest.mark.parametrize("name", FORMATS)
def test_a_belief_has_the_certified_digest_in_every_representation(
    api: httpx.Client, release_id: str, name: str
) -> None:
    path = f"/v1/releases/{release_id}/belief"
    digests = api.get(f"/v1/releases/{release_id}/certificate").json()["statement"]["digests"]
    assert set(digests) == {*MEDIA_TYPES, *STORED_NAMES[Part.BELIEF].values()}
    by_format, by_accept = api.get(path, params={"format": name}), api.get(path, headers={"Accept": MEDIA_TYPES[name]})
    assert by_format.content == by_accept.content
    assert by_format.headers["content-type"] == MEDIA_TYPES[name]
    assert by_format.headers["repr-digest"] == digests[f"belief.{name}"] == _digest(by_format.content)
    assert by_format.headers["etag"].strip('"') == hashlib.sha256(by_format.content).hexdigest()
    assert by_format.headers["cache-control"] == "public, max-age=31536000, immutable"
    assert by_format.headers["access-control-allow-origin"] == "*"
    assert by_format.headers["content-disposition"] == f'attachment; filename="{release_id}.belief.{name}"'


def test_npz_has_each_array_under_its_block(api: httpx.Client, release_id: str) -> None:
    with np.load(io.BytesIO(api.get(f"/v1/releases/{release_id}/belief?format=npz").content)) as arrays:
        assert sorted(arrays) == ["blocks", "families", "noise.covariance", "noise.mean", "noise.names"]
        assert list(arrays["noise.names"]) == NAMES


def test_conditional_requests_and_ranges_are_answered(api: httpx.Client, release_id: str) -> None:
    path = f"/v1/releases/{release_id}/belief"
    whole = api.get(path)
    etag = whole.headers["etag"]
    head = api.head(path)
    assert (head.status_code, head.content, head.headers["etag"]) == (200, b"", etag)
    assert head.headers["content-length"] == str(len(whole.content))
    assert api.get(path, headers={"If-None-Match": etag}).status_code == 304
    problem(api.get(path, headers={"If-Match": '"other"'}), 412, "precondition_failed")
    part = api.get(path, headers={"Range": "bytes=2-9", "If-Range": etag})
    assert (part.status_code, part.content) == (206, whole.content[2:10])
    problem(api.get(path, headers={"Range": "bytes=999999999-"}), 416, "range_not_satisfiable")


def test_a_format_that_a_belief_does_not_have_is_refused(api: httpx.Client, release_id: str) -> None:
    path = f"/v1/releases/{release_id}/belief"
    api.get(path)  # caches the release
    problem(api.get(path, params={"format": "csv"}), 422, "invalid_request")
    problem(api.get(path, headers={"Accept": "text/csv"}), 406, "not_acceptable")


def test_a_release_of_an_earlier_version_has_no_belief(house: House, api: httpx.Client, release_id: str) -> None:
    """It answers without the new members, and nothing is computed for it afterwards."""
    with house.database.write() as tx:
        row = tx.scalars(select(Release)).one()
        row.representations = {name: row.representations[name] for name in MEDIA_TYPES}
        row.body = {name: value for name, value in row.body.items() if name != "reliability"}
    release = api.get(f"/v1/releases/{release_id}").json()
    assert release["reliability"] is None
    assert set(release["links"]) == {"self", "points", "certificate"}
    assert api.get(release["links"]["points"]).status_code == 200
    for request in (api.get, api.head):
        answer = request(f"/v1/releases/{release_id}/belief")
        assert answer.status_code == 404
    problem(api.get(f"/v1/releases/{release_id}/belief"), 404, "not_found")


def test_a_belief_of_a_private_release_needs_access(
    house: House, api: httpx.Client, owner: rows.Key, analyst: rows.Key
) -> None:
    """W3: without access, it is answered like a release that does not exist."""
    release_id = _release(house, api, owner, {"releases_public": False})
    path = f"/v1/releases/{release_id}/belief"
    for headers in ({}, analyst.headers):
        problem(api.get(path, headers=headers), 404, "not_found")
    answer = api.get(path, headers=owner.headers)
    assert (answer.status_code, answer.headers["cache-control"]) == (200, "private, no-cache")
    assert "access-control-allow-origin" not in answer.headers


def test_a_public_table_has_no_noise(house: House, api: httpx.Client, owner: rows.Key) -> None:
    body: dict[str, Any] = {"method": "omp", "size": 200, "parameters": {}, "privacy": None}
    release_id = _release(house, api, owner, {"sensitivity": "public"}, **body)
    release = api.get(f"/v1/releases/{release_id}").json()
    (noise,) = api.get(release["links"]["belief"]).json()["blocks"]
    assert not np.any(noise["arrays"]["covariance"])
    assert release["reliability"] == {"grade": "calibrated", "reasons": []}
    assert release["diagnostics"]["trusted"] is True
