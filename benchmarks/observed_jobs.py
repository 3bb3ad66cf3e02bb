"""Whole jobs over HTTP in one process, as their callers see them.

The API is called without a socket, and the worker's handlers are called directly. The code is that of the service:
endpoints, ledger, enclave, oracle and publication.
"""

import re
import resource
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

import anyio.from_thread
import httpx
import numpy as np
from sqlalchemy import select

from app.cli import installation
from app.config import Settings
from app.datasets.models import Content
from app.db import Database
from app.main import build_services, create_app
from workers.celery_app import TaskHandlers, make_task_handlers

ROWS, SLOTS = 1_500, 2_000
COLUMNS: Final[tuple[dict[str, Any], ...]] = (
    {"name": "age", "type": "integer", "lower": 0, "upper": 100},
    {"name": "dose", "type": "real", "lower": -5, "upper": 5},
    {"name": "sick", "type": "binary"},
)
PLACE: Final = 700
"""Row of the one unit in which the tables differ."""
UNITS: Final = {
    "absent": ",,",
    "absent again": " ,,",
    "usual": "50,0.5,1",
    "extreme": "9" * 300 + "," + "-1e308" + ",1",
}
"""The cells of that unit in each table. Missing cells make a null row, so all tables are neighbours of the first."""
JOBS: Final[Mapping[str, dict[str, Any]]] = {
    "dp-psvi": {
        "method": "dp-psvi",
        "privacy": {"noise_multiplier": 300.0, "sampling_rate": 1.0, "iterations": 5},
        "parameters": {"posterior_draws": 10},
    },
    "dp-psvi-surrogate": {"method": "dp-psvi-surrogate", "privacy": {"epsilon": 0.02}},
}
"""Jobs that are so cheap that one account covers all of them."""
COSTLY: Final = {"noise_multiplier": 0.5, "sampling_rate": 1.0, "iterations": 5000}
"""A mechanism that no account covers."""
FORMATS: Final = ("json", "csv", "parquet", "npz")
_CROCKFORD: Final = "0123456789abcdefghjkmnpqrstvwxyz"
_SECRETS: Final = re.compile(
    r"(ds|job|rel|ct|key|req|aud)_[0-9a-z]{26}|people-\d|\d{4}-\d\d-\d\dT[0-9:.]+Z|\d+\.\d+(e-?\d+)?|sha-256=:[^:]+:"
)
"""Ids, times, digests and fractions, which differ in every job."""

Value = float | str
Observation = dict[str, Value]


class InProcess(httpx.BaseTransport):
    """Sends requests to an application in this process."""

    def __init__(self, portal: anyio.from_thread.BlockingPortal, app: Any) -> None:
        self._portal, self._inner = portal, httpx.ASGITransport(app)

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        return self._portal.call(self._send, request, request.read())

    async def _send(self, request: httpx.Request, content: bytes) -> httpx.Response:
        sent = httpx.Request(request.method, request.url, headers=request.headers, content=content)
        answer = await self._inner.handle_async_request(sent)
        return httpx.Response(answer.status_code, headers=answer.headers, content=await answer.aread())


def make_table(unit: str) -> bytes:
    """Make a table in CSV. It is the same for all units, except for one row."""
    rng = np.random.Generator(np.random.PCG64(3))
    ages, doses, sick = rng.integers(0, 101, ROWS), rng.uniform(-5, 5, ROWS), rng.integers(0, 2, ROWS)
    lines = [f"{age},{dose:.3f},{ill}" for age, dose, ill in zip(ages, doses, sick, strict=True)]
    lines[PLACE] = UNITS[unit]
    return "\n".join(["age,dose,sick", *lines, ""]).encode()


