"""Jobs as callers see them."""

from app.inference import plans
from app.inference.protocol import Mechanism
from app.jobs.models import Job
from app.jobs.schemas import Cost, ErrorView, JobView, MechanismView, Progress
from app.releases.statement import model_json


def job_view(job: Job) -> JobView:
    """What everybody who may see the job is shown of it."""
    return JobView.model_validate(
        {
            "id": job.id,
            "dataset_id": job.dataset_id,
            "status": job.status,
            "progress": progress(job),
            "cost": _cost(job),
            "release_id": job.release_id,
            "error": None if job.error_code is None else ErrorView.model_validate({"code": job.error_code}),
            "method": job.plan["method"],
            "size": job.plan["size"],
            "model": model_json(plans.model_from_json(job.plan["model"])),
            "parameters": job.plan["parameters"],
            "mechanism": job.plan["mechanism"],
            "cancel_requested": job.cancel_requested,
            "created_at": job.created_at,
            "started_at": job.started_at,
            "ended_at": job.ended_at,
        }
    )


def progress(job: Job) -> Progress:
    """The share of planned steps that are done."""
    fraction = min(1.0, job.steps_done / job.steps_planned) if job.steps_planned else 0.0
    return Progress(fraction=fraction, stage=job.stage)


def mechanism_view(mechanism: Mechanism | None) -> MechanismView | None:
    return None if mechanism is None else MechanismView.model_validate(mechanism, from_attributes=True)


def _cost(job: Job) -> Cost | None:
    if job.cost_epsilon is None or job.cost_delta is None:
        return None
    return Cost(epsilon=job.cost_epsilon, delta=job.cost_delta)
