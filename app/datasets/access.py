"""Access rules of datasets: which callers may see and change them.

A dataset that the caller may not see is reported as not found.
"""

from app.auth.caller import Caller
from app.context import note_target
from app.datasets import repository
from app.datasets.models import Dataset
from app.datasets.remedies import REMEDIES
from app.db import ReadSession, WriteSession
from app.errors import Forbidden, NotFound, StateConflict

OVERSEERS = frozenset({"admin", "auditor"})
_NOT_READY = "The dataset has no ready content. Its owner can see the reason."
_STILL_READ = "The upload is still being processed. Try again when the dataset's status is 'ready'."
_NOTHING_UPLOADED = "The dataset has no content yet. Its owner must upload a table first."


def find_visible(session: ReadSession, caller: Caller, dataset_id: str) -> Dataset:
    """Return the dataset, if the caller may see it.

    Callers see the datasets that they own or that are shared with them; overseers see all.

    Raises:
        NotFound: there is no such dataset, or the caller may not see it.
    """
    dataset = repository.get(session, dataset_id)
    if dataset is None or not (may_oversee(caller, dataset) or repository.is_shared(session, dataset.id, caller.id)):
        raise NotFound
    note_target(dataset.id)
    return dataset


def find_owned(session: ReadSession, caller: Caller, dataset_id: str) -> Dataset:
    """Return the caller's own dataset.

    Raises:
        Forbidden: the caller's role cannot own datasets.
        NotFound: there is no such dataset, or it belongs to another owner.
    """
    if caller.role != "owner":
        raise Forbidden.to(caller.role, ("owner",))
    dataset = repository.get(session, dataset_id)
    if dataset is None or dataset.owner_id != caller.id:
        raise NotFound
    note_target(dataset.id)
    return dataset


def lock_changeable(tx: WriteSession, caller: Caller, dataset_id: str) -> Dataset:
    """Return the caller's own dataset, locked and not deleted.

    Raises:
        Forbidden, NotFound: as :func:`find_owned`.
        StateConflict: the dataset is deleted.
    """
    find_owned(tx, caller, dataset_id)
    dataset = repository.lock(tx, dataset_id)
    if dataset is None or dataset.deleted_at is not None:
        raise StateConflict("The dataset is deleted. Only its declaration and its ledger can still be read.")
    return dataset


def may_oversee(caller: Caller, dataset: Dataset) -> bool:
    """Whether the caller may see the ledger and the outcome of uploads: its owner and all overseers."""
    return caller.role in OVERSEERS or dataset.owner_id == caller.id


def explain_not_ready(session: ReadSession, caller: Caller, dataset: Dataset) -> str:
    """Explain why jobs cannot run on a dataset without a content in force.

    Callers other than the owner and overseers always get the same text. The outcome of an upload depends on private
    rows.
    """
    if not may_oversee(caller, dataset):
        return _NOT_READY
    newest = repository.find_latest(session, [dataset.id]).get(dataset.id)
    if newest is None:
        return _NOTHING_UPLOADED
    if newest.status == "received":
        return _STILL_READ
    remedy = REMEDIES.get(str(newest.rejection))
    return _NOT_READY if remedy is None else f"The last upload was rejected: {newest.rejection}. {remedy}"


def choose_key_filter(caller: Caller) -> str | None:
    """Return the key id that a list of datasets is filtered by; None for overseers, who see all."""
    return None if caller.role in OVERSEERS else caller.id
