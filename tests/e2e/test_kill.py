"""W10 from the outside: the plug is pulled, and everything still adds up."""

import time
from typing import Any

import httpx
import pytest

from support.processes import kill
from tests.e2e.house import House, ended, job_body, ready_dataset, table, until

pytestmark = pytest.mark.process

RECOVERY_SECONDS = 30
LONG = {"iterations": 1500, "sampling_rate": 1.0, "posterior_draws": 150}
WHOM = ["every worker process", pytest.param("one child", marks=pytest.mark.services)]  # else tests/faults kills one


def submitted(owner: httpx.Client, dataset: str) -> str:
    return str(owner.post("/v1/jobs", json=job_body(dataset, parameters=LONG)).json()["id"])


def running(owner: httpx.Client, job: str) -> dict[str, Any] | None:
    body: dict[str, Any] = owner.get(f"/v1/jobs/{job}").json()
    assert body["status"] in {"queued", "running"}, body
    return body if body["status"] == "running" and body["progress"]["fraction"] > 0 else None


@pytest.mark.parametrize("whom", WHOM)
def test_a_killed_worker_costs_one_charge_and_one_release(house: House, owner: httpx.Client, whom: str) -> None:
    """W10: SIGKILL in mid-run; the job still succeeds, charged once, released once."""
    dataset = ready_dataset(owner, table(1900 + len(whom)), population=f"killed-{whom}")
    undisturbed = time.monotonic()
    assert ended(owner, submitted(owner, dataset))["status"] == "succeeded"
    own_seconds = time.monotonic() - undisturbed
    job = submitted(owner, dataset)
    until(lambda: running(owner, job), 30)
    pids = house.workers()
    kill(pids if whom == "every worker process" else pids[-1:])
    killed = time.monotonic()
    body = ended(owner, job, RECOVERY_SECONDS + 60)
    assert body["status"] == "succeeded", body
    assert time.monotonic() - killed < RECOVERY_SECONDS + 2 * own_seconds
    entries = owner.get(f"/v1/datasets/{dataset}/ledger").json()["items"]
    kinds = [entry["kind"] for entry in entries if entry["job_id"] == job]
    assert sorted(kinds) == ["opened", "reserved", "settled"]
    releases = owner.get("/v1/releases", params={"dataset_id": dataset}).json()["items"]
    assert [release["job_id"] for release in releases].count(job) == 1


def test_a_killed_api_comes_back(house: House, owner: httpx.Client) -> None:
    """W10: the API is restarted by its parent, and nothing that was committed is lost."""
    dataset = ready_dataset(owner, table(77), population="api-killed")
    before = owner.get(f"/v1/datasets/{dataset}/budget").json()
    workers = set(house.workers())
    kill(pid for pid in house.group() if pid != house.process.pid and pid not in workers)
    house.wait_ready()
    assert owner.get(f"/v1/datasets/{dataset}/budget").json() == before
