"""What an attempt of a job runs on, read back from the database's rows."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass

from app.datasets.facts import declared_facts, digest_facts
from app.datasets.models import Content, Dataset
from app.db import ReadSession
from app.errors import Internal
from app.inference.core import plan_json
from app.inference.core.row_source import RowSource
from app.jobs.lifecycle import Claim, is_accounted
from app.jobs.models import Job
from app.releases.statement import Run


@dataclass(frozen=True, slots=True)
class Assignment:
    """An opened attempt: what to run, and what opens the pinned content."""

    claim: Claim
    run: Run
    table_object: str
    wrapped_key: bytes
    dataset_box: bytes
    facts_digest: str

    @property
    def accounted(self) -> bool:
        return self.run.cost is not None


Tables = Callable[[Assignment], AbstractContextManager[RowSource]]
"""Opens the pinned table of an assignment: the enclave's part."""


def assignment(session: ReadSession, claim: Claim, job: Job, dataset_box: bytes) -> Assignment:
    """What an attempt of an opened ``job`` runs on; ``dataset_box`` holds the key of its dataset.

    Raises:
        Internal: for rows that cannot be: the content is gone, or private data is said to be public.
    """
    dataset = session.get_one(Dataset, job.dataset_id)
    content = session.get_one(Content, job.content_id)
    if content.table_object is None or content.wrapped_key is None:
        raise Internal
    run = read_run(job, dataset, content)
    return Assignment(claim, run, content.table_object, content.wrapped_key, dataset_box, digest_facts(dataset))


def read_run(job: Job, dataset: Dataset, content: Content) -> Run:
    """What the rows say of the run that a certificate is about.

    Raises:
        Internal: private data is said to be public, or the reverse.
    """
    if is_accounted(job) != (dataset.sensitivity == "private"):
        raise Internal  # a row that says otherwise was altered: private data is never read without a reservation
    cost = None
    if job.cost_epsilon is not None and job.cost_delta is not None:
        cost = {"epsilon": job.cost_epsilon, "delta": job.cost_delta}
    return Run(
        job_id=job.id,
        dataset_id=dataset.id,
        content_version=content.version,
        facts=declared_facts(dataset, job.cost_delta),
        plan=plan_json.from_json(job.plan),
        cost=cost,
    )
