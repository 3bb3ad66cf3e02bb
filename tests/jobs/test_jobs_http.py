"""Jobs over HTTP: access, refusals, and the state after a refusal."""

from collections.abc import Callable
from typing import Any

import httpx
import pytest
from sqlalchemy import delete, update

from app.datasets.ingestion import Rejection
from app.datasets.models import Content, Dataset
from app.datasets.remedies import REMEDIES
from app.db import GroupCommit, WriteSession, now
from app.jobs.lifecycle import JobError
from tests.factories import rows
from tests.factories.datasets import problem
from tests.factories.worker import House, job_body, memory_tables
from tests.jobs.support import MECHANISM, budget


def test_submission_reserves_queues_and_returns_the_job(
    house: House, api: httpx.Client, analyst: rows.Key, dataset_id: str
) -> None:
    response = api.post("/v1/jobs", json=job_body(dataset_id), headers=analyst.headers)
    assert response.status_code == 202, response.text
    job = response.json()
    assert response.headers["location"] == f"/v1/jobs/{job['id']}"
    assert (job["status"], job["progress"]) == ("queued", {"fraction": 0.0, "stage": "queued"})
    assert (job["release_id"], job["error"], job["dataset_id"]) == (None, None, dataset_id)
    assert job["model"]["prior"] == {"scale": 1.0}
    assert job["mechanism"] == MECHANISM
    assert house.queue.sent == [("corevault.run_job", job["id"])]
    assert house.charge(job["id"]) == "reserved"
    assert api.get(response.headers["location"], headers=analyst.headers).json() == job


def test_job_over_budget_is_refused_with_figures_and_counted(
    house: House, api: httpx.Client, analyst: rows.Key, dataset_id: str
) -> None:
    """W9: a refusal changes no balance, creates no job and queues nothing."""
    before = budget(house, dataset_id)
    body = job_body(dataset_id, privacy=MECHANISM | {"noise_multiplier": 1.0})
    refusal = problem(
        api.post("/v1/jobs", json=body, headers=analyst.headers | {"Idempotency-Key": "k"}), 409, "budget_exceeded"
    )
    assert refusal["requested"]["epsilon"] > refusal["limit"]["epsilon"] == 2.0
    assert refusal["epsilon_after"] >= refusal["requested"]["epsilon"]
    assert 0 < refusal["remaining"]["epsilon"] <= 2.0
    after = budget(house, dataset_id)
    assert after[:3] == before[:3]
    assert (after[3].refused, after[3].reserved) == (1, 0)
    assert house.queue.sent == []
    assert api.get("/v1/jobs", headers=analyst.headers).json()["items"] == []
    retried = api.post("/v1/jobs", json=job_body(dataset_id), headers=analyst.headers | {"Idempotency-Key": "k"})
    assert retried.status_code == 202


def test_repeated_submission_with_the_same_key_reserves_once(
    house: House, api: httpx.Client, analyst: rows.Key, dataset_id: str
) -> None:
    headers = analyst.headers | {"Idempotency-Key": "once"}
    first = api.post("/v1/jobs", json=job_body(dataset_id), headers=headers)
    with house.database.write() as tx:
        house.services.on_dataset_deleted(tx, dataset_id)
    second = api.post("/v1/jobs", json=job_body(dataset_id), headers=headers)
    assert (second.status_code, second.json(), second.headers["location"]) == (
        202,
        first.json(),
        first.headers["location"],
    )
    assert len(house.queue.sent) == 1
    problem(api.post("/v1/jobs", json=job_body(dataset_id, size=7), headers=headers), 409, "idempotency_conflict")


