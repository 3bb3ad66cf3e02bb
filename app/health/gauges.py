"""Prometheus metrics from the database: queues, jobs, ledger, sweeper and audit log.

Workers serve no HTTP, so their metrics are read from the rows that they write. Labels are words of the code: kinds,
statuses, stages and states. They never contain an id, a name or a value of the data.
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
DETECTION_SECONDS: Final = 86_400.0
CLAIMS: Final = 200
"""Number of the latest claims from which the times to claim are computed."""
JOB_STATUSES: Final = ("queued", "running", "succeeded", "failed", "cancelled")
CONTENT_STATUSES: Final = ("received", "ready", "rejected")
QUANTILES: Final = (0.5, 0.99, 1.0)


class Gauges(Collector):
    """Reads the database at most every :data:`CACHE_SECONDS`, for any number of scrapes."""

    def __init__(self, database: Database, detection_seconds: float = DETECTION_SECONDS) -> None:
        """Prepare to read.

        ``detection_seconds``: the continuous audit has no power if it needs longer for a small defect.
        """
        self._database, self._detection_seconds = database, detection_seconds
        self._lock = Lock()
        self._read_at = -CACHE_SECONDS
        self._metrics: Sequence[Metric] = ()

    def describe(self) -> Iterable[Metric]:
        """Describe nothing, so that registration does not query the database."""
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
                families = [
                    *_queues(session),
                    *_jobs(session),
                    *_ledger(session),
                    *_installation(session),
                    *_continuous_audit(session, self._detection_seconds),
                ]
        except SQLAlchemyError:
            yield _gauge("database_up", "Whether the database answers.", 0)
            return
        yield _gauge("database_up", "Whether the database answers.", 1)
        yield from families


def _queues(session: ReadSession) -> Iterator[Metric]:
    """Count the work that waits for a worker. The age of a job counts from its submission."""
    jobs = select(func.count(), func.min(Job.created_at)).where(Job.status == "queued")
    contents = select(func.count(), func.min(Content.received_at)).where(
        Content.status == "received", Content.lease_until.is_(None)
    )
    waiting = {"job": session.execute(jobs).one(), "content": session.execute(contents).one()}
    depths = {kind: depth for kind, (depth, _) in waiting.items()}
    yield _family("queue_depth", "Jobs and uploads that wait for a worker.", "kind", depths)
    ages = {kind: _age(since) for kind, (_, since) in waiting.items()}
    yield _family("queue_age_seconds", "Waiting time of the oldest job or upload.", "kind", ages)


def _jobs(session: ReadSession) -> Iterator[Metric]:
    by_status = _count(session, Job.status, JOB_STATUSES)
    yield _family("jobs", "Jobs by status.", "status", by_status)
    running = select(Job.stage, func.count()).where(Job.status == "running").group_by(Job.stage)
    stages = {str(stage): 0.0 for stage in Stage} | {stage: float(count) for stage, count in session.execute(running)}
    yield _family("jobs_running", "Running jobs by stage.", "stage", stages)
    lost = session.scalar(select(func.sum(Job.attempts - Job.handovers - 1)).where(Job.attempts > 1)) or 0
    yield _counter("job_attempts_lost", "Attempts that were repeated because their worker was lost.", lost)
    oldest = session.scalar(select(func.min(Job.lease_until)).where(Job.status == "running"))
    yield _gauge("job_lease_overdue_seconds", "Time since the oldest lease of a running job expired.", _age(oldest))
    yield _family("job_claim_seconds", "Time to the first claim of the latest jobs.", "quantile", _claims(session))


def _ledger(session: ReadSession) -> Iterator[Metric]:
    yield _family("reservations", "Reservations that have not ended.", "state", metrics.count_reservations(session))
    yield _counter("ledger_refusals", "Jobs that were refused because of the budget.", metrics.count_refusals(session))
    yield _family("ledger_accounts_frozen", "Frozen accounts by cause.", "cause", metrics.count_causes(session))


def _installation(session: ReadSession) -> Iterator[Metric]:
    yield _family("contents", "Uploads by status.", "status", _count(session, Content.status, CONTENT_STATUSES))
    oldest = session.scalar(select(func.min(Content.received_at)).where(Content.status == "received"))
    yield _gauge("content_age_seconds", "Age of the oldest upload that is not processed.", _age(oldest))
    sweeping = session.scalar(select(WorkerLease.until).where(WorkerLease.name == "sweeper"))
    swept = 0 if sweeping is None or sweeping < now() else 1
    yield _gauge("sweeper_up", "Whether a worker holds the sweeper's lease.", swept)
    unchained = session.scalar(select(func.count()).select_from(AuditEntry).where(AuditEntry.sequence.is_(None))) or 0
    yield _gauge("audit_unchained", "Audit entries that are not in the chain yet.", unchained)


def _continuous_audit(session: ReadSession, detection_seconds: float) -> Iterator[Metric]:
    from app.continuous_audit.status import read_status  # noqa: PLC0415  (it loads SciPy, which the API loads late)

    status = read_status(session)
    yield _counter("continuous_audit_answers", "Answers of the continuous audit since its start.", status.answers)
    evidence = {"now": status.evidence, "largest": status.largest, "threshold": status.threshold}
    yield _family("continuous_audit_evidence", "Evidence (e-value) against the privacy mechanism.", "moment", evidence)
    states = {"alarm": status.has_alarm, "damaged": status.is_damaged and not status.is_unnoticed}
    refusing = {name: float(value) for name, value in states.items()}
    yield _family("continuous_audit_refuses", "Whether private data is not opened, by cause.", "cause", refusing)
    yield _gauge("continuous_audit_age_seconds", "Time since the last batch of the audit.", status.age_seconds)
    expected = status.expected_seconds
    yield _gauge("continuous_audit_detection_seconds", "Expected time to detect a small defect.", expected)
    lost = status.is_damaged or expected > detection_seconds
    yield _gauge("continuous_audit_power_lost", "Whether that takes longer than it should.", float(lost))


def _count(session: ReadSession, column: object, words: Sequence[str]) -> Mapping[str, float]:
    query = select(column, func.count()).group_by(column)  # type: ignore[call-overload]
    counted = {word: float(count) for word, count in session.execute(query)}
    return {word: counted.get(word, 0.0) for word in words}


def _claims(session: ReadSession) -> Mapping[str, float]:
    """Compute quantiles of the seconds from submission to first claim."""
    latest = select(Job.created_at, Job.started_at).where(Job.started_at.is_not(None)).order_by(Job.id.desc())
    claims = session.execute(latest.limit(CLAIMS))
    seconds = sorted((started - called).total_seconds() for called, started in claims if started is not None)
    if not seconds:
        return {}
    return {str(share): seconds[min(len(seconds) - 1, int(share * len(seconds)))] for share in QUANTILES}


def _age(since: datetime | None) -> float:
    return 0.0 if since is None else max(0.0, (now() - since).total_seconds())


def _gauge(name: str, documentation: str, value: float) -> Metric:
    return GaugeMetricFamily(f"corevault_{name}", documentation, value=value)


def _counter(name: str, documentation: str, value: float) -> Metric:
    return CounterMetricFamily(f"corevault_{name}", documentation, value=value)


def _family(name: str, documentation: str, label: str, values: Mapping[str, float]) -> Metric:
    family = GaugeMetricFamily(f"corevault_{name}", documentation, labels=[label])
    for word, value in values.items():
        family.add_metric([word], value)
    return family
