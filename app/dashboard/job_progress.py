"""Rows of jobs with their cost and the share of their planned steps."""

from collections.abc import Iterable
from dataclasses import dataclass

from app.dashboard.ledger_history import describe_job
from app.jobs.models import Job
from app.jobs.repository import ENDED
from app.jobs.views import compute_progress, make_settlement


@dataclass(frozen=True, slots=True)
class JobRow:
    """A job with its model in words.

    Attributes:
        percent: its progress; None for an ended job.
        epsilon: the charge of an ended job, or the reservation of another one; None on public data.
    """

    job: Job
    model: str
    percent: int | None
    epsilon: float | None


def list_progress(jobs: Iterable[Job]) -> list[JobRow]:
    """List the rows of jobs."""
    return [JobRow(job, describe_job(job), _compute_percent(job), _find_epsilon(job)) for job in jobs]


def _compute_percent(job: Job) -> int | None:
    return None if job.status in ENDED else round(compute_progress(job).fraction * 100)


def _find_epsilon(job: Job) -> float | None:
    settlement = make_settlement(job)
    return job.cost_epsilon if settlement is None else settlement.charged.epsilon
