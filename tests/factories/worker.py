"""A whole installation in one process: the API's services, and a worker that is called directly."""

import copy
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import httpx
import numpy as np
from numpy.typing import NDArray

from app.auth.caller import Caller
from app.datasets.disposal import Disposal
from app.datasets.facts import digest_facts
from app.db import Database
from app.inference.core.row_source import RowSource
from app.jobs import service
from app.jobs.lifecycle import Lifecycle
from app.jobs.models import Job
from app.jobs.schemas import JobBody
from app.ledger import HighWaterMark, Ledger
from app.main import create_app, make_verification_key
from app.queue import INGEST_CONTENT, RUN_JOB, TaskQueue
from app.releases.publication import Publisher
from app.services import Limits, Services
from app.vault.areas import WorkerAreas
from app.vault.keys import WorkerKeys, create_keys, load_api_keys, load_worker_keys
from app.vault.marks import open_marks
from app.vault.signing import Signer
from tests.factories import rows
from tests.factories.queue import RecordingQueue
from tests.factories.services import areas_at, worker_areas_at
from tests.factories.transport import AppTransport
from workers.assignments import Assignment
from workers.enclave import Limits as EnclaveLimits
from workers.enclave import OpeningKey
from workers.ingest_task import Ingestion
from workers.run_task import Bounds, Pace, Runner
from workers.split_queries.coordinator import Sharing
from workers.split_queries.helper import Helper
from workers.sweeper import Sweeper
from workers.tables import EnclaveTables

MAX_EPSILON = 20.0
SLOTS = 1_000
LIMIT = 2.0
DELTA = 1e-6
JOB: dict[str, Any] = {
    "method": "dp-psvi",
    "size": 6,
    "model": {"family": "logistic-regression", "features": ["age", "hours", "sex"], "target": "income_gt_50k"},
    "privacy": {"noise_multiplier": 30.0, "sampling_rate": 1.0, "iterations": 5},
    "parameters": {"posterior_draws": 10},
}
"""A fast and cheap job on :meth:`House.ready_dataset`."""


class MemoryRows:
    """An unencrypted table of random rows, with the columns of :data:`tests.factories.rows.COLUMNS`."""

    slots = SLOTS
    rows_per_slot = 1

    def __init__(self) -> None:
        rng = np.random.Generator(np.random.PCG64(11))
        self._table: dict[str, NDArray[Any]] = {
            "age": rng.integers(17, 91, SLOTS).astype(np.float64),
            "hours": rng.uniform(1, 99, SLOTS),
            "sex": rng.integers(0, 2, SLOTS).astype(np.uint16),
            "income_gt_50k": rng.integers(0, 2, SLOTS).astype(np.float64),
            "_present": np.ones(SLOTS, np.uint8),
        }

    def gather(self, indices: NDArray[np.int64]) -> Mapping[str, NDArray[Any]]:
        return {name: values[indices] for name, values in self._table.items()}


@contextmanager
def memory_tables(_: Assignment) -> Iterator[MemoryRows]:
    """Open an unencrypted table for a runner, in place of the enclave's."""
    yield MemoryRows()


