"""Who may see a dataset, and who may change it. What a caller may not see does not exist for it."""

from app.auth.caller import Caller
from app.context import note_target
from app.datasets import repository
from app.datasets.models import Dataset
from app.datasets.remedies import REMEDIES
from app.db import ReadSession, WriteSession
from app.errors import Forbidden, NotFound, StateConflict

OVERSEERS = frozenset({"admin", "auditor"})
_NOT_READY = "The dataset has no content that is ready; its owner can see why."
_STILL_READ = "The upload is still being read; ask again once the dataset's status is 'ready'."
_NOTHING_UPLOADED = "Nothing was uploaded yet; the dataset needs a content first."


def visible(session: ReadSession, caller: Caller, dataset_id: str) -> Dataset:
    """The dataset, if the caller owns it, oversees all, or has it shared.

    Raises:
        NotFound: otherwise, also for a dataset that exists.
    """
    dataset = repository.get(session, dataset_id)
    if dataset is None or not (oversees(caller, dataset) or repository.is_shared(session, dataset.id, caller.id)):
        raise NotFound
    note_target(dataset.id)
    return dataset


def find_owned(session: ReadSession, caller: Caller, dataset_id: str) -> Dataset:
    """The caller's own dataset.

    Raises:
        Forbidden: the caller's role owns nothing.
        NotFound: there is no such dataset, or it is another owner's.
    """
    if caller.role != "owner":
        raise Forbidden.to(caller.role, ("owner",))
    dataset = repository.get(session, dataset_id)
    if dataset is None or dataset.owner_id != caller.id:
        raise NotFound
    note_target(dataset.id)
    return dataset


def changeable(tx: WriteSession, caller: Caller, dataset_id: str) -> Dataset:
    """The caller's own dataset, locked, and not deleted.

    Raises:
        Forbidden, NotFound: as :func:`find_owned`.
        StateConflict: the dataset is deleted.
    """
    find_owned(tx, caller, dataset_id)
    dataset = repository.lock(tx, dataset_id)
    if dataset is None or dataset.deleted_at is not None:
        raise StateConflict("The dataset is deleted; only its declaration and its ledger can still be read.")
    return dataset


def oversees(caller: Caller, dataset: Dataset) -> bool:
    """Whether the caller owns the dataset or oversees all: sees how uploads fared, and the ledger."""
    return caller.role in OVERSEERS or dataset.owner_id == caller.id


def why_not_ready(session: ReadSession, caller: Caller, dataset: Dataset) -> str:
    """What keeps jobs from a dataset without a content in force.

    Others than its owner hear the same in any case: how an upload fared would tell them of the rows.
    """
    if not oversees(caller, dataset):
        return _NOT_READY
    newest = repository.latest(session, [dataset.id]).get(dataset.id)
    if newest is None:
        return _NOTHING_UPLOADED
    if newest.status == "received":
        return _STILL_READ
    remedy = REMEDIES.get(str(newest.rejection))
    return _NOT_READY if remedy is None else f"The last upload was rejected: {newest.rejection}. {remedy}"


def visible_to(caller: Caller) -> str | None:
    """The key whose own and shared datasets a list holds; None for those who oversee all."""
    return None if caller.role in OVERSEERS else caller.id
