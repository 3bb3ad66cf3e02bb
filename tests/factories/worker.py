"""A whole installation in one folder and one process: the API's services, and a worker that is called directly."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path

import httpx

from app.db import Database
from app.inference.protocol import RowSource
from app.jobs.lifecycle import Lifecycle
from app.ledger import Ledger
from app.main import create_app, verification_key
from app.queue import INGEST_CONTENT, RUN_JOB
from app.releases.publication import Publisher
from app.services import Limits, Services
from app.vault.keys import WorkerKeys, create_keys, load_api_keys, load_worker_keys
from app.vault.signing import Signer
from app.vault.store import open_store
from tests.factories.queue import RecordingQueue
from tests.factories.transport import AppTransport
from workers.enclave import Limits as EnclaveLimits
from workers.enclave import OpeningKey
from workers.ingestion import Ingestion
from workers.runner import Assignment, Pace, Runner
from workers.sweeper import Sweeper
from workers.tables import EnclaveTables

MAX_EPSILON = 20.0


@dataclass(frozen=True)
class House:
    """API and worker over one database, one store and a queue that is emptied by hand."""

    services: Services
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
        """Calls the API in this process; use as a context manager."""
        transport = AppTransport(create_app(self.services, metrics=False))
        return httpx.Client(transport=transport, base_url="http://corevault.test")

    def runner(
        self,
        tables: "Callable[[Assignment], AbstractContextManager[RowSource]] | None" = None,
        pace: Pace | None = None,
    ) -> Runner:
        """A worker of its own, with ``tables`` instead of the enclave's where given."""
        opening = EnclaveTables(self.services.store, OpeningKey(self.keys.opening_key))
        return Runner(
            self.database,
            self.ledger,
            self.lifecycle,
            publisher=Publisher(self.services.store, Signer(self.keys.release_seed)),
            tables=tables or opening,
            pace=pace or Pace(),
        )

    def ingestion(self) -> Ingestion:
        key = OpeningKey(self.keys.opening_key)
        return Ingestion(self.database, self.ledger, self.services.store, key, EnclaveLimits(), Pace())

    def sweeper(self) -> Sweeper:
        return Sweeper(self.database, self.lifecycle, self.queue, self.services.store)

    def work(self) -> None:
        """Carry out all messages, in the order in which they were sent."""
        while self.queue.sent:
            task, identifier = self.queue.sent.pop(0)
            {RUN_JOB: self.runner().run, INGEST_CONTENT: self.ingestion().run}[task](identifier)


def make_house(database: Database, folder: Path) -> House:
    """A house with new keys below ``folder``."""
    create_keys(folder / "keys")
    api_keys, worker_keys = load_api_keys(folder / "keys"), load_worker_keys(folder / "keys")
    signer, queue = Signer(api_keys.ledger_seed), RecordingQueue()
    ledger = Ledger(signer, MAX_EPSILON)
    services = Services(
        database=database,
        ledger=ledger,
        store=open_store((folder / "storage").as_uri()),
        queue=queue,
        signer=signer,
        sealing_key=api_keys.sealing_key,
        verification_keys=(
            verification_key(api_keys.ledger_public, "ledger"),
            verification_key(api_keys.release_public, "release"),
        ),
        limits=Limits(upload_bytes=2**20, slots=1_000_000),
        on_dataset_deleted=Lifecycle(ledger, queue).dataset_deleted,
    )
    return House(services, worker_keys, queue)