class Observer:
    """An installation with one dataset for each of :data:`UNITS`, and its owner."""

    def __init__(self, client: httpx.Client, database: Database, handlers: TaskHandlers) -> None:
        self._client, self._database, self._handlers = client, database, handlers
        self._datasets = {unit: self._declare(unit) for unit in UNITS}
        for unit in UNITS:
            self.observe_upload(unit)

    def _declare(self, unit: str) -> str:
        body = {
            "name": "observed",
            "sensitivity": "private",
            "population": f"people-{list(UNITS).index(unit)}",
            "columns": COLUMNS,
            "privacy_unit": {"kind": "row"},
            "slots": SLOTS,
            "budget": {"epsilon": 900.0, "delta": 1e-6},
        }
        answer = self._client.post("/v1/datasets", json=body)
        answer.raise_for_status()
        return str(answer.json()["id"])

    def observe(self, unit: str, work: str) -> Observation:
        """Observe an upload, or a job of one of :data:`JOBS`."""
        return self.observe_upload(unit) if work == "upload" else self.observe_job(unit, work)

    def observe_upload(self, unit: str) -> Observation:
        """Upload the table as a new content, and observe its ingestion."""
        address, seen = f"/v1/datasets/{self._datasets[unit]}", Observation()
        headers = {"Content-Type": "text/csv"}
        self._ask(
            seen, "upload", lambda: self._client.put(f"{address}/content", content=make_table(unit), headers=headers)
        )
        content_id = self._find_newest_content()
        seen |= self._run("ingestion", lambda: self._handlers.ingestion.run(content_id))
        shown = self._ask(seen, "dataset", lambda: self._client.get(address)).json()
        seen["status of the content"] = str(shown["content"]["status"])
        return seen

    def observe_job(self, unit: str, job: str) -> Observation:
        """Run a job, and observe everything that its caller and the public see."""
        dataset_id, seen = self._datasets[unit], Observation()
        body = JOBS[job] | {
            "dataset_id": dataset_id,
            "model": {"family": "logistic-regression", "features": ["age", "dose"], "target": "sick"},
            "size": 10,
        }
        made = self._ask(seen, "submission", lambda: self._client.post("/v1/jobs", json=body)).json()
        events = self._follow(made["id"], seen)
        seen |= self._run("run", lambda: self._handlers.runner.run(made["id"]))
        events.join()
        ended = self._ask(seen, "job", lambda: self._client.get(f"/v1/jobs/{made['id']}")).json()
        seen["outcome"] = f"{ended['status']} {ended.get('error')}"
        seen["id: time between job and release"] = _read_time(ended["release_id"]) - _read_time(made["id"])
        self._observe_release(seen, ended["release_id"])
        for name in ("budget", "ledger"):
            self._ask(seen, name, partial(self._client.get, f"/v1/datasets/{dataset_id}/{name}"))
        self._observe_refusals(seen, dataset_id, body)
        return seen

    def _observe_release(self, seen: Observation, release_id: str) -> None:
        address = f"/v1/releases/{release_id}"
        release = self._ask(seen, "release", lambda: self._client.get(address)).json()
        seen["release: grade (noised)"] = str(release["reliability"]["grade"])
        seen["release: reasons (noised)"] = ",".join(each["code"] for each in release["reliability"]["reasons"])
        self._ask(seen, "certificate", lambda: self._client.get(f"{address}/certificate"))
        for name in FORMATS:
            self._ask(seen, f"points {name}", partial(self._client.get, f"{address}/points?format={name}"))

    def _observe_refusals(self, seen: Observation, dataset_id: str, body: Mapping[str, Any]) -> None:
        """Observe errors: of a job beyond the budget, of a wrong model, and of rows that no call returns."""
        costly = {**body, **JOBS["dp-psvi"], "privacy": COSTLY}
        wrong = {**body, "model": {**body["model"], "target": "nothing"}}
        for name, wanted in (("costly", costly), ("wrong", wrong)):
            answer = self._ask(seen, f"error {name}", partial(self._client.post, "/v1/jobs", json=wanted))
            seen[f"error {name}: code"] = str(answer.json()["code"])
        self._ask(seen, "error rows", lambda: self._client.get(f"/v1/datasets/{dataset_id}/content"))

    def _ask(self, seen: Observation, name: str, call: Callable[[], httpx.Response]) -> httpx.Response:
        began = time.perf_counter()
        answer = call()
        seen[f"{name}: seconds"] = time.perf_counter() - began
        seen[f"{name}: status"] = str(answer.status_code)
        seen[f"{name}: headers"] = ",".join(sorted(answer.headers))
        is_noised = name.startswith(("release", "points", "certificate"))
        seen[f"{name}: bytes{' (noised)' if is_noised else ''}"] = float(len(answer.content))
        if not is_noised and answer.headers.get("content-type", "").startswith("application/"):
            seen[f"{name}: words"] = _SECRETS.sub("…", answer.text)
        return answer

    def _run(self, name: str, work: Callable[[], object]) -> Observation:
        began = time.perf_counter(), measure_processor()
        work()
        return {
            f"{name}: seconds": time.perf_counter() - began[0],
            f"{name}: processor seconds": measure_processor() - began[1],
        }

    def _follow(self, job_id: str, seen: Observation) -> threading.Thread:
        """Follow the progress of a job in another thread."""

        def read() -> None:
            text = self._client.get(f"/v1/jobs/{job_id}/events").text
            seen["events: number"] = float(text.count("event: "))
            seen["events: stages"] = ",".join(dict.fromkeys(re.findall(r'"stage": ?"([a-z]+)"', text)))
            seen["events: words of the last"] = _SECRETS.sub("…", text.rpartition("event: ")[2])

        thread = threading.Thread(target=read)
        thread.start()
        return thread

    def _find_newest_content(self) -> str:
        """Find the id that the upload's message to the worker contains."""
        with self._database.read() as session:
            return str(session.scalars(select(Content.id).order_by(Content.id.desc())).first())


@contextmanager
def open_observer() -> Iterator[Observer]:
    """Install the service in a temporary folder."""
    with TemporaryDirectory() as folder:
        settings = Settings(data_dir=Path(folder), max_epsilon=1000.0, requests_per_window=1_000_000)
        installation.create_keys(settings)
        installation.migrate(settings)
        admin = installation.create_admin_key(settings)
        services = build_services(settings)
        with anyio.from_thread.start_blocking_portal() as portal:
            transport = InProcess(portal, create_app(services, metrics=False))
            with httpx.Client(transport=transport, base_url="http://127.0.0.1") as client:
                made = client.post("/v1/api-keys", json={"name": "owner", "role": "owner"}, headers=_bear(admin))
                client.headers.update(_bear(made.json()["key"]))
                yield Observer(client, services.database, make_task_handlers(settings, lambda: False))
        services.close()


def _bear(key: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {key}"}


def measure_processor() -> float:
    """Measure the processor seconds of this process and of its ended children.

    An upload is read in a child.
    """
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(each.ru_utime + each.ru_stime for each in used)


def _read_time(identifier: str) -> float:
    """Read the milliseconds in an id."""
    number = 0
    for digit in identifier.partition("_")[2]:
        number = number * 32 + _CROCKFORD.index(digit)
    return float(number >> 80)