@pytest.mark.parametrize(
    ("changes", "pointer"),
    [
        ({"method": "magic"}, "/method"),
        ({"size": 0}, "/size"),
        ({"size": 2.5}, "/size"),
        ({"size": True}, "/size"),
        ({"seed": 7}, ""),
        ({"model": {"family": "magic", "features": ["age"], "target": "income_gt_50k"}}, "/model/family"),
        ({"model": {"family": "logistic-regression", "features": [], "target": "income_gt_50k"}}, "/model/features"),
        (
            {"model": {"family": "logistic-regression", "features": ["age", "nope"], "target": "income_gt_50k"}},
            "/model/features/1",
        ),
        ({"model": {"family": "logistic-regression", "features": ["age"], "target": "hours"}}, "/model/target"),
        ({"model": {"family": "logistic-regression", "features": ["age"]}}, "/model/target"),
        ({"privacy": {"epsilon": 0}}, "/privacy/epsilon"),
        ({"privacy": {"epsilon": -1.0}}, "/privacy/epsilon"),
        ({"privacy": {"epsilon": "inf"}}, "/privacy/epsilon"),
        ({"privacy": {"epsilon": True}}, "/privacy/epsilon"),
        ({"privacy": {"epsilon": 20.5}}, "/privacy/epsilon"),
        ({"privacy": {"epsilon": 0.5, "iterations": 5}}, "/privacy"),
        ({"privacy": {"noise_multiplier": 1.0, "sampling_rate": 0.5}}, "/privacy"),
        ({"privacy": {}}, "/privacy"),
        ({"privacy": None}, "/privacy"),
        ({"privacy": MECHANISM | {"iterations": 0}}, "/privacy/iterations"),
        ({"privacy": MECHANISM | {"iterations": 10**9}}, "/privacy/iterations"),
        ({"privacy": MECHANISM | {"iterations": 1.5}}, "/privacy/iterations"),
        ({"privacy": MECHANISM | {"sampling_rate": 1.5}}, "/privacy/sampling_rate"),
        ({"privacy": MECHANISM | {"sampling_rate": 0}}, "/privacy/sampling_rate"),
        ({"privacy": MECHANISM | {"noise_multiplier": 0}}, "/privacy/noise_multiplier"),
        ({"parameters": {"iterations": 5}}, "/parameters/iterations"),
        ({"parameters": {"sampling_rate": 0.5}}, "/parameters/sampling_rate"),
        ({"parameters": {"posterior_draws": 0}}, "/parameters/posterior_draws"),
        ({"parameters": {"seed": 1}}, "/parameters"),
        ({"privacy": {"epsilon": 0.5}, "parameters": {"iterations": 10**6}}, "/parameters/iterations"),
    ],
)
def test_invalid_member_is_pointed_at_and_changes_nothing(
    house: House, api: httpx.Client, analyst: rows.Key, dataset_id: str, changes: dict[str, Any], pointer: str
) -> None:
    before = budget(house, dataset_id)
    for path in ("/v1/quotes", "/v1/jobs"):
        response = api.post(path, json=job_body(dataset_id, **changes), headers=analyst.headers)
        refusal = problem(response, 422, "invalid_request")
        assert [fault["pointer"] for fault in refusal["errors"]] == [pointer]
    assert budget(house, dataset_id) == before
    assert house.queue.sent == []


@pytest.mark.parametrize("literal", ["1e400", "NaN", "Infinity", "-Infinity"])
def test_numbers_that_are_not_finite_are_refused(
    api: httpx.Client, analyst: rows.Key, dataset_id: str, literal: str
) -> None:
    raw = httpx.Request("POST", "http://x", json=job_body(dataset_id, privacy={"epsilon": 123.5})).content
    headers = analyst.headers | {"Content-Type": "application/json"}
    response = api.post("/v1/jobs", content=raw.replace(b"123.5", literal.encode()), headers=headers)
    problem(response, 422, "invalid_request")


@pytest.mark.parametrize("path", ["/v1/quotes", "/v1/jobs"])
def test_method_without_privacy_is_refused_on_private_data(
    api: httpx.Client, analyst: rows.Key, dataset_id: str, path: str
) -> None:
    """W8: this holds for quotes too."""
    body = job_body(dataset_id, method="uniform", parameters={})
    problem(api.post(path, json=body, headers=analyst.headers), 422, "method_not_allowed_on_private_data")


@pytest.mark.parametrize("path", ["/v1/quotes", "/v1/jobs"])
def test_only_owner_and_shared_analyst_may_run_jobs(
    house: House, api: httpx.Client, owner: rows.Key, admin: rows.Key, auditor: rows.Key, dataset_id: str, path: str
) -> None:
    with house.database.write() as tx:
        stranger, other_owner = rows.api_key(tx, "analyst"), rows.api_key(tx, "owner")
    body = job_body(dataset_id)
    assert api.post(path, json=body, headers=owner.headers).status_code in {200, 202}
    problem(api.post(path, json=body, headers=admin.headers), 403, "forbidden")
    problem(api.post(path, json=body, headers=auditor.headers), 403, "forbidden")
    problem(api.post(path, json=body, headers=stranger.headers), 404, "not_found")
    problem(api.post(path, json=body, headers=other_owner.headers), 404, "not_found")
    problem(api.post(path, json=body), 401, "unauthenticated")


NOT_READY = {
    "created": (delete(Content), "has no content yet"),
    "received": (update(Content).values(status="received"), "still being processed"),
    "rejected": (update(Content).values(status="rejected", rejection="too_many_units"), "was rejected"),
    "deleted": (update(Dataset).values(deleted_at=now()), "is deleted"),
}


