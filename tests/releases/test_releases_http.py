"""Releases over HTTP: public, immutable and cacheable, or visible with the dataset only."""

import base64
import hashlib
import io
import json
import math
from typing import Any

import httpx
import numpy as np
import pytest
import rfc8785

from app.inference.private_zone.mechanisms import GRID_BITS
from app.privacy.discretisation import FINEST_SCALE, LEAST_FINE_SCALE
from app.releases.http.formats import MEDIA_TYPES
from app.vault.signing import verify
from tests.factories import rows
from tests.factories.datasets import problem
from tests.factories.worker import House, job_body


def released(house: House, owner: rows.Key, **fields: Any) -> str:
    job_id = house.job(house.ready_dataset(owner, **fields), owner)
    house.run(job_id)
    release_id = house.read(job_id).release_id
    assert release_id is not None
    return release_id


@pytest.fixture
def release_id(house: House, owner: rows.Key) -> str:
    return released(house, owner)


def test_anyone_reads_a_public_release(api: httpx.Client, release_id: str) -> None:
    response = api.get(f"/v1/releases/{release_id}")
    release = response.json()
    assert response.headers["cache-control"] == "public, max-age=31536000, immutable"
    assert response.headers["access-control-allow-origin"] == "*"
    assert (release["id"], release["method"], release["size"]) == (release_id, "dp-psvi", 6)
    assert release["model"] == {
        "family": "logistic-regression",
        "features": ["age", "hours", "sex"],
        "target": "income_gt_50k",
        "prior": {"scale": 1.0},
    }
    assert release["design"][0] == {
        "name": "age",
        "source": "age",
        "transform": {"kind": "affine", "type": "integer", "center": 53.5, "scale": 36.5},
    }
    assert release["design"][-1] == {"name": "intercept", "transform": {"kind": "constant", "value": 1}}
    assert release["posterior"] is None
    assert "posterior_digest" not in release["certificate"]["statement"]
    assert [api.get(link).status_code for link in release["links"].values()] == [200, 200, 200, 200]
    assert api.get(release["links"]["certificate"]).json() == release["certificate"]


def test_a_hidden_release_is_answered_like_a_missing_one(
    house: House, api: httpx.Client, owner: rows.Key, analyst: rows.Key
) -> None:
    """W3: the answer does not reveal which of them exists, and no key is requested."""
    hidden, absent = released(house, owner, releases_public=False), "rel_01jd0000000000000000000000"
    details = set()
    for headers in ({}, analyst.headers):
        for release_id in (hidden, absent):
            answer = problem(api.get(f"/v1/releases/{release_id}", headers=headers), 404, "not_found")
            details.add(answer["detail"])
    assert len(details) == 1
    assert "Public releases need no API key" in details.pop()


@pytest.mark.parametrize(("covariance", "member"), [("fisher", "covariance"), ("mean-field", "variance")])
def test_the_certificate_covers_the_posterior_of_a_method(
    house: House, api: httpx.Client, owner: rows.Key, covariance: str, member: str
) -> None:
    dataset_id = house.ready_dataset(owner)
    body = job_body(dataset_id, method="dp-vi", parameters={"covariance": covariance})
    job = api.post("/v1/jobs", json=body, headers=owner.headers).json()
    house.run(job["id"])
    release = api.get(f"/v1/releases/{house.read(job['id']).release_id}").json()
    posterior = release["posterior"]
    assert posterior["parameters"] == [column["name"] for column in release["design"]]
    assert set(posterior) == {"parameters", "mean", member}
    assert len(posterior["mean"]) == len(posterior[member]) == len(release["design"])
    digest = base64.b64encode(hashlib.sha256(rfc8785.dumps(posterior)).digest()).decode()
    assert release["certificate"]["statement"]["posterior_digest"] == f"sha-256=:{digest}:"
    assert {"trusted", "fit_kl", "noise_kl", "effective_size", "total_weight"} <= set(release["diagnostics"])
    assert len(api.get(release["links"]["points"], params={"format": "json"}).json()["rows"]) == release["size"]


