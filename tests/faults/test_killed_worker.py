"""A real worker, killed during a run: first the process that runs the job, then its parent."""

import os
import signal
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

import httpx
import pytest
from sqlalchemy import func, select

from app.main import create_app
from app.queue.sender import CeleryQueue
from app.releases.models import Release
from tests.factories import rows
from tests.factories.datasets import CSV, declared
from tests.factories.transport import AppTransport
from tests.factories.worker import House, job_body
from tests.faults.process import Forked

pytestmark = pytest.mark.process

PATIENCE_SECONDS = 60.0
LONG = {"noise_multiplier": 600.0, "sampling_rate": 1.0, "iterations": 1500}
Result = TypeVar("Result")


def until(condition: Callable[[], Result | None], patience_seconds: float = PATIENCE_SECONDS) -> Result:
    """Wait until ``condition`` returns a result; return it."""
    deadline = time.monotonic() + patience_seconds
    while (result := condition()) is None:
        assert time.monotonic() < deadline, "the condition did not become true in time"
        time.sleep(0.05)
    return result


def start_worker(folder: Path, house: House, storage_url: str, **more: str) -> Forked:
    """Start a worker on the house's database and contents, with a broker in ``folder``."""
    settings = {
        "COREVAULT_DATA_DIR": str(folder),
        "COREVAULT_STORAGE_URL": storage_url,
        "COREVAULT_DATABASE_URL": house.database.engine.url.render_as_string(hide_password=False),
        "COREVAULT_LEASE_SECONDS": "3",
        "COREVAULT_HEARTBEAT_SECONDS": "0.5",
        "COREVAULT_SWEEP_SECONDS": "0.2",
        "OMP_NUM_THREADS": "1",
        "OPENBLAS_NUM_THREADS": "1",
    }
    return Forked(["corevault-worker"], os.environ | settings | more)


def children(pid: int) -> list[int]:
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()] + [
        int(child)
        for task in Path(f"/proc/{pid}/task").iterdir()
        if task.name != str(pid)
        for child in (task / "children").read_text().split()
    ]


def is_gone(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] == "Z"
    except (FileNotFoundError, ProcessLookupError):
        return True


def table(size: int = 200) -> bytes:
    lines = [f"{17 + 7 * i % 70},{1 + 3 * i % 90},{'Male' if i % 3 else 'Female'},{i % 2}" for i in range(size)]
    return "\n".join(["age,hours,sex,income_gt_50k", *lines, ""]).encode()


@pytest.mark.timeout(150)
def test_job_of_a_killed_worker_has_one_charge_and_one_release(
    house: House, owner: rows.Key, tmp_path: Path, storage_url: str
) -> None:
    """W10: SIGKILL refunds nothing, charges nothing twice and forgets nothing; and a dead parent leaves no child."""
    queue = CeleryQueue("filesystem://", tmp_path)
    services = replace(house.services, queue=queue)
    worker = start_worker(tmp_path, house, storage_url)
    try:
        with httpx.Client(transport=AppTransport(create_app(services)), base_url="http://corevault.test") as api:
            dataset_id = declared(api, owner, slots=1_000)["id"]
            content = api.put(f"/v1/datasets/{dataset_id}/content", content=table(), headers=owner.headers | CSV)
            assert content.status_code == 202
            path = f"/v1/datasets/{dataset_id}"
            until(lambda: api.get(path, headers=owner.headers).json()["status"] == "ready" or None)
            body = job_body(dataset_id, privacy=LONG)
            job_id = api.post("/v1/jobs", json=body, headers=owner.headers).json()["id"]

        def in_mid_run(attempt: int) -> bool | None:
            job = house.read(job_id)
            assert job.status in {"queued", "running"}, "it must be killed before it ends"
            return (job.attempts == attempt and job.status == "running" and job.steps_done > 0) or None

        until(lambda: in_mid_run(1))
        (child,) = children(worker.pid)
        os.kill(child, signal.SIGKILL)
        until(lambda: in_mid_run(2))
        (child,) = children(worker.pid)
        worker.send_signal(signal.SIGKILL)
        worker.wait()
        until(lambda: is_gone(child) or None)
        worker = start_worker(tmp_path, house, storage_url)
        until(lambda: house.read(job_id).ended_at)
        worker.send_signal(signal.SIGTERM)
        assert worker.wait(PATIENCE_SECONDS) == 0
    finally:
        worker.send_signal(signal.SIGKILL)
        worker.wait()
        queue.close()
    assert (house.read(job_id).status, house.read(job_id).attempts) == ("succeeded", 3)
    with house.database.read() as session:
        kinds = [entry.kind for entry in house.ledger.entries(session, dataset_id, limit=100, before=None)]
        assert kinds[::-1] == ["account_opened", "reserved", "opened", "settled"]
        assert session.scalar(select(func.count()).select_from(Release)) == 1
        assert house.ledger.verify(session) == ()
