"""Response bodies of ledger entries and refused jobs, with names of datasets and submitters."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import cast

from app.audit.repository import RefusedJobs
from app.auth import repository as auth
from app.auth.schemas import KeyReference
from app.budgets.schemas import EntryView, RefusalView
from app.datasets import repository as datasets
from app.db import ReadSession
from app.errors import LackingBudget
from app.jobs import repository as jobs
from app.ledger import LedgerEntry


def make_entry_views(session: ReadSession, entries: Sequence[LedgerEntry]) -> list[EntryView]:
    """Make the views of an account's entries, in order.

    All datasets of an account have the same owner, so a reader of the chain may see all their names.
    """
    names = datasets.read_names(session, {entry.dataset_id for entry in entries})
    submissions = jobs.read_submissions(session, {entry.job_id for entry in entries if entry.job_id is not None})
    return [_make_view(entry, names.get(entry.dataset_id), submissions.get(entry.job_id or "")) for entry in entries]


def make_refusal_views(session: ReadSession, refused: Sequence[RefusedJobs]) -> list[RefusalView]:
    """Make the views of refused jobs, in order."""
    names = datasets.read_names(session, {each.dataset_id for each in refused})
    callers = auth.read_names(session, {each.key_id for each in refused if each.key_id is not None})
    return [
        RefusalView(
            reason=cast("LackingBudget | None", each.obstacle),
            at=each.at,
            dataset_id=each.dataset_id,
            dataset_name=names.get(each.dataset_id),
            submitted_by=KeyReference(id=each.key_id, name=callers[each.key_id]) if each.key_id in callers else None,
            count=each.count,
        )
        for each in refused
    ]


def _make_view(entry: LedgerEntry, dataset: str | None, submission: jobs.Submission | None) -> EntryView:
    caller = None if submission is None else KeyReference(id=submission.caller_id, name=submission.caller_name)
    purpose = None if submission is None else submission.purpose
    return EntryView.model_validate(
        asdict(entry) | {"dataset_name": dataset, "submitted_by": caller, "purpose": purpose}
    )
