"""A real service for end-to-end tests: `corevaultd up` in a new folder, used over HTTP only."""

import csv
import io
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Any

import httpx
import numpy as np

from support.processes import free_port
from tests.factories import stack

SCRIPTS = Path(sys.executable).parent
READY_SECONDS = 60
POLL_SECONDS = 0.1
_SIZES = count(1500)
COLUMNS: list[dict[str, Any]] = [
    {"name": "age", "type": "integer", "lower": 0, "upper": 100},
    {"name": "dose", "type": "real", "lower": -5.0, "upper": 5.0, "missing": {"impute": 0.0}},
    {"name": "group", "type": "categorical", "categories": ["a", "b", "c"]},
    {"name": "sick", "type": "binary"},
]
MODEL: dict[str, Any] = {"family": "logistic-regression", "features": ["age", "dose", "group"], "target": "sick"}


def table(rows: int, *, shift: float = 0.0) -> bytes:
    """A CSV of generated rows in the columns of :data:`COLUMNS`."""
    rng = np.random.default_rng(rows)
    text = io.StringIO()
    writer = csv.writer(text)
    writer.writerow(["age", "dose", "group", "sick"])
    ages, doses = rng.integers(18, 90, rows), rng.normal(shift, 1.5, rows)
    sick = rng.random(rows) < 1 / (1 + np.exp(-(ages - 54) / 18 - doses / 2))
    for age, dose, group, ill in zip(ages, doses, rng.integers(0, 3, rows), sick, strict=True):
        writer.writerow([int(age), f"{dose:.6f}", "abc"[group], int(ill)])
    return text.getvalue().encode()


def until(probe: Callable[[], Any], seconds: float) -> Any:
    """Wait for the first truthy answer of ``probe``; fail after ``seconds``."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if answer := probe():
            return answer
        time.sleep(POLL_SECONDS)
    raise AssertionError(f"no answer within {seconds} seconds")


@contextmanager
def services() -> Iterator[dict[str, str]]:
    """Settings of the database and the broker: none, or servers under ``make test-services``."""
    if not stack.on_services():
        yield {}
        return
    with stack.fresh_database() as url:
        yield {"COREVAULT_DATABASE_URL": url, "COREVAULT_BROKER_URL": stack.fresh_broker()}


class House:
    """One running `corevaultd up`; ``settings`` are environment variables."""

    def __init__(self, folder: Path, **settings: str) -> None:
        self._settings = settings
        self.data, self.key_file, self.log = folder / "data", folder / "admin.key", folder / "up.log"
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.process = self._start()

    def _start(self) -> subprocess.Popen[bytes]:
        plain = {name: value for name, value in os.environ.items() if not name.startswith("COREVAULT_")}
        environment = plain | self._settings
        arguments = ["--port", str(self.port), "--data-dir", str(self.data), "--bootstrap-key", str(self.key_file)]
        with self.log.open("ab") as log:
            return subprocess.Popen(
                [str(SCRIPTS / "corevaultd"), "up", *arguments],
                stdout=log,
                stderr=log,
                env=environment,
                start_new_session=True,
                cwd=self.log.parent,
            )

    def wait_ready(self) -> None:
        until(self._ready, READY_SECONDS)

    def _ready(self) -> bool:
        assert self.process.poll() is None, self.log.read_text()[-2000:]
        try:
            return httpx.get(f"{self.url}/health/ready", timeout=5, verify=False).status_code == 200
        except httpx.TransportError:
            return False

    def stop(self) -> int:
        """Stop with SIGTERM; return the exit status."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(timeout=30)

    def group(self) -> list[int]:
        """Every living process of the house's process group."""
        pids = (int(folder.name) for folder in Path("/proc").iterdir() if folder.name.isdigit())
        return [pid for pid in pids if _group_of(pid) == self.process.pid]

    def workers(self) -> list[int]:
        """Processes of the house that run the worker's console script."""
        return [pid for pid in self.group() if b"corevault-worker" in _command(pid)]

    @contextmanager
    def client(self, key: str | None) -> Iterator[httpx.Client]:
        headers = {"Authorization": f"Bearer {key}"} if key else {}
        with httpx.Client(base_url=self.url, headers=headers, timeout=60, transport=Patient(verify=False)) as client:
            yield client

    def new_key(self, role: str) -> str:
        with self.client(self.key_file.read_text()) as admin:
            answer = admin.post("/v1/api-keys", json={"name": role, "role": role})
        assert answer.status_code == 201, answer.text
        return str(answer.json()["key"])


class Patient(httpx.HTTPTransport):
    """Repeats rate-limited requests after the time in ``Retry-After``.

    A fast machine sends more requests than one key may. The addresses have no TLS; ``verify=False`` saves each client
    the 20 ms of processor time that reading the root certificates takes.
    """

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        answer = super().handle_request(request)
        while answer.status_code == httpx.codes.TOO_MANY_REQUESTS and isinstance(request.stream, httpx.ByteStream):
            answer.close()
            time.sleep(int(answer.headers["Retry-After"]))
            answer = super().handle_request(request)
        return answer


def _group_of(pid: int) -> int:
    try:
        return os.getpgid(pid)
    except ProcessLookupError:
        return -1


def _command(pid: int) -> bytes:
    try:
        return (Path("/proc") / str(pid) / "cmdline").read_bytes()
    except (FileNotFoundError, ProcessLookupError):
        return b""


def declaration(**changes: Any) -> dict[str, Any]:
    """The body that declares a small private dataset."""
    body = {
        "name": "clinic",
        "sensitivity": "private",
        "columns": COLUMNS,
        "privacy_unit": {"kind": "row"},
        "slots": 2000,
        "budget": {"epsilon": 2.0, "delta": 1e-6},
    }
    return {name: value for name, value in (body | changes).items() if value is not None}


def ready_dataset(owner: httpx.Client, content: bytes | None = None, **changes: Any) -> str:
    """Declare, upload and wait; the dataset's id."""
    created = owner.post("/v1/datasets", json=declaration(**changes))
    assert created.status_code == 201, created.text
    name = str(created.json()["id"])
    body = content if content is not None else table(next(_SIZES))  # identical bytes would be one population's
    sent = owner.put(f"/v1/datasets/{name}/content", content=body, headers={"Content-Type": "text/csv"})
    assert sent.status_code == 202, sent.text
    until(lambda: owner.get(f"/v1/datasets/{name}").json()["status"] == "ready", 40)
    return name


def job_body(dataset: str, **changes: Any) -> dict[str, Any]:
    """A small job by target epsilon."""
    body = {"dataset_id": dataset, "method": "dp-psvi", "size": 8, "model": MODEL, "privacy": {"epsilon": 0.3}}
    return body | {"parameters": {"iterations": 20, "sampling_rate": 0.2, "posterior_draws": 20}} | changes


def wait_for_job(client: httpx.Client, job: str, seconds: float = 60) -> dict[str, Any]:
    """Wait until the job has ended; return it."""

    def probe() -> dict[str, Any] | None:
        body: dict[str, Any] = client.get(f"/v1/jobs/{job}").json()
        return body if body["status"] in {"succeeded", "failed", "cancelled"} else None

    body: dict[str, Any] = until(probe, seconds)
    return body
