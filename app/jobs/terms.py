"""The terms of a job as the database states them now: plan, declaration and cost."""

from collections.abc import Mapping
from typing import Any

from rfc8785 import CanonicalizationError

from app.datasets.facts import digest_facts
from app.datasets.models import Dataset
from app.hashchain import digest
from app.jobs.models import Job
from app.ledger import Commitment, Terms

_NOTHING = Commitment("", "", {}, 0)
"""A commitment that no valid reservation has, for rows that cannot be encoded."""


def make_commitment(plan: Mapping[str, Any], dataset: Dataset) -> Commitment:
    """Commit to a plan, in its JSON form, on a dataset.

    Raises:
        rfc8785.CanonicalizationError: for values that JSON cannot represent.
    """
    return Commitment(digest(plan), digest_facts(dataset), dict(dataset.privacy_unit), dataset.slots)


def read_terms(job: Job, dataset: Dataset) -> Terms:
    """Return the terms of a job; never fails, because an attacker may have changed the rows."""
    try:
        stated = make_commitment(job.plan, dataset)
    except (CanonicalizationError, TypeError, ValueError, AttributeError):
        stated = _NOTHING
    return Terms(job.dataset_id, stated, job.cost_epsilon, job.cost_delta)
