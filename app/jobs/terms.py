"""What a job commits to: its plan and the declared facts of its dataset, as the database has them now."""

from collections.abc import Mapping
from typing import Any

from rfc8785 import CanonicalizationError

from app.datasets.facts import facts_digest
from app.datasets.models import Dataset
from app.jobs.models import Job
from app.ledger import Commitment, Terms
from app.ledger.encoding import digest

_NOTHING = Commitment("", "", {}, 0)
"""The commitment of rows that nobody can have reserved for."""


def commitment(plan: Mapping[str, Any], dataset: Dataset) -> Commitment:
    """Of a plan in its JSON form.

    Raises:
        rfc8785.CanonicalizationError: for what JSON cannot say.
    """
    return Commitment(digest(plan), facts_digest(dataset), dict(dataset.privacy_unit), dataset.slots)


def terms(job: Job, dataset: Dataset) -> Terms:
    """Of a job's row and its dataset's; total, because somebody may have written anything into them."""
    try:
        stated = commitment(job.plan, dataset)
    except (CanonicalizationError, TypeError, ValueError, AttributeError):
        stated = _NOTHING
    return Terms(job.dataset_id, stated, job.cost_epsilon, job.cost_delta)