def test_every_query_of_the_default_method_is_certified_and_settled(
    house: House, api: httpx.Client, owner: rows.Key
) -> None:
    """W4: the reserved, settled and certified events are the same, in order and run-length encoded."""
    dataset_id = house.ready_dataset(owner)
    body = job_body(dataset_id, method="dp-psvi-surrogate", parameters={}, privacy={"epsilon": 0.5})
    job = api.post("/v1/jobs", json=body, headers=owner.headers).json()
    house.run(job["id"])
    certificate = api.get(f"/v1/releases/{house.read(job['id']).release_id}/certificate").json()
    statement = certificate["statement"]
    ledger = api.get(f"/v1/datasets/{dataset_id}/ledger", headers=owner.headers).json()["items"]
    booked = {entry["kind"]: entry["event"] for entry in ledger if entry["job_id"] == job["id"]}
    assert booked["reserved"]["events"] == booked["settled"]["events"] == statement["events"]
    queries = statement["queries"]
    assert sum(query["count"] for query in queries) == statement["iterations"] == job["mechanism"]["iterations"]
    assert {query["kind"] for query in queries} >= {
        "mean_sum",
        "moment_sum",
        "tail_sum",
        "information_sum",
        "bounded_score_sum",
    }
    assert all(
        word in statement["clipping"] for word in ("Lengths", "Means and moments", "Information matrices", "scores")
    )
    grid = statement["noise_grid"]
    assert (grid["noise"], grid["bits"]) == ("discrete_gaussian", GRID_BITS)
    assert LEAST_FINE_SCALE / FINEST_SCALE == 0.75
    assert f"between 0.75 * 2^{math.log2(FINEST_SCALE):g} and 2^{math.log2(FINEST_SCALE):g}" in grid["drawn"]
    canonical = rfc8785.dumps(statement)
    assert json.loads(canonical) == statement
    assert len(canonical) < 16_384
    keys = {key["key_id"]: key["public_key"] for key in api.get("/v1/keys").json()["items"]}
    assert verify(certificate, keys[certificate["key_id"]])


def test_the_certificate_verifies_with_a_published_key(api: httpx.Client, release_id: str) -> None:
    certificate = api.get(f"/v1/releases/{release_id}/certificate").json()
    page = api.get("/v1/keys").json()
    assert page["next_cursor"] is None
    keys = {key["key_id"]: key for key in page["items"]}
    assert {key["use"] for key in keys.values()} == {"ledger", "release"}
    signing = keys[certificate["key_id"]]
    assert (signing["use"], signing["algorithm"]) == ("release", "ed25519")
    assert verify(certificate, signing["public_key"])
    certificate["statement"]["slots"] += 1
    assert not verify(certificate, signing["public_key"])


@pytest.mark.parametrize("name", list(MEDIA_TYPES))
def test_points_have_the_certified_digest_in_every_representation(
    api: httpx.Client, release_id: str, name: str
) -> None:
    path = f"/v1/releases/{release_id}/points"
    digests = api.get(f"/v1/releases/{release_id}/certificate").json()["statement"]["digests"]
    by_format = api.get(path, params={"format": name})
    by_accept = api.get(path, headers={"Accept": MEDIA_TYPES[name]})
    assert by_format.content == by_accept.content
    assert by_format.headers["content-type"].startswith(MEDIA_TYPES[name])
    digest = base64.b64encode(hashlib.sha256(by_format.content).digest()).decode()
    assert by_format.headers["repr-digest"] == digests[name] == f"sha-256=:{digest}:"
    assert by_format.headers["vary"] == "Accept"
    assert by_format.headers["cache-control"] == "public, max-age=31536000, immutable"
    assert "content-encoding" not in by_format.headers


