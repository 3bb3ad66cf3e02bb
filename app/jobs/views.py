"""Response bodies of jobs."""

from typing import Final

from app.auth.schemas import KeyReference
from app.inference.core import plan_json
from app.inference.core.plan import Mechanism
from app.jobs.models import Job
from app.jobs.repository import JobNames
from app.jobs.schemas import Cost, ErrorView, JobView, MechanismView, Progress, Settlement
from app.releases.statement import make_model_json

_PUBLISHED: Final = "The release was published, so the full price was charged."
_OPENED: Final = "The job ended after it had opened the data, so the full price was charged and cannot be refunded."
_VOIDED: Final = "The job ended before it opened the data, so nothing was charged."


def make_job_view(job: Job, names: JobNames) -> JobView:
    """Make the view of a job. All callers who may see the job get the same view, up to the dataset's name."""
    return JobView.model_validate(
        {
            "id": job.id,
            "dataset_id": job.dataset_id,
            "dataset_name": names.dataset,
            "submitted_by": KeyReference(id=job.caller_id, name=names.submitter),
            "purpose": job.purpose,
            "status": job.status,
            "progress": compute_progress(job),
            "cost": _cost(job),
            "release_id": job.release_id,
            "error": None if job.error_code is None else ErrorView.model_validate({"code": job.error_code}),
            "method": job.plan["method"],
            "size": job.plan["size"],
            "model": make_model_json(plan_json.model_from_json(job.plan["model"])),
            "parameters": job.plan["parameters"],
            "mechanism": job.plan["mechanism"],
            "cancel_requested": job.cancel_requested,
            "settlement": make_settlement(job),
            "created_at": job.created_at,
            "started_at": job.started_at,
            "ended_at": job.ended_at,
        }
    )


def compute_progress(job: Job) -> Progress:
    """Return the share of planned steps that are done."""
    fraction = min(1.0, job.steps_done / job.steps_planned) if job.steps_planned else 0.0
    return Progress(fraction=fraction, stage=job.stage)


def make_mechanism_view(mechanism: Mechanism | None) -> MechanismView | None:
    return None if mechanism is None else MechanismView.model_validate(mechanism, from_attributes=True)


def make_settlement(job: Job) -> Settlement | None:
    """Make the charge of an ended job: nothing before its content was pinned, and the full price after.

    The transaction that opens the reservation also pins the content.
    """
    cost = _cost(job)
    if cost is None or job.ended_at is None:
        return None
    if job.content_id is None:
        return Settlement(charged=Cost(epsilon=0.0, delta=0.0), reason=_VOIDED)
    return Settlement(charged=cost, reason=_PUBLISHED if job.status == "succeeded" else _OPENED)


def _cost(job: Job) -> Cost | None:
    if job.cost_epsilon is None or job.cost_delta is None:
        return None
    return Cost(epsilon=job.cost_epsilon, delta=job.cost_delta)
