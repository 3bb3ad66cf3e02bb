"""Rows of jobs with the share of their planned steps."""

from collections.abc import Iterable

from app.dashboard.ledger_history import describe_job
from app.jobs.models import Job
from app.jobs.repository import ENDED
from app.jobs.views import compute_progress


def list_progress(jobs: Iterable[Job]) -> list[tuple[Job, str, int | None]]:
    """List each job with its model in words and its progress in per cent; None for an ended job."""
    return [(job, describe_job(job), _compute_percent(job)) for job in jobs]


def _compute_percent(job: Job) -> int | None:
    return None if job.status in ENDED else round(compute_progress(job).fraction * 100)
