"""Rules of reading an account and of changing its limit."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from threading import Lock
from typing import Final

from app.audit import repository as audit
from app.audit.repository import RefusedJobs
from app.auth.caller import Caller
from app.budgets.schemas import LimitBody
from app.datasets import access
from app.datasets.declaration import find_plain_text_faults
from app.datasets.models import Dataset
from app.db import ReadSession, WriteSession
from app.errors import Forbidden, InvalidRequest, RateLimited, StateConflict
from app.ledger import (
    Budget,
    ChainPart,
    EntryFilter,
    Exposure,
    Guarantee,
    Ledger,
    LedgerEntry,
    LedgerStep,
    Overview,
)

NO_ACCOUNT = "A public dataset has no account, because no job on it costs privacy."
VERIFYING: Final = Lock()
_BUSY: Final = "The server is verifying another chain; wait for the seconds in Retry-After."
_READERS = ("admin", "auditor", "owner")
_NOT_OWN = "This call needs the key of the dataset's owner, or one of the role admin or auditor; yours may only use it."


def read_budget(session: ReadSession, ledger: Ledger, caller: Caller, dataset_id: str) -> Budget:
    """Read the account behind a dataset. It stays readable after the dataset is deleted, with nothing ``remaining``.

    Raises:
        NotFound: there is no such dataset for this caller.
        StateConflict: the dataset is public.
    """
    dataset = _require_account(access.find_visible(session, caller, dataset_id))
    everything = ledger.budget(session, dataset.id, caller.id)
    if dataset.deleted_at is not None:
        everything = replace(everything, remaining=replace(everything.remaining, epsilon=0.0))
    return everything.restrict_to(None if access.may_oversee(caller, dataset) else caller.id)


def list_entries(
    session: ReadSession,
    ledger: Ledger,
    caller: Caller,
    dataset_id: str,
    *,
    limit: int,
    before: int | None,
    criteria: EntryFilter | None = None,
) -> Sequence[LedgerEntry]:
    """List the entries of the account's chain below sequence ``before`` that match, newest first.

    Raises:
        Forbidden: the caller is an analyst, or may only use the dataset.
        NotFound, StateConflict: as :func:`read_budget`.
    """
    dataset = _find_overseen(session, caller, dataset_id)
    return ledger.entries(session, dataset.id, limit=limit, before=before, criteria=criteria)


def list_steps(
    session: ReadSession, ledger: Ledger, caller: Caller, dataset_id: str, *, limit: int, until: datetime | None
) -> Sequence[LedgerStep]:
    """List the account's newest ``limit`` entries before ``until`` as steps, oldest first.

    Raises:
        Forbidden, NotFound, StateConflict: as :func:`list_entries`.
    """
    return ledger.steps(session, _find_overseen(session, caller, dataset_id).id, limit=limit, until=until)


def list_refused_jobs(
    session: ReadSession,
    ledger: Ledger,
    caller: Caller,
    dataset_id: str,
    *,
    limit: int,
    before: str | None = None,
    since: datetime | None = None,
    until: datetime | None = None,
) -> Sequence[RefusedJobs]:
    """List the jobs that the budget did not cover, newest first.

    The first one of a key is listed within about a second, and repeated ones within a minute. They depend on budgets
    alone, not on rows. All datasets of an account have the same owner.

    Raises:
        Forbidden, NotFound, StateConflict: as :func:`list_entries`.
    """
    dataset = _find_overseen(session, caller, dataset_id)
    of_account = ledger.datasets(session, dataset.id)
    return audit.list_refused_jobs(session, of_account, limit=limit, before=before, since=since, until=until)


def verify_chain(session: ReadSession, ledger: Ledger, caller: Caller, dataset_id: str) -> bool:
    """Recompute the account's chain and compare it with the account.

    A long chain takes seconds, so a process verifies one at a time.

    Raises:
        Forbidden, NotFound, StateConflict: as :func:`list_entries`.
        RateLimited: another chain is being verified.
    """
    found = _find_overseen(session, caller, dataset_id)
    if not VERIFYING.acquire(blocking=False):
        raise RateLimited(_BUSY)
    try:
        return ledger.verify_account(session, found.id)
    finally:
        VERIFYING.release()


def read_chain(
    session: ReadSession, ledger: Ledger, caller: Caller, dataset_id: str, *, after: int, limit: int
) -> ChainPart:
    """Read a part of the account's chain with everything that is hashed and signed.

    Raises:
        Forbidden, NotFound, StateConflict: as :func:`list_entries`.
    """
    return ledger.chain(session, _find_overseen(session, caller, dataset_id).id, after=after, limit=limit)


def read_exposure(session: ReadSession, ledger: Ledger, caller: Caller, dataset_id: str) -> tuple[Exposure, Guarantee]:
    """Read the spent amounts of the account, and the bound on all its releases.

    Raises:
        NotFound, StateConflict: as :func:`read_budget`.
    """
    dataset = _require_account(access.find_visible(session, caller, dataset_id))
    return ledger.exposure(session, dataset.id), ledger.guarantee(session, dataset.id)


def change_limit(tx: WriteSession, ledger: Ledger, caller: Caller, dataset_id: str, body: LimitBody) -> Budget:
    """Lower the limit at once, or raise it; above the highest limit so far, with a tranche.

    Raises:
        Forbidden, NotFound, StateConflict: as :func:`app.datasets.access.lock_changeable`; StateConflict also for a
            public dataset and for a limit below the spent cost.
        InvalidRequest: this server does not allow the epsilon or delta.
    """
    dataset = _require_account(access.lock_changeable(tx, caller, dataset_id))
    ledger.change_limit(tx, dataset.id, body.epsilon, body.delta)
    tx.flush()
    return ledger.budget(tx, dataset.id, caller.id)


def unfreeze(tx: WriteSession, ledger: Ledger, caller: Caller, dataset_id: str, reason: str) -> Budget:
    """End the freeze of the dataset's account.

    Raises:
        NotFound: there is no such dataset.
        InvalidRequest: the reason is blank or not printable.
        StateConflict: the dataset is public, or as :func:`app.ledger.account.freezing.unfreeze`.
    """
    faults = tuple(find_plain_text_faults("/reason", reason))
    if faults:
        raise InvalidRequest(faults=faults)
    dataset = _require_account(access.find_visible(tx, caller, dataset_id))
    ledger.unfreeze(tx, dataset.id, reason)
    tx.flush()
    return ledger.budget(tx, dataset.id)


def _find_overseen(session: ReadSession, caller: Caller, dataset_id: str) -> Dataset:
    if caller.role == "analyst":
        raise Forbidden.to(caller.role, _READERS)
    dataset = access.find_visible(session, caller, dataset_id)
    if not access.may_oversee(caller, dataset):
        raise Forbidden(_NOT_OWN)
    return _require_account(dataset)


def _require_account(dataset: Dataset) -> Dataset:
    if dataset.sensitivity == "public":
        raise StateConflict(NO_ACCOUNT)
    return dataset


def list_overviews(
    session: ReadSession, ledger: Ledger, caller: Caller, datasets: Sequence[Dataset]
) -> Mapping[str, Overview]:
    """Map each private dataset to the overview of its account; the caller must be allowed to see all datasets."""
    private = {dataset.id: dataset for dataset in datasets if dataset.sensitivity == "private"}
    found = ledger.overviews(session, private, caller.id)
    return {
        dataset_id: replace(
            overview,
            budget=overview.budget.restrict_to(None if access.may_oversee(caller, private[dataset_id]) else caller.id),
        )
        for dataset_id, overview in found.items()
    }
