"""What-if questions about an account: a job, another limit, other allocations.

A change is carried out by the same functions as the real one, in a transaction that is rolled back.
"""

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from app.auth.caller import Caller
from app.budgets import service
from app.budgets.schemas import LimitBody
from app.datasets import service as datasets
from app.datasets.schemas import DatasetPatch
from app.db import Database, ReadSession, WriteSession
from app.http.requests.bodies import validate
from app.jobs.planning import NoiseCache, find_admitted
from app.ledger import Budget, Charge, EntryFilter, Guarantee, Ledger, Preview
from app.privacy.events import GaussianEvent, UnknownEvent, from_json

_NOISE: Final = NoiseCache()
_NEWEST: Final = 50
"""Number of reservations among which the last job of a dataset is looked for."""


@dataclass(frozen=True, slots=True)
class Outlook:
    """An account at one time, for one caller.

    Attributes:
        budget: its ``remaining`` respects the caller's allocation.
        more_like_last: further jobs like the last one; None if there was none.
        guarantee: the bound on all releases, if the highest limit so far is spent.
    """

    budget: Budget
    more_like_last: int | None
    guarantee: Guarantee


@dataclass(frozen=True, slots=True)
class Comparison:
    """The account before and after a change."""

    before: Outlook
    after: Outlook


def preview_job(
    session: ReadSession, ledger: Ledger, caller: Caller, dataset_id: str, epsilon: float
) -> tuple[Budget, Preview]:
    """Preview a job of one full-batch query that costs ``epsilon`` alone, as for ``remaining``.

    Like a real job, it may get a little more noise to fit into the account.

    Raises:
        NotFound, StateConflict: as :func:`app.budgets.service.read_budget`.
        InvalidRequest: at ``/privacy/epsilon``, if no noise has this cost.
    """
    budget = service.read_budget(session, ledger, caller, dataset_id)

    def preview(noise: float) -> Preview:
        return ledger.preview(session, dataset_id, Charge((GaussianEvent(noise),)), caller_id=caller.id)

    least = _NOISE.noise(lambda multiplier: (GaussianEvent(multiplier),), epsilon, budget.limit.delta)
    return budget, preview(find_admitted(lambda noise: preview(noise).affordable, least))


def preview_limit(database: Database, ledger: Ledger, caller: Caller, dataset_id: str, body: LimitBody) -> Comparison:
    """Preview another limit.

    Raises:
        As :func:`app.budgets.service.change_limit`.
    """

    def change(tx: WriteSession) -> None:
        service.change_limit(tx, ledger, caller, dataset_id, body)

    return _compare(database, ledger, dataset_id, caller.id, change)


def preview_allocations(
    database: Database, ledger: Ledger, caller: Caller, dataset_id: str, patch: DatasetPatch, *, key_id: str
) -> Comparison:
    """Preview other allocations, with the outlook of the key ``key_id``.

    Raises:
        As :func:`app.datasets.service.change`.
    """

    def change(tx: WriteSession) -> None:
        datasets.change(tx, ledger, caller, dataset_id, patch)

    return _compare(database, ledger, dataset_id, key_id, change)


def make_patch(budget: Budget, key_id: str, epsilon: float | None) -> DatasetPatch:
    """Make the change of one key's allocation; ``epsilon`` None: it ends.

    Raises:
        InvalidRequest: it is not valid, at ``/allocations``.
    """
    others = {each.key_id: each.limit.epsilon for each in budget.allocations or () if each.key_id != key_id}
    wanted = others if epsilon is None else {**others, key_id: epsilon}
    listed = [{"key_id": name, "epsilon": each} for name, each in wanted.items()]
    patch = validate(DatasetPatch, json.dumps({"allocations": listed}).encode())
    assert isinstance(patch, DatasetPatch)
    return patch


def _compare(
    database: Database, ledger: Ledger, dataset_id: str, key_id: str, change: Callable[[WriteSession], None]
) -> Comparison:
    """Carry out ``change`` and undo it. The change checks the rights of the caller."""
    with database.dry_run() as tx:
        change(tx)
        tx.flush()
        after = _look(tx, ledger, dataset_id, key_id)
    with database.read() as session:
        return Comparison(_look(session, ledger, dataset_id, key_id), after)


def _look(session: ReadSession, ledger: Ledger, dataset_id: str, key_id: str) -> Outlook:
    budget = ledger.budget(session, dataset_id, key_id)
    last = _find_last_charge(session, ledger, dataset_id)
    more = None if last is None else _count_room(ledger.preview(session, dataset_id, last, caller_id=key_id))
    return Outlook(budget, more, ledger.guarantee(session, dataset_id))


def _count_room(preview: Preview) -> int:
    return preview.more_like_this + 1 if preview.affordable else 0


def _find_last_charge(session: ReadSession, ledger: Ledger, dataset_id: str) -> Charge | None:
    """Find the charge of the newest job among the account's newest reservations; None if it is of no known form."""
    reservations = ledger.entries(session, dataset_id, limit=_NEWEST, before=None, criteria=EntryFilter("reserved"))
    event = next((each.event for each in reservations if each.dataset_id == dataset_id), None)
    try:
        return None if event is None else Charge(tuple(from_json(each) for each in event.get("events", [event])))
    except UnknownEvent:
        return None
