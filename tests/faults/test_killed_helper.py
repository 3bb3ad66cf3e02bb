"""Several real workers on one query, one of them killed with a part in its hands."""

import json
import os
import re
import signal
import subprocess
import threading
import time
from contextlib import ExitStack, suppress
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
from tests.factories.datasets import CSV, declared, stored
from tests.factories.transport import AppTransport
from tests.factories.worker import House, job_body
from tests.faults.test_killed_worker import children, start_worker, table, until
from workers.split_queries.mailbox import _parse, _part_name, _read, _task_name

pytestmark = pytest.mark.process

SLOTS = 400_000
STEPS = 40
LARGE = {"noise_multiplier": 600.0, "sampling_rate": 1.0, "iterations": STEPS}
BUDGET = {"epsilon": 2.0, "delta": 1e-8}
SEVERAL = {"COREVAULT_WORKER_PROCESSES": "2", "COREVAULT_SWEEP_SECONDS": "600"}
OBJECT = re.compile(r"[0-9a-f]{32}")
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
            self.bodies |= self.waiting()

    def waiting(self) -> set[str]:
        """What the messages say that nobody has taken yet."""
        found = set()
        for path in self._folder.glob("*.msg"):
            with suppress(FileNotFoundError, json.JSONDecodeError):
                message = json.loads(path.read_text())
                if message["headers"]["task"] == SUM_PARTITION:
                    found.add(message["headers"]["argsrepr"].strip("[]()\"',"))
        return found


def held(worker: "subprocess.Popen[bytes]", broker: Eavesdropper, house: House, job_id: str) -> list[int] | None:
    """The children of ``worker``, standing still, one of them with a part that it took and has not handed in.

    They are stopped while it is decided, so that what is found still holds when they are killed.
    """
    stopped = children(worker.pid)
    for child in stopped:
        os.kill(child, signal.SIGSTOP)
    query = _asked(house, job_id)
    if query is not None:
        asked = {body for body in broker.bodies if body.startswith(f"{job_id}:1:{query}:")}
        handed_in = {
            body for body in asked if _has_note(house, _part_name(f"{job_id}|1", query, int(body.split(":")[3])))
        }
        if asked - broker.waiting() - handed_in:
            time.sleep(0.1)  # where sums are missing because they are being cleared, the task is gone by then
            if _asked(house, job_id) == query:
                return stopped
    for child in stopped:
        os.kill(child, signal.SIGCONT)
    return None


def _asked(house: House, job_id: str) -> int | None:
    """The query that help is asked for at this moment."""
    header = _parse(_read(house.areas.vault, _task_name(f"{job_id}|1")))
    return None if header is None else header[0]


def _has_note(house: House, name: str) -> bool:
    return _read(house.areas.vault, name) is not None


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
            for child in until(lambda: held(helpers, broker, house, job_id)):
                os.kill(child, signal.SIGKILL)
            assert house.read(job_id).status == "running"
            until(lambda: house.read(job_id).ended_at, patience_seconds=150)
    job = house.read(job_id)
    assert (job.status, job.attempts, job.steps_done) == ("succeeded", 1, STEPS)
    assert broker.bodies
    assert all(MESSAGE.fullmatch(body) for body in broker.bodies)
    with house.database.read() as session:
        kinds = [entry.kind for entry in house.ledger.entries(session, dataset_id, limit=100, before=None)]
        assert kinds[::-1] == ["account_opened", "reserved", "opened", "settled"]
        assert session.scalar(select(func.count()).select_from(Release)) == 1
    house.areas.vault.delete_unfinished(-1)  # at most what the one that was killed had in its hands
    left = [name for name in stored(house.areas) if OBJECT.fullmatch(name)]  # a large one may lie in numbered pieces
    assert len(left) == 5  # the table, and four representations


def _end(worker: "subprocess.Popen[bytes]") -> None:
    worker.terminate()
    deadline = time.monotonic() + 15
    while worker.poll() is None and time.monotonic() < deadline:
        time.sleep(0.05)
    worker.kill()
    worker.wait()