def test_each_representation_has_a_different_etag(api: httpx.Client, release_id: str) -> None:
    path = f"/v1/releases/{release_id}/points"
    etags = [api.get(path, params={"format": name}).headers["etag"] for name in MEDIA_TYPES]
    assert len(set(etags)) == 4
    assert all(etag[0] == etag[-1] == '"' for etag in etags)


def test_points_have_one_row_for_each_pseudopoint(api: httpx.Client, release_id: str) -> None:
    document = api.get(f"/v1/releases/{release_id}/points").json()
    assert document["columns"] == ["age", "hours", "sex=Male", "intercept", "y", "weight"]
    table = np.array(document["rows"])
    assert table.shape == (6, 6)
    assert set(table[:, 4]) <= {0.0, 1.0}
    assert (table[:, 3] == 1).all()
    with np.load(io.BytesIO(api.get(f"/v1/releases/{release_id}/points?format=npz").content)) as arrays:
        np.testing.assert_array_equal(np.column_stack([arrays["u"], arrays["y"], arrays["weight"]]), table)


def test_head_has_the_headers_of_get(api: httpx.Client, release_id: str) -> None:
    path = f"/v1/releases/{release_id}/points"
    head, whole = api.head(path, headers={"Range": "bytes=0-3"}), api.get(path)
    assert (head.status_code, head.content) == (200, b"")
    varying = {"x-request-id"}
    assert {k: v for k, v in head.headers.items() if k not in varying} == {
        k: v for k, v in whole.headers.items() if k not in varying
    }


def test_if_none_match_of_the_representation_gets_304(api: httpx.Client, release_id: str) -> None:
    path = f"/v1/releases/{release_id}/points"
    etag = api.get(path).headers["etag"]
    for method in ("GET", "HEAD"):
        for header in (etag, f"W/{etag}", "*", f'"other", {etag}'):
            response = api.request(method, path, headers={"If-None-Match": header, "Range": "bytes=0-1"})
            assert (response.status_code, response.content, response.headers["etag"]) == (304, b"", etag)
    assert api.get(path, headers={"If-None-Match": '"other"'}).status_code == 200


def test_if_match_of_another_representation_gets_412(api: httpx.Client, release_id: str) -> None:
    path = f"/v1/releases/{release_id}/points"
    etag = api.get(path).headers["etag"]
    for header in (etag, f'"other", {etag}', "*"):
        assert api.get(path, headers={"If-Match": header}).status_code == 200
    for header in ('"other"', f"W/{etag}"):
        problem(api.get(path, headers={"If-Match": header, "If-None-Match": etag}), 412, "precondition_failed")
        assert api.head(path, headers={"If-Match": header}).status_code == 412


def test_ranges_are_parts_of_the_whole(api: httpx.Client, release_id: str) -> None:
    path = f"/v1/releases/{release_id}/points"
    whole = api.get(path)
    length = len(whole.content)
    for header, part in (("bytes=2-5", slice(2, 6)), ("bytes=7-", slice(7, None)), ("bytes=-9", slice(-9, None))):
        response = api.get(path, headers={"Range": header, "If-Range": whole.headers["etag"]})
        assert (response.status_code, response.content) == (206, whole.content[part])
        first, last = part.indices(length)[0], part.indices(length)[1] - 1
        assert response.headers["content-range"] == f"bytes {first}-{last}/{length}"
        assert response.headers["repr-digest"] == whole.headers["repr-digest"]
    stale = api.get(path, headers={"Range": "bytes=2-5", "If-Range": '"other"'})
    assert (stale.status_code, stale.content) == (200, whole.content)
    beyond = api.get(path, headers={"Range": f"bytes={length}-"})
    problem(beyond, 416, "range_not_satisfiable")
    assert beyond.headers["content-range"] == f"bytes */{length}"


def test_a_format_that_is_not_offered_is_refused(api: httpx.Client, release_id: str) -> None:
    path = f"/v1/releases/{release_id}/points"
    problem(api.get(path, headers={"Accept": "image/png"}), 406, "not_acceptable")
    problem(api.get(path, params={"format": "xml"}), 422, "invalid_request")
    assert api.get(path, params={"format": "csv"}, headers={"Accept": "image/png"}).status_code == 200


