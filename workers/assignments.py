"""The input of one attempt of a job, read from the database."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass

from app.datasets.facts import digest_facts, make_declared_facts
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
    """An opened attempt: the run, and the keys of its pinned content."""

    claim: Claim
    run: Run
    table_object: str
    wrapped_key: bytes
    dataset_box: bytes
    facts_digest: str
    register_object: str | None
    """Object name of the content's register, if its dataset is in a series."""

    @property
    def is_accounted(self) -> bool:
        return self.run.cost is not None


OpenTable = Callable[[Assignment], AbstractContextManager[RowSource]]
"""Opens the pinned table of an assignment; in service, :class:`workers.tables.EnclaveTables`."""


def make_assignment(session: ReadSession, claim: Claim, job: Job, dataset_box: bytes) -> Assignment:
    """Read the input of an attempt of an opened job.

    Args:
        session: reads the dataset and the content.
        claim: the attempt.
        job: an opened job.
        dataset_box: the sealed box with the key of the job's dataset.

    Raises:
        Internal: for impossible rows: the content is gone, or private data is marked as public.
    """
    dataset = session.get_one(Dataset, job.dataset_id)
    content = session.get_one(Content, job.content_id)
    if content.table_object is None or content.wrapped_key is None:
        raise Internal
    return Assignment(
        claim=claim,
        run=read_run(job, dataset, content),
        table_object=content.table_object,
        wrapped_key=content.wrapped_key,
        dataset_box=dataset_box,
        facts_digest=digest_facts(dataset),
        register_object=content.register_object,
    )


def read_run(job: Job, dataset: Dataset, content: Content) -> Run:
    """Read from the database the run that a certificate describes.

    Raises:
        Internal: private data is marked as public, or the reverse.
    """
    if is_accounted(job) != (dataset.sensitivity == "private"):
        raise Internal  # somebody altered the row: private data is never read without a reservation
    cost = None
    if job.cost_epsilon is not None and job.cost_delta is not None:
        cost = {"epsilon": job.cost_epsilon, "delta": job.cost_delta}
    return Run(
        job_id=job.id,
        dataset_id=dataset.id,
        content_version=content.version,
        facts=make_declared_facts(dataset, job.cost_delta),
        plan=plan_json.from_json(job.plan),
        cost=cost,
    )
