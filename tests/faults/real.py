"""A whole installation of real processes, which can be killed and are restarted."""

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar

import httpx

from app.auth.service import Keys
from app.db import Database, make_engine
from app.jobs.models import Job
from app.ledger import Ledger
from app.vault.keys import create_keys, load_api_keys
from app.vault.signing import Signer
from support.processes import Started, free_port
from tests.factories.datasets import CSV, declaration
from tests.faults.process import Forked, Process
from tests.faults.test_killed_worker import table

PACE = {"LEASE_SECONDS": "1.5", "HEARTBEAT_SECONDS": "0.3", "SWEEP_SECONDS": "0.2"}
THREADS = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
PATIENCE_SECONDS = 90.0
Start = Callable[[Sequence[str], Mapping[str, str], Path, Path], Process]
Result = TypeVar("Result")


def until(condition: Callable[[], Result | None], description: str) -> Result:
    """Wait until ``condition`` returns a result; return it."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while (result := condition()) is None:
        assert time.monotonic() < deadline, f"this did not happen in time: {description}"
        time.sleep(0.05)
    return result


class Supervised:
    """A process that is restarted whenever it has ended, as by an operator's supervisor."""

    def __init__(self, start: Callable[[], Process]) -> None:
        self._start, self._ending = start, threading.Event()
        self.process = start()
        self._keeper = threading.Thread(target=self._keep, daemon=True)
        self._keeper.start()

    def _keep(self) -> None:
        while not self._ending.wait(0.1):
            if self.process.poll() is not None:
                self.process = self._start()

    def signal(self, number: int) -> None:
        """Send a signal to the whole group."""
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, number)

    def end(self) -> None:
        self._ending.set()
        self._keeper.join()
        self.process.send_signal(signal.SIGTERM)
        with suppress(subprocess.TimeoutExpired):
            self.process.wait(20)
        self.signal(signal.SIGKILL)
        self.process.wait()


class Real(Started):
    """API and workers on the given services; use as a context manager.

    Args:
        folder: of the installation.
        database_url: of a migrated database.
        services: further settings, without their prefix.
        workers: the number of worker processes, each with one run at a time.
        start: starts a process.
    """

    def __init__(
        self,
        folder: Path,
        database_url: str,
        services: Mapping[str, str],
        workers: int = 2,
        start: Start = Forked,
    ) -> None:
        self.folder, self.orders = folder, folder / "orders"
        self.orders.mkdir()
        create_keys(folder / "keys")
        self._workers, self._start = workers, start
        self.port = free_port()
        settings = {"DATA_DIR": str(folder), "DATABASE_URL": database_url, **PACE, **services}
        own_settings = {f"COREVAULT_{name}": value for name, value in settings.items()}
        others = {name: value for name, value in os.environ.items() if not name.startswith("COREVAULT_")}
        self._environment = others | own_settings | THREADS
        self.database = Database(make_engine(database_url))
        api_keys = load_api_keys(folder / "keys")
        self.ledger = Ledger(Signer(api_keys.ledger_seed), 20.0)
        with self.database.write() as tx:
            key, secret = Keys(api_keys.identity_key).create(tx, "owner", "owner")
            self.owner_id = key.id
        self.api = httpx.Client(
            base_url=f"http://127.0.0.1:{self.port}",
            headers={"Authorization": f"Bearer {secret}"},
            timeout=60,
            verify=False,
        )
        self.processes: dict[str, Supervised] = {}
        self._numbers = iter(range(10**9))

    def begin(self) -> None:
        self.start_api()
        self.start_workers()
        until(self._ready, "the API comes up")

    def start_api(self) -> None:
        self.processes["api"] = self._keep("corevaultd", "api", "--port", str(self.port))

    def start_workers(self) -> None:
        for number in range(self._workers):
            self.processes[f"worker {number}"] = self._keep("corevault-worker")

    def stop(self) -> None:
        """Stop all processes in an orderly way; calls are answered again after a start."""
        for process in self.processes.values():
            process.end()
        self.processes.clear()
        self.database.dispose()

    def end(self) -> None:
        self.stop()
        self.api.close()

    def command(self, *arguments: str) -> "subprocess.CompletedProcess[str]":
        """Run a command of ``corevaultd``."""
        command = [str(Path(sys.executable).with_name("corevaultd")), *arguments]
        return subprocess.run(command, env=self._environment, capture_output=True, text=True, check=False)

    def _keep(self, name: str, *arguments: str) -> Supervised:
        log = self.folder / "log"
        return Supervised(lambda: self._start((name, *arguments), self._environment, log, self.orders))

    def _ready(self) -> bool | None:
        with suppress(httpx.TransportError):
            return self.api.get("/health/live").status_code == 200 or None
        return None

    @property
    def workers(self) -> list[Supervised]:
        return [process for name, process in self.processes.items() if name != "api"]

    def order(self, point: str, action: str) -> None:
        """Request ``action`` from the next process that reaches ``point``."""
        (self.orders / f"{next(self._numbers)}.{point}.{action}").touch()

    def wake(self) -> None:
        """Continue the one process that was ordered to stop."""
        (stopped,) = self.orders.glob("stopped.*")
        os.kill(int(stopped.suffix.removeprefix(".")), signal.SIGCONT)

    def ready_dataset(self, content: bytes | None = None, **changes: Any) -> str:
        body = declaration(slots=1_000, **changes)
        dataset_id = str(self.call("POST", "/v1/datasets", json=body).json()["id"])
        self.call("PUT", f"/v1/datasets/{dataset_id}/content", content=content or table(), headers=CSV)
        path = f"/v1/datasets/{dataset_id}"
        until(lambda: self.call("GET", path).json()["status"] == "ready" or None, "the content is ready")
        return dataset_id

    def submit(self, body: Mapping[str, Any], key: str) -> str:
        """Submit a job, with retries under one idempotency key; return its id."""

        def post() -> str | None:
            answer = self.call("POST", "/v1/jobs", json=body, headers={"Idempotency-Key": key})
            assert answer.status_code in {202, 409, 500, 503}, answer.text
            return str(answer.json()["id"]) if answer.status_code == 202 else None

        return until(post, "the job is accepted")

    def call(self, method: str, path: str, **arguments: Any) -> httpx.Response:
        """Call the API, with retries while it is away."""

        def request() -> httpx.Response | None:
            with suppress(httpx.TransportError):
                return self.api.request(method, path, **arguments)
            return None

        return until(request, f"{method} {path}")

    def read(self, job_id: str) -> Job:
        with self.database.read() as session:
            return session.get_one(Job, job_id)

    def wait(self, job_id: str) -> Job:
        """Wait until the job has ended; return it."""
        until(lambda: self.read(job_id).ended_at, f"{job_id} ends")
        return self.read(job_id)