@dataclass(frozen=True)
class House:
    """API and worker on one database and store, with a queue that :meth:`work` empties."""

    services: Services
    areas: WorkerAreas
    keys: WorkerKeys
    queue: RecordingQueue

    @property
    def database(self) -> Database:
        return self.services.database

    @property
    def ledger(self) -> Ledger:
        return self.services.ledger

    @property
    def lifecycle(self) -> Lifecycle:
        return Lifecycle(self.services.ledger, self.queue)

    def client(self) -> httpx.Client:
        """Make a client of the API in this process; use it as a context manager."""
        transport = AppTransport(create_app(self.services, metrics=False))
        return httpx.Client(transport=transport, base_url="http://corevault.test")

    def runner(
        self,
        tables: Callable[[Assignment], AbstractContextManager[RowSource]] | None = None,
        pace: Pace | None = None,
        *,
        parts: int = 1,
        queue: TaskQueue | None = None,
        bounds: Bounds | None = None,
    ) -> Runner:
        """Make a new worker that splits queries into ``parts``.

        It uses ``tables`` in place of the enclave's, if they are given.
        """
        key = OpeningKey(self.keys.opening_key, self.keys.opening_retired, self.keys.fingerprint_key)
        opening = EnclaveTables(self.areas.vault, key)
        sharing = Sharing(self.areas.vault, key, queue or self.queue, parts, least_rows=1)
        return Runner(
            self.database,
            self.ledger,
            self.lifecycle,
            publisher=Publisher(self.areas.released, Signer(self.keys.release_seed)),
            keys=self.areas.keys,
            tables=tables or opening,
            sharing=sharing,
            pace=pace or Pace(),
            bounds=bounds,
        )

    def helper(self, tables: Callable[[Assignment], AbstractContextManager[RowSource]] | None = None) -> Helper:
        """Make a worker that computes parts of other workers' queries."""
        key = OpeningKey(self.keys.opening_key, self.keys.opening_retired, self.keys.fingerprint_key)
        tables = tables or EnclaveTables(self.areas.vault, key)
        return Helper(self.database, self.ledger, self.areas, key, tables)

    def ingestion(self) -> Ingestion:
        key = OpeningKey(self.keys.opening_key, self.keys.opening_retired, self.keys.fingerprint_key)
        return Ingestion(self.database, self.ledger, self.areas, key, EnclaveLimits(), Pace())

    @cached_property
    def sweeper(self) -> Sweeper:
        return Sweeper(self.database, self.ledger, self.lifecycle, self.queue, Disposal(self.areas))

    def ready_dataset(self, owner: rows.Key, *, shared_with: tuple[str, ...] = (), **fields: Any) -> str:
        """Create a dataset with an account and a content in force; return its id.

        The content has no table, so use runners with :func:`memory_tables`.
        """
        with self.database.write() as tx:
            dataset = rows.dataset(tx, owner.id, shared_with=shared_with, slots=SLOTS, **fields)
            self.areas.keys.keep(dataset.id, b"sealed")
            rows.content(tx, dataset.id, table_object="0" * 32, wrapped_key=b"wrapped")
            if dataset.sensitivity == "private":
                self.ledger.open_account(
                    tx,
                    owner_id=owner.id,
                    population=dataset.population,
                    dataset_id=dataset.id,
                    unit=dict(dataset.privacy_unit),
                    slots=SLOTS,
                    facts=digest_facts(dataset),
                    epsilon=LIMIT,
                    delta=DELTA,
                )
            return dataset.id

    def job(self, dataset_id: str, caller: rows.Key, **changes: Any) -> str:
        """Submit a job; return its id."""
        body = JobBody.model_validate(job_body(dataset_id, **changes))
        who = Caller(caller.id, caller.role, "a key")
        with self.database.write() as tx:
            return service.submit(tx, self.ledger, self.lifecycle, who, body).job.id

    def run(self, job_id: str) -> None:
        """Deliver the job's message once, with :func:`memory_tables`."""
        self.runner(memory_tables).run(job_id)

    def read(self, job_id: str) -> Job:
        with self.database.read() as session:
            return session.get_one(Job, job_id)

    def charge(self, job_id: str) -> str:
        """Return the state of the job's reservation."""
        with self.database.read() as session:
            return self.ledger.state(session, job_id)

    def work(self) -> None:
        """Process all messages in the order in which they were sent."""
        while self.queue.sent:
            task, identifier = self.queue.sent.pop(0)
            {RUN_JOB: self.runner().run, INGEST_CONTENT: self.ingestion().run}[task](identifier)


def job_body(dataset_id: str, **changes: Any) -> dict[str, Any]:
    """Return a new request for :data:`JOB` on the dataset."""
    return copy.deepcopy(JOB) | {"dataset_id": dataset_id} | changes


def make_house(
    database: Database, folder: Path, storage_url: str | None = None, *, mark_url: str | None = None
) -> House:
    """Make a house with new keys below ``folder``.

    By default, objects are stored below ``folder`` too. With ``mark_url`` the house has a high-water mark there, and
    refuses to write to a database that is behind it.
    """
    storage_url = storage_url or (folder / "storage").as_uri()
    create_keys(folder / "keys")
    api_keys, worker_keys = load_api_keys(folder / "keys"), load_worker_keys(folder / "keys")
    signer, queue = Signer(api_keys.ledger_seed), RecordingQueue()
    mark = None if mark_url is None else HighWaterMark(open_marks(mark_url), signer)
    database = database if mark is None else Database(database.engine, mark.confirm)
    ledger = Ledger(signer, MAX_EPSILON, mark)
    services = Services(
        database=database,
        ledger=ledger,
        areas=areas_at(storage_url),
        queue=queue,
        signer=signer,
        sealing_key=api_keys.sealing_key,
        identity_key=rows.IDENTITY_KEY,
        verification_keys=(
            make_verification_key(api_keys.ledger_public, "ledger"),
            make_verification_key(api_keys.release_public, "release"),
        ),
        limits=Limits(upload_bytes=2**20, slots=1_000_000),
        on_dataset_deleted=Lifecycle(ledger, queue).dataset_deleted,
    )
    return House(services, worker_areas_at(storage_url), worker_keys, queue)
