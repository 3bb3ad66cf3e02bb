"""What the database says of the house at the moment, as Prometheus metrics: queues, jobs, ledger, sweeper, audit log.

Workers answer no HTTP, so all that is known of them is read here from the rows that they keep. Labels are words of our
own (kinds, statuses, stages, states): no id, no name, no value.
"""

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from threading import Lock
from typing import Final

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector
from sqlalchemy import func, select
from sqlalchemy.exc import SQLAlchemyError

from app.audit.models import AuditEntry
from app.datasets.models import Content
from app.db import Database, ReadSession, now
from app.jobs.lifecycle import Stage
from app.jobs.models import Job, WorkerLease
from app.ledger import metrics

CACHE_SECONDS: Final = 5.0
CLAIMS: Final = 200
"""How many of the latest claims the times to claim are taken from."""
JOB_STATUSES: Final = ("queued", "running", "succeeded", "failed", "cancelled")
CONTENT_STATUSES: Final = ("received", "ready", "rejected")
QUANTILES: Final = (0.5, 0.99, 1.0)


class Gauges(Collector):
    """Asks the database at most every few seconds, however often it is scraped."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._lock = Lock()
        self._read_at = -CACHE_SECONDS
        self._metrics: Sequence[Metric] = ()

    def describe(self) -> Iterable[Metric]:
        """Nothing beforehand: registering asks no database."""
        return ()

    def collect(self) -> Iterable[Metric]:
        with self._lock:
            if time.monotonic() - self._read_at >= CACHE_SECONDS:
                self._metrics = tuple(self._read())
                self._read_at = time.monotonic()
            return self._metrics

    def _read(self) -> Iterator[Metric]:
        try:
            with self._database.read() as session:
                found = [*_queues(session), *_jobs(session), *_ledger(session), *_house(session)]
        except SQLAlchemyError:
            yield _gauge("database_up", "Whether the database answers.", 0)
            return
        yield _gauge("database_up", "Whether the database answers.", 1)
        yield from found


def _queues(session: ReadSession) -> Iterator[Metric]:
    """What waits for a worker. Jobs are as old as their call, however often their message was sent again."""
    jobs = select(func.count(), func.min(Job.created_at)).where(Job.status == "queued")
    contents = select(func.count(), func.min(Content.received_at)).where(
        Content.status == "received", Content.lease_until.is_(None)
    )
    waiting = {"job": session.execute(jobs).one(), "content": session.execute(contents).one()}
    yield _family("queue_depth", "What waits for a worker.", "kind", {k: depth for k, (depth, _) in waiting.items()})
    ages = {kind: _age(since) for kind, (_, since) in waiting.items()}
    yield _family("queue_age_seconds", "How long the oldest has been waiting.", "kind", ages)


def _jobs(session: ReadSession) -> Iterator[Metric]:
    by_status = _count(session, Job.status, JOB_STATUSES)
    yield _family("jobs", "Jobs by status.", "status", by_status)
    running = select(Job.stage, func.count()).where(Job.status == "running").group_by(Job.stage)
    stages = {str(stage): 0.0 for stage in Stage} | {stage: float(count) for stage, count in session.execute(running)}
    yield _family("jobs_running", "Running jobs by stage.", "stage", stages)
    lost = session.scalar(select(func.sum(Job.attempts - Job.handovers - 1)).where(Job.attempts > 1)) or 0
    yield _counter("job_attempts_lost", "Attempts whose worker was lost and that were made again.", lost)
    oldest = session.scalar(select(func.min(Job.lease_until)).where(Job.status == "running"))
    yield _gauge("job_lease_overdue_seconds", "How far the stalest heartbeat is beyond its lease.", _age(oldest))
    yield _family("job_claim_seconds", "Time to claim of the latest jobs.", "quantile", _claims(session))


def _ledger(session: ReadSession) -> Iterator[Metric]:
    yield _family("reservations", "Reservations that have not ended.", "state", metrics.reservations(session))
    yield _counter("ledger_refusals", "Jobs that a budget has refused.", metrics.refusals(session))
    yield _gauge("ledger_accounts_frozen", "Accounts that are frozen.", metrics.count_frozen(session))


def _house(session: ReadSession) -> Iterator[Metric]:
    yield _family("contents", "Uploads by status.", "status", _count(session, Content.status, CONTENT_STATUSES))
    oldest = session.scalar(select(func.min(Content.received_at)).where(Content.status == "received"))
    yield _gauge("content_age_seconds", "How long the oldest upload is on its way into its table.", _age(oldest))
    sweeping = session.scalar(select(WorkerLease.until).where(WorkerLease.name == "sweeper"))
    swept = 0 if sweeping is None or sweeping < now() else 1
    yield _gauge("sweeper_up", "Whether a worker holds the sweeper's lease.", swept)
    unchained = session.scalar(select(func.count()).select_from(AuditEntry).where(AuditEntry.sequence.is_(None))) or 0
    yield _gauge("audit_unchained", "Audit entries that have no place in the chain yet.", unchained)


def _count(session: ReadSession, column: object, words: Sequence[str]) -> Mapping[str, float]:
    query = select(column, func.count()).group_by(column)  # type: ignore[call-overload]
    counted = {word: float(count) for word, count in session.execute(query)}
    return {word: counted.get(word, 0.0) for word in words}


def _claims(session: ReadSession) -> Mapping[str, float]:
    """Quantiles of the seconds between a job's call and its first claim."""
    latest = select(Job.created_at, Job.started_at).where(Job.started_at.is_not(None)).order_by(Job.id.desc())
    claims = session.execute(latest.limit(CLAIMS))
    waited = sorted((started - called).total_seconds() for called, started in claims if started is not None)
    if not waited:
        return {}
    return {str(share): waited[min(len(waited) - 1, int(share * len(waited)))] for share in QUANTILES}


def _age(since: datetime | None) -> float:
    return 0.0 if since is None else max(0.0, (now() - since).total_seconds())


def _gauge(name: str, told: str, value: float) -> Metric:
    return GaugeMetricFamily(f"corevault_{name}", told, value=value)


def _counter(name: str, told: str, value: float) -> Metric:
    return CounterMetricFamily(f"corevault_{name}", told, value=value)


def _family(name: str, told: str, label: str, values: Mapping[str, float]) -> Metric:
    family = GaugeMetricFamily(f"corevault_{name}", told, labels=[label])
    for word, value in values.items():
        family.add_metric([word], value)
    return family