@pytest.mark.parametrize("state", NOT_READY)
def test_job_on_a_dataset_that_is_not_ready_is_refused(
    house: House, api: httpx.Client, owner: rows.Key, state: str
) -> None:
    dataset_id, (change, words) = house.ready_dataset(owner), NOT_READY[state]
    with house.database.write() as tx:
        tx.execute(change)
    for path in ("/v1/quotes", "/v1/jobs"):
        answer = api.post(path, json=job_body(dataset_id), headers=owner.headers)
        problem(answer, 409, "state_conflict")
        assert words in answer.json()["detail"]


@pytest.mark.parametrize("rejection", Rejection)
def test_owner_of_a_rejected_file_sees_the_remedy(
    house: House, api: httpx.Client, owner: rows.Key, rejection: Rejection
) -> None:
    """W3: the remedy depends only on the rejection code, which the owner sees in any case."""
    dataset_id = house.ready_dataset(owner)
    with house.database.write() as tx:
        tx.execute(update(Content).values(status="rejected", rejection=rejection))
    detail = problem(api.post("/v1/quotes", json=job_body(dataset_id), headers=owner.headers), 409, "state_conflict")
    assert detail["detail"] == f"The last upload was rejected: {rejection}. {REMEDIES[rejection]}"


def test_analyst_sees_the_same_refusal_for_every_upload_outcome(
    house: House, api: httpx.Client, owner: rows.Key, analyst: rows.Key
) -> None:
    """W3: the outcome of an upload depends on its rows, so analysts get the same text for every outcome."""
    dataset_id, details = house.ready_dataset(owner, shared_with=(analyst.id,)), set()
    for state in ("rejected", "received", "created"):
        with house.database.write() as tx:
            tx.execute(NOT_READY[state][0])
        for path in ("/v1/quotes", "/v1/jobs"):
            answer = api.post(path, json=job_body(dataset_id), headers=analyst.headers)
            problem(answer, 409, "state_conflict")
            details.add(answer.json()["detail"])
    assert len(details) == 1


def test_job_on_public_data_has_no_price(house: House, api: httpx.Client, owner: rows.Key) -> None:
    dataset_id = house.ready_dataset(owner, sensitivity="public")
    uniform: dict[str, Any] = {"method": "uniform", "parameters": {}, "privacy": None}
    target: dict[str, Any] = {"privacy": {"epsilon": 0.5}}
    for changes in ({}, target, uniform):
        quote = api.post("/v1/quotes", json=job_body(dataset_id, **changes), headers=owner.headers)
        assert quote.status_code == 200, quote.text
        assert (quote.json()["cost"], quote.json()["affordable"]) == (None, True)
        assert (quote.json()["epsilon_after"], quote.json()["more_like_this"]) == (None, None)
        assert api.post("/v1/jobs", json=job_body(dataset_id, **changes), headers=owner.headers).json()["cost"] is None


def test_jobs_are_visible_to_submitter_owner_and_auditor(
    house: House, api: httpx.Client, owner: rows.Key, analyst: rows.Key, auditor: rows.Key, dataset_id: str
) -> None:
    with house.database.write() as tx:
        colleague = rows.api_key(tx, "analyst")
        stranger = rows.api_key(tx, "owner")
    theirs, own = house.job(dataset_id, analyst), house.job(dataset_id, owner)

    def listed(key: rows.Key, query: str = "") -> list[str]:
        return [item["id"] for item in api.get(f"/v1/jobs{query}", headers=key.headers).json()["items"]]

    assert listed(owner) == listed(auditor) == [own, theirs]
    assert listed(analyst) == [theirs]
    assert listed(colleague) == listed(stranger) == []
    assert listed(owner, f"?dataset_id={dataset_id}&status=queued&limit=1") == [own]
    assert listed(owner, "?status=succeeded") == []
    problem(api.get("/v1/jobs?status=lost", headers=owner.headers), 422, "invalid_request")
    for key, status in ((colleague, 404), (stranger, 404), (analyst, 200), (owner, 200), (auditor, 200)):
        assert api.get(f"/v1/jobs/{theirs}", headers=key.headers).status_code == status
        expected = {404: 404, 200: 403 if key is auditor else 200}[status]
        assert api.post(f"/v1/jobs/{theirs}/cancel", headers=key.headers).status_code == expected


