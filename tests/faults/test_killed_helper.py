"""Several real workers on one query, one of them killed with a part in its hands."""

import json
import os
import re
import signal
import subprocess
import threading
import time
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import httpx
import pytest
from sqlalchemy import func, select

from app.main import create_app
from app.queue import SUM_PARTITION
from app.queue.sender import CeleryQueue
from app.releases.models import Release
from tests.factories import rows
from tests.factories.datasets import CSV, declared, entries, stored
from tests.factories.transport import AppTransport
from tests.factories.worker import House, job_body
from tests.faults.test_killed_worker import children, start_worker, table, until

SLOTS = 400_000
STEPS = 40
LARGE = {"noise_multiplier": 600.0, "sampling_rate": 1.0, "iterations": STEPS}
BUDGET = {"epsilon": 2.0, "delta": 1e-8}
SEVERAL = {"COREVAULT_WORKER_PROCESSES": "2", "COREVAULT_SWEEP_SECONDS": "600"}
MESSAGE = re.compile(r"job_[0-9a-z]+:[0-9]+:[0-9]+:[0-9]+")


class Eavesdropper:
    """Reads the broker's folder as often as it can, and keeps what the messages on parts say."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder / "broker" / "messages"
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._listen)
        self.bodies: set[str] = set()

    def __enter__(self) -> "Eavesdropper":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    def _listen(self) -> None:
        while not self._stop.wait(0.002):
            for path in self._folder.glob("*.msg"):
                try:
                    message = json.loads(path.read_text())
                except FileNotFoundError:
                    continue
                if message["headers"]["task"] == SUM_PARTITION:
                    self.bodies.add(message["headers"]["argsrepr"])


def busy(worker: "subprocess.Popen[bytes]", house: House) -> int | None:
    """A child of ``worker`` that is at work, once a part has been handed in, beside the task."""
    deadline = time.monotonic() + 1
    while time.monotonic() < deadline:
        notes = [path for path in entries(house.areas.vault) if path.startswith("notes/")]
        at_work = [child for child in children(worker.pid) if _state(child) == "R"]
        if len(notes) > 1 and at_work:
            return at_work[0]
    return None


def _state(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return ""


@pytest.mark.timeout(240)
def test_a_helper_that_is_killed_with_a_part_in_its_hands_costs_time_only(
    house: House, owner: rows.Key, tmp_path: Path, storage_url: str
) -> None:
    """W5, W10: each part counts once whoever computes it; one charge, one release, and nothing of the parts stays."""
    queue = CeleryQueue("filesystem://", tmp_path)
    settings = {
        "COREVAULT_PARTITIONS": "6",
        "COREVAULT_SPLIT_ROWS": str(SLOTS),
        "COREVAULT_LEASE_SECONDS": "30",  # who asks is never taken for dead here, however busy the machine is
    }
    with ExitStack() as cleanup:
        cleanup.callback(queue.close)
        helpers = start_worker(tmp_path, house, storage_url, **settings, **SEVERAL)
        cleanup.callback(_end, helpers)
        transport = AppTransport(create_app(replace(house.services, queue=queue)))
        with httpx.Client(transport=transport, base_url="http://corevault.test") as api:
            dataset_id = declared(api, owner, slots=SLOTS, budget=BUDGET)["id"]
            api.put(f"/v1/datasets/{dataset_id}/content", content=table(), headers=owner.headers | CSV)
            path = f"/v1/datasets/{dataset_id}"
            until(lambda: api.get(path, headers=owner.headers).json()["status"] == "ready" or None)
            helpers.send_signal(signal.SIGSTOP)  # so that it is the other one that takes the job
            cleanup.callback(helpers.send_signal, signal.SIGCONT)
            asking = start_worker(tmp_path, house, storage_url, **settings)
            cleanup.callback(_end, asking)
            body = job_body(dataset_id, privacy=LARGE, parameters={"posterior_draws": 100})
            job_id = api.post("/v1/jobs", json=body, headers=owner.headers).json()["id"]
        until(lambda: house.read(job_id).status == "running" or None)
        with Eavesdropper(tmp_path) as broker:
            helpers.send_signal(signal.SIGCONT)
            os.kill(until(lambda: busy(helpers, house)), signal.SIGKILL)
            assert house.read(job_id).status == "running"
            until(lambda: house.read(job_id).ended_at)
    job = house.read(job_id)
    assert (job.status, job.attempts, job.steps_done) == ("succeeded", 1, STEPS)
    assert broker.bodies
    assert all(MESSAGE.fullmatch(body.strip("[]()\"',")) for body in broker.bodies)
    with house.database.read() as session:
        kinds = [entry.kind for entry in house.ledger.entries(session, dataset_id, limit=100, before=None)]
        assert kinds[::-1] == ["account_opened", "reserved", "opened", "settled"]
        assert session.scalar(select(func.count()).select_from(Release)) == 1
    house.areas.vault.delete_unfinished(-1)  # at most what the one that was killed had in its hands
    assert len(stored(house.areas)) == 5  # the table, and four representations


def _end(worker: "subprocess.Popen[bytes]") -> None:
    worker.terminate()
    deadline = time.monotonic() + 15
    while worker.poll() is None and time.monotonic() < deadline:
        time.sleep(0.05)
    worker.kill()
    worker.wait()
