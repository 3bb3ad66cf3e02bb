"""Several real workers on one query; one is killed while it sums a part."""

import json
import os
import re
import signal
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
from tests.factories.representations import REPRESENTATIONS
from tests.factories.transport import AppTransport
from tests.factories.worker import House, job_body
from tests.faults.process import Forked
from tests.faults.test_killed_worker import children, start_worker, table, until
from workers.split_queries.mailbox import _parse_header, _part_name, _read, _task_name

pytestmark = [pytest.mark.process, pytest.mark.long]

SLOTS = 400_000
STEPS = 40
LARGE = {"noise_multiplier": 600.0, "sampling_rate": 1.0, "iterations": STEPS}
BUDGET = {"epsilon": 2.0, "delta": 1e-8}
SEVERAL = {"COREVAULT_WORKER_PROCESSES": "2", "COREVAULT_SWEEP_SECONDS": "600"}
OBJECT = re.compile(r"[0-9a-f]{32}")
MESSAGE = re.compile(r"job_[0-9a-z]+:[0-9]+:[0-9]+:[0-9]+")


class BrokerWatcher:
    """Polls the broker's folder, and records the bodies of messages about parts."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder / "broker" / "messages"
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._listen)
        self.bodies: set[str] = set()

    def __enter__(self) -> "BrokerWatcher":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    def _listen(self) -> None:
        while not self._stop.wait(0.005):
            self.bodies |= self.waiting()

    def waiting(self) -> set[str]:
        """The bodies of messages that no worker has taken yet."""
        bodies = set()
        for path in self._folder.glob("*.msg"):
            with suppress(FileNotFoundError, json.JSONDecodeError):
                message = json.loads(path.read_text())
                if message["headers"]["task"] == SUM_PARTITION:
                    bodies.add(message["headers"]["argsrepr"].strip("[]()\"',"))
        return bodies


def stop_while_summing(worker: Forked, broker: BrokerWatcher, house: House, job_id: str) -> list[int] | None:
    """Stop the children of ``worker`` if one of them is summing a part; return them, or None.

    They are stopped during the check, so that its result still holds when they are killed.
    """
    stopped = children(worker.pid)
    for child in stopped:
        os.kill(child, signal.SIGSTOP)
    query = _current_query(house, job_id)
    if query is not None:
        sent = {body for body in broker.bodies if body.startswith(f"{job_id}:1:{query}:")}
        answered = {
            body for body in sent if _has_note(house, _part_name(f"{job_id}|1", query, int(body.split(":")[3])))
        }
        if sent - broker.waiting() - answered:
            time.sleep(0.1)  # if sums are missing because the mailbox is being cleared, the task is gone by then
            if _current_query(house, job_id) == query:
                return stopped
    for child in stopped:
        os.kill(child, signal.SIGCONT)
    return None


def _current_query(house: House, job_id: str) -> int | None:
    """The query whose task is in the mailbox now."""
    header = _parse_header(_read(house.areas.vault, _task_name(f"{job_id}|1")))
    return None if header is None else header[0]


def _has_note(house: House, name: str) -> bool:
    return _read(house.areas.vault, name) is not None


@pytest.mark.timeout(240)
def test_job_succeeds_if_a_helper_is_killed_while_it_sums_a_part(
    house: House, owner: rows.Key, tmp_path: Path, storage_url: str
) -> None:
    """W5, W10: each part is added once; there is one charge and one release, and no part remains in the store."""
    queue = CeleryQueue("filesystem://", tmp_path)
    settings = {
        "COREVAULT_PARTITIONS": "6",
        "COREVAULT_SPLIT_ROWS": str(SLOTS),
        "COREVAULT_LEASE_SECONDS": "30",  # so that the coordinator's lease does not expire on a busy machine
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
            helpers.send_signal(signal.SIGSTOP)  # so that the other worker takes the job
            cleanup.callback(helpers.send_signal, signal.SIGCONT)
            coordinator = start_worker(tmp_path, house, storage_url, **settings)
            cleanup.callback(_end, coordinator)
            body = job_body(dataset_id, privacy=LARGE, parameters={"posterior_draws": 100})
            job_id = api.post("/v1/jobs", json=body, headers=owner.headers).json()["id"]
        until(lambda: house.read(job_id).status == "running" or None)
        with BrokerWatcher(tmp_path) as broker:
            helpers.send_signal(signal.SIGCONT)
            for child in until(lambda: stop_while_summing(helpers, broker, house, job_id)):
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
    house.areas.vault.delete_unfinished(-1)  # at most the unfinished part of the killed child
    remaining = [
        name for name in stored(house.areas) if OBJECT.fullmatch(name)
    ]  # a large object may consist of numbered pieces
    assert len(remaining) == 1 + len(REPRESENTATIONS)  # the table, and every representation


def _end(worker: Forked) -> None:
    worker.send_signal(signal.SIGTERM)
    deadline = time.monotonic() + 15
    while worker.poll() is None and time.monotonic() < deadline:
        time.sleep(0.05)
    worker.send_signal(signal.SIGKILL)
    worker.wait()
