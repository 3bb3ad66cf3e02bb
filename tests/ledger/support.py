"""Helpers for tests of the ledger: each call of a bench is one committed transaction."""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, TypeVar

from sqlalchemy import select

from app.db import Base, Database, WriteSession, make_engine
from app.ledger import Budget, Charge, Commitment, HighWaterMark, Ledger, Preview, Terms
from app.ledger.integrity.reconciliation import Reconciled
from app.privacy.calibration import calibrate
from app.privacy.events import GaussianEvent, PoissonSampledEvent, PrivacyEvent, SelfComposedEvent
from app.vault.marks import open_marks
from app.vault.signing import Signer

T = TypeVar("T")
DELTA = 1e-6
SEED = bytes(range(32))
Restore = Callable[[], None]
FACTS = "f" * 64


def commitment(**changes: Any) -> Commitment:
    """A commitment to a plan on a dataset as :meth:`Bench.open_account` declares it."""
    values: dict[str, Any] = {"plan": "a" * 64, "facts": FACTS, "unit": {"kind": "row"}, "slots": 1_000}
    return Commitment(**(values | changes))


def gaussian(noise_multiplier: float, count: int = 1) -> Charge:
    event = GaussianEvent(noise_multiplier)
    return Charge((event if count == 1 else SelfComposedEvent(event, count),))


def sampled(noise_multiplier: float, rate: float, count: int) -> Charge:
    return Charge((SelfComposedEvent(PoissonSampledEvent(rate, GaussianEvent(noise_multiplier)), count),))


@lru_cache
def costing(epsilon: float, delta: float = DELTA) -> Charge:
    """A single full-batch job calibrated to ``epsilon``."""
    return gaussian(calibrate(lambda noise: (GaussianEvent(noise),), epsilon, delta))


@dataclass
class Bench:
    database: Database
    ledger: Ledger
    reserved: dict[str, tuple[Charge, str]] = field(default_factory=dict)
    declared: dict[str, dict[str, Any]] = field(default_factory=dict)

    def open_account(self, dataset_id: str, *, population: str = "people", **fields: Any) -> None:
        defaults: dict[str, Any] = {"owner_id": "key_o", "unit": {"kind": "row"}, "slots": 1_000, "facts": FACTS}
        values = defaults | {"epsilon": 2.0, "delta": DELTA} | fields
        self.declared[dataset_id] = {name: values[name] for name in ("unit", "slots", "facts")}
        self.write(lambda tx: self.ledger.open_account(tx, population=population, dataset_id=dataset_id, **values))

    def write(self, action: Callable[[WriteSession], T]) -> T:
        with self.database.write() as tx:
            return action(tx)

    def reserve(self, job_id: str, charge: Charge, dataset_id: str = "ds_a") -> Preview:
        pinned = commitment(**self.declared.get(dataset_id, {}))
        preview = self.write(lambda tx: self.ledger.reserve(tx, dataset_id, job_id, charge, commitment=pinned))
        self.reserved[job_id] = (charge, dataset_id)
        return preview

    def terms(self, job_id: str, **changes: Any) -> Terms:
        """The terms of the job's reservation, with ``changes``."""
        entries = Base.metadata.tables["ledger_entries"]
        query = select(entries.c.dataset_id, entries.c.body)
        with self.database.read() as session:
            row = session.execute(query.where(entries.c.job_id == job_id, entries.c.kind == "reserved")).one()
        cost = {name: row.body[name] for name in ("epsilon", "delta")}
        values = {"dataset_id": row.dataset_id, "commitment": commitment(), **cost}
        return Terms(**(values | changes))

    def open(self, job_id: str) -> None:
        """Open with the plan of the reservation."""
        charge, _ = self.reserved[job_id]
        terms = self.terms(job_id)
        self.write(lambda tx: self.ledger.open(tx, job_id, charge.events, terms))

    def settle(self, job_id: str, executed: tuple[PrivacyEvent, ...] = ()) -> None:
        terms = self.terms(job_id) if executed else None
        self.write(lambda tx: self.ledger.settle(tx, job_id, executed, terms))

    def void(self, job_id: str) -> None:
        self.write(lambda tx: self.ledger.void(tx, job_id))

    def change_limit(self, epsilon: float, delta: float | None = None, dataset_id: str = "ds_a") -> None:
        self.write(lambda tx: self.ledger.change_limit(tx, dataset_id, epsilon, delta))

    def checkpoint(self, dataset_id: str = "ds_a") -> None:
        self.write(lambda tx: self.ledger.checkpoint(tx, dataset_id))

    def run(self, job_id: str, charge: Charge, dataset_id: str = "ds_a") -> None:
        """A job from its reservation to its settled charge."""
        self.reserve(job_id, charge, dataset_id)
        self.open(job_id)
        self.checkpoint(dataset_id)
        self.settle(job_id, charge.events)
        self.checkpoint(dataset_id)

    def budget(self, dataset_id: str = "ds_a") -> Budget:
        with self.database.read() as session:
            return self.ledger.budget(session, dataset_id)

    def preview(self, charge: Charge, dataset_id: str = "ds_a") -> Preview:
        with self.database.read() as session:
            return self.ledger.preview(session, dataset_id, charge)

    def verify(self) -> tuple[str, ...]:
        with self.database.read() as session:
            return self.ledger.verify(session)


def guarded(database_url: str, mark_url: str) -> Bench:
    """Another process: an empty cache, and a database behind a guard."""
    mark = HighWaterMark(open_marks(mark_url), Signer(SEED))
    database = Database(make_engine(database_url), mark.confirm)
    return Bench(database, Ledger(Signer(SEED), max_epsilon=20.0, mark=mark))


def reconcile(database_url: str, mark_url: str, *, adopt: bool = False) -> list[Reconciled]:
    mark = HighWaterMark(open_marks(mark_url), Signer(SEED))
    database = Database(make_engine(database_url))
    try:
        with database.write() as tx:
            return Ledger(Signer(SEED), max_epsilon=20.0, mark=mark).reconcile(tx, adopt=adopt)
    finally:
        database.dispose()
