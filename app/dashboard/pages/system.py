"""The state of the service, for administrators and auditors; it changes nothing."""

import math
from collections.abc import Mapping, Sequence
from typing import Final

from fastapi import Request
from sqlalchemy.exc import SQLAlchemyError
from starlette.responses import Response

from app.dashboard.rendering import render
from app.dashboard.routing import make_page_router
from app.dashboard.visitors import OverseerVisitor
from app.errors import DependencyUnavailable
from app.health.gauges import Gauges
from app.health.readiness import Readiness
from app.jobs.workers import WorkerState, list_workers
from app.services import Services, Shared

router = make_page_router()
_SHOWN: Final[Mapping[tuple[str, str], str]] = {
    ("corevault_queue_depth", "job"): "Jobs that wait for a worker",
    ("corevault_queue_depth", "content"): "Uploads that wait for a worker",
    ("corevault_jobs", "running"): "Running jobs",
    ("corevault_jobs", "succeeded"): "Jobs that succeeded",
    ("corevault_jobs", "failed"): "Jobs that failed",
    ("corevault_jobs", "cancelled"): "Jobs that were cancelled",
    ("corevault_job_attempts_lost_total", ""): "Attempts that were repeated after a lost worker",
    ("corevault_reservations", "reserved"): "Reservations that are not opened",
    ("corevault_reservations", "opened"): "Reservations that are opened and not settled",
    ("corevault_ledger_refusals_total", ""): "Jobs that budgets refused",
    ("corevault_ledger_accounts_frozen", "run"): "Accounts that a failed run froze",
    ("corevault_ledger_accounts_frozen", "mismatch"): "Accounts that do not verify",
    ("corevault_ledger_accounts_frozen", "unknown"): "Accounts that are frozen for an unknown cause",
    ("corevault_audit_unchained", ""): "Audit entries that are not in the chain yet",
    ("corevault_continuous_audit_answers_total", ""): "Answers of the continuous privacy audit",
}
"""Metric and label -> words. Counts of uploads by outcome are left out, because outcomes depend on rows."""


_MOST_WORKERS: Final = 100
_STATES: Final = {"alive": "Alive", "silent": "No sign of life", "unknown": "Unknown"}


@router.get("/system")
def show_system(request: Request, services: Shared, visitor: OverseerVisitor) -> Response:
    """Show the readiness of the service, its queues and its keys."""
    readiness = request.app.state.readiness
    assert isinstance(readiness, Readiness)
    fault, without = "", tuple[str, ...]()
    try:
        without = readiness.check()
    except DependencyUnavailable as error:
        fault = error.detail
    values = {
        (sample.name, next(iter(sample.labels.values()), "")): sample.value
        for metric in Gauges(services.database, request.app.state.detection_seconds).collect()
        for sample in metric.samples
    }
    return render(
        request,
        "system",
        visitor,
        twins=("/health/ready", f"/v1/workers?limit={_MOST_WORKERS}"),
        workers=_list_workers(services),
        names_of_states=_STATES,
        fault=fault,
        without=without,
        sweeps=values.get(("corevault_sweeper_up", ""), 0.0) > 0,
        figures=[(words, int(values[name])) for name, words in _SHOWN.items() if name in values],
        audit=_describe_audit(values),
        verification_keys=services.verification_keys,
        limits=services.limits,
    )


def _list_workers(services: Services) -> Sequence[WorkerState] | None:
    """List the newest workers; None if the database does not answer."""
    try:
        with services.database.read() as session:
            return list_workers(session, limit=_MOST_WORKERS)
    except (SQLAlchemyError, DependencyUnavailable):
        return None


def _describe_audit(values: Mapping[tuple[str, str], float]) -> Mapping[str, object] | None:
    """Put the figures of the continuous audit into words; None if the database does not answer."""
    prefix = "corevault_continuous_audit_"
    if (f"{prefix}power_lost", "") not in values:
        return None
    expected = values[f"{prefix}detection_seconds", ""]
    has_alarm, is_stopped = (values[f"{prefix}refuses", cause] > 0 for cause in ("alarm", "damaged"))
    evidence = {name: values[f"{prefix}evidence", name] for name in ("now", "largest", "threshold")}
    return {
        "has_alarm": has_alarm,
        "is_damaged": evidence["threshold"] == 0,  # it has no figures
        "is_stopped": has_alarm or is_stopped,
        "has_lost_power": values[f"{prefix}power_lost", ""] > 0,
        "evidence": [(name, f"{value:,.4g}") for name, value in evidence.items()],
        "minutes_since_last": round(values[f"{prefix}age_seconds", ""] / 60),
        "minutes_to_detect": round(expected / 60) if math.isfinite(expected) else None,
    }
