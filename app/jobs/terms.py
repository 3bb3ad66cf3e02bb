"""What the database says now of a job's plan, its dataset's declaration and its cost."""

from collections.abc import Mapping
from typing import Any

from rfc8785 import CanonicalizationError

from app.datasets.facts import digest_facts
from app.datasets.models import Dataset
from app.hashchain import digest
from app.jobs.models import Job
from app.ledger import Commitment, Terms

_NOTHING = Commitment("", "", {}, 0)
"""The commitment of rows that nobody can have reserved for."""


def make_commitment(plan: Mapping[str, Any], dataset: Dataset) -> Commitment:
    """The commitment to a plan, in its JSON form, on a dataset.

    Raises:
        rfc8785.CanonicalizationError: for what JSON cannot say.
    """
    return Commitment(digest(plan), digest_facts(dataset), dict(dataset.privacy_unit), dataset.slots)


def read_terms(job: Job, dataset: Dataset) -> Terms:
    """The terms of a job. Total: somebody may have written anything into the rows."""
    try:
        stated = make_commitment(job.plan, dataset)
    except (CanonicalizationError, TypeError, ValueError, AttributeError):
        stated = _NOTHING
    return Terms(job.dataset_id, stated, job.cost_epsilon, job.cost_delta)
