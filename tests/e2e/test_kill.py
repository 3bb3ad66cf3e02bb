"""W10, end to end: processes are killed, and the ledger is still right."""

import time
from typing import Any

import httpx
import pytest

from support.processes import kill
from tests.e2e.house import House, job_body, ready_dataset, table, until, wait_for_job

pytestmark = pytest.mark.process

RECOVERY_SECONDS = 30
LONG = {"iterations": 600, "sampling_rate": 1.0, "posterior_draws": 150}
TARGETS = [
    "every worker process",
    pytest.param("one child", marks=pytest.mark.services),
]  # without services tests/faults kills one


def submit(owner: httpx.Client, dataset: str) -> str:
    return str(owner.post("/v1/jobs", json=job_body(dataset, parameters=LONG)).json()["id"])


def read_running(owner: httpx.Client, job: str) -> dict[str, Any] | None:
    body: dict[str, Any] = owner.get(f"/v1/jobs/{job}").json()
    assert body["status"] in {"queued", "running"}, body
    return body if body["status"] == "running" and body["progress"]["fraction"] > 0 else None


@pytest.mark.timeout(240)  # two runs and a recovery, on a machine that runs other installations too
@pytest.mark.parametrize("target", TARGETS)
def test_job_of_a_killed_worker_has_one_charge_and_one_release(house: House, owner: httpx.Client, target: str) -> None:
    """W10: SIGKILL during the run; the job succeeds, with one charge and one release."""
    dataset = ready_dataset(owner, table(1900 + len(target)), population=f"killed-{target}")
    started = time.monotonic()
    assert wait_for_job(owner, submit(owner, dataset))["status"] == "succeeded"
    usual_seconds = time.monotonic() - started
    job = submit(owner, dataset)
    until(lambda: read_running(owner, job), 30)
    pids = house.workers()
    kill(pids if target == "every worker process" else pids[-1:])
    killed = time.monotonic()
    body = wait_for_job(owner, job, RECOVERY_SECONDS + 60)
    assert body["status"] == "succeeded", body
    assert time.monotonic() - killed < RECOVERY_SECONDS + 2 * usual_seconds
    entries = owner.get(f"/v1/datasets/{dataset}/ledger").json()["items"]
    kinds = [entry["kind"] for entry in entries if entry["job_id"] == job]
    assert sorted(kinds) == ["opened", "reserved", "settled"]
    releases = owner.get("/v1/releases", params={"dataset_id": dataset}).json()["items"]
    assert [release["job_id"] for release in releases].count(job) == 1


def test_killed_api_is_restarted(house: House, owner: httpx.Client) -> None:
    """W10: its parent restarts it, and no committed data is lost."""
    dataset = ready_dataset(owner, table(77), population="api-killed")
    before = owner.get(f"/v1/datasets/{dataset}/budget").json()
    workers = set(house.workers())
    kill(pid for pid in house.group() if pid != house.process.pid and pid not in workers)
    house.wait_ready()
    assert owner.get(f"/v1/datasets/{dataset}/budget").json() == before