def test_a_private_release_is_visible_only_with_its_dataset(
    house: House, api: httpx.Client, owner: rows.Key, analyst: rows.Key, auditor: rows.Key
) -> None:
    """W3: other callers get the answer of a missing release."""
    release_id = released(house, owner, releases_public=False, shared_with=(analyst.id,))
    with house.database.write() as tx:
        stranger = rows.api_key(tx, "analyst")
    paths = [f"/v1/releases/{release_id}{rest}" for rest in ("", "/points", "/certificate", "/belief")]
    for path in paths:
        problem(api.get(path), 404, "not_found")
        problem(api.get(path, headers=stranger.headers), 404, "not_found")
        for key in (owner, analyst, auditor):
            response = api.get(path, headers=key.headers)
            assert (response.status_code, response.headers["cache-control"]) == (200, "private, no-cache")
            assert "access-control-allow-origin" not in response.headers
    assert api.get(paths[1], headers=owner.headers).headers["vary"] == "Accept, Authorization"


def test_a_public_release_stays_public(house: House, api: httpx.Client, owner: rows.Key, release_id: str) -> None:
    dataset_id = api.get(f"/v1/releases/{release_id}").json()["dataset_id"]
    changed = api.patch(f"/v1/datasets/{dataset_id}", json={"releases_public": False}, headers=owner.headers)
    assert changed.status_code == 200
    assert api.get(f"/v1/releases/{release_id}/points").status_code == 200
    hidden = house.job(dataset_id, owner)
    house.run(hidden)
    problem(api.get(f"/v1/releases/{house.read(hidden).release_id}"), 404, "not_found")


def test_a_list_has_the_releases_that_the_reader_may_see(
    house: House, api: httpx.Client, owner: rows.Key, analyst: rows.Key, auditor: rows.Key, release_id: str
) -> None:
    hidden = released(house, owner, releases_public=False, shared_with=(analyst.id,))
    with house.database.write() as tx:
        stranger = rows.api_key(tx, "analyst")

    def listed(key: rows.Key | None, **query: str) -> list[str]:
        headers = {} if key is None else key.headers
        return [item["id"] for item in api.get("/v1/releases", params=query, headers=headers).json()["items"]]

    assert listed(None) == listed(stranger) == [release_id]
    assert listed(owner) == listed(analyst) == listed(auditor) == [hidden, release_id]
    dataset_id = api.get(f"/v1/releases/{release_id}").json()["dataset_id"]
    assert listed(owner, dataset_id=dataset_id) == [release_id]
    assert listed(None, dataset_id="ds_none") == []
    first = api.get("/v1/releases?limit=1", headers=owner.headers).json()
    assert listed(owner, limit="1", cursor=first["next_cursor"]) == [release_id]


def test_a_release_outlives_its_dataset(api: httpx.Client, owner: rows.Key, release_id: str) -> None:
    dataset_id = api.get(f"/v1/releases/{release_id}").json()["dataset_id"]
    assert api.delete(f"/v1/datasets/{dataset_id}", headers=owner.headers).status_code == 200
    assert api.get(f"/v1/releases/{release_id}/points").status_code == 200


def test_an_unknown_release_is_not_found(api: httpx.Client) -> None:
    for rest in ("", "/points", "/certificate", "/belief"):
        problem(api.get(f"/v1/releases/rel_none{rest}"), 404, "not_found")


def test_the_certificate_states_no_times(api: httpx.Client, release_id: str) -> None:
    """W3: time and duration of a run are not published."""
    statement = api.get(f"/v1/releases/{release_id}/certificate").json()["statement"]
    text = json.dumps(statement)
    assert "created_at" not in text
    assert "T" + "00:" not in text
    assert not any(word in text for word in ("second", "duration", "started", "ended"))