def test_second_page_continues_after_the_first(
    house: House, api: httpx.Client, owner: rows.Key, dataset_id: str
) -> None:
    submitted = [house.job(dataset_id, owner) for _ in range(3)]
    first = api.get("/v1/jobs?limit=2", headers=owner.headers).json()
    second = api.get(f"/v1/jobs?limit=2&cursor={first['next_cursor']}", headers=owner.headers).json()
    assert [item["id"] for item in first["items"] + second["items"]] == submitted[::-1]
    assert second["next_cursor"] is None


def test_queued_job_is_cancelled_at_once_and_not_charged(
    house: House, api: httpx.Client, analyst: rows.Key, dataset_id: str
) -> None:
    """W10: its reservation ends with it."""
    job_id = house.job(dataset_id, analyst)
    response = api.post(f"/v1/jobs/{job_id}/cancel", headers=analyst.headers)
    assert (response.status_code, response.json()["status"]) == (200, "cancelled")
    assert house.charge(job_id) == "voided"
    assert api.post(f"/v1/jobs/{job_id}/cancel", headers=analyst.headers).json() == response.json()
    house.run(job_id)
    assert house.read(job_id).status == "cancelled"


@pytest.mark.parametrize(
    ("opened", "end", "words"),
    [
        (False, "cancelled", "before it opened the data, so nothing was charged"),
        (False, "failed", "before it opened the data, so nothing was charged"),
        (True, "cancelled", "after it had opened the data"),
        (True, "failed", "after it had opened the data"),
        (True, "succeeded", "The release was published"),
    ],
)
def test_ended_job_states_its_charge_and_the_reason(
    house: House, api: httpx.Client, analyst: rows.Key, dataset_id: str, *, opened: bool, end: str, words: str
) -> None:
    """W10: the charge is the settled price, or zero if the reservation was voided."""
    job_id = house.job(dataset_id, analyst)
    assert api.get(f"/v1/jobs/{job_id}", headers=analyst.headers).json()["settlement"] is None
    if end == "succeeded":
        house.runner(memory_tables).run(job_id)
    else:
        _end(house, job_id, opened=opened, end=end)
    job = api.get(f"/v1/jobs/{job_id}", headers=analyst.headers).json()
    assert (job["status"], house.charge(job_id)) == (end, "settled" if opened else "voided")
    assert job["settlement"]["charged"] == (job["cost"] if opened else {"epsilon": 0.0, "delta": 0.0})
    assert words in job["settlement"]["reason"]


def _end(house: House, job_id: str, *, opened: bool, end: str) -> None:
    with house.database.write() as tx:
        claim = house.lifecycle.claim(tx, job_id)
    assert claim is not None
    with house.database.write() as tx:
        if opened:
            house.lifecycle.open(tx, claim)
        if end == "cancelled":
            house.lifecycle.end_cancelled(tx, claim)
        else:
            house.lifecycle.fail(tx, claim, JobError.RUN_FAILED)


def test_cancelling_an_ended_job_changes_nothing(
    house: House, api: httpx.Client, analyst: rows.Key, dataset_id: str
) -> None:
    job_id = house.job(dataset_id, analyst)
    house.runner(memory_tables).run(job_id)
    job = api.get(f"/v1/jobs/{job_id}", headers=analyst.headers).json()
    assert job["progress"] == {"fraction": 1.0, "stage": "ended"}
    assert api.post(f"/v1/jobs/{job_id}/cancel", headers=analyst.headers).json() == job


def test_deletion_of_the_dataset_ends_its_queued_jobs(
    house: House, api: httpx.Client, owner: rows.Key, dataset_id: str
) -> None:
    job_id = house.job(dataset_id, owner)
    assert api.delete(f"/v1/datasets/{dataset_id}", headers=owner.headers).status_code == 200
    job = api.get(f"/v1/jobs/{job_id}", headers=owner.headers).json()
    assert (job["status"], job["error"]) == ("failed", {"code": "dataset_deleted"})
    assert house.charge(job_id) == "voided"


def test_job_without_a_price_does_not_join_a_group_commit(
    house: House, api: httpx.Client, analyst: rows.Key, dataset_id: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A refusal would make all jobs in the same transaction start again."""
    joined: list[str] = []
    transact = GroupCommit.transact

    def record(group: GroupCommit, action: Callable[[WriteSession], Any], name: str | None = None) -> Any:
        joined.append(str(name))
        return transact(group, action, name)

    monkeypatch.setattr(GroupCommit, "transact", record)
    problem(api.post("/v1/jobs", json=job_body("ds_none"), headers=analyst.headers), 404, "not_found")
    assert joined == []
    assert api.post("/v1/jobs", json=job_body(dataset_id), headers=analyst.headers).status_code == 202
    assert joined == [dataset_id]
