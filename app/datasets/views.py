"""Response bodies of datasets, by caller.

All callers who may see a dataset see its declared facts. Only its owner and overseers see the outcome of uploads.
"""

from collections.abc import Sequence
from typing import Any

from app.auth.caller import Caller
from app.datasets import access, repository
from app.datasets.models import Content, Dataset
from app.datasets.schemas import ContentView, DatasetDetail, DatasetView, Limit, RejectionView
from app.db import ReadSession
from app.ledger import Ledger


def make_views(session: ReadSession, ledger: Ledger, caller: Caller, datasets: Sequence[Dataset]) -> list[DatasetView]:
    """Make one view for each dataset, in order; the caller must be allowed to see all of them."""
    ids = [dataset.id for dataset in datasets]
    in_force = repository.find_latest(session, ids, ready_only=True)
    newest = repository.find_latest(session, ids)
    shares = repository.list_shares(session, ids)
    shown: list[DatasetView] = []
    for dataset in datasets:
        ready, last = in_force.get(dataset.id), newest.get(dataset.id)
        limit = _limit(session, ledger, dataset)
        if access.may_oversee(caller, dataset):  # the outcome of an upload depends on private rows
            shown.append(_detail(dataset, limit, ready, last, shares[dataset.id]))
        else:
            shown.append(DatasetView(**_facts(dataset, limit, ready, ready)))
    return shown


def make_detail(session: ReadSession, ledger: Ledger, dataset: Dataset) -> DatasetDetail:
    """Make the view for the dataset's owner."""
    newest = repository.find_latest(session, [dataset.id]).get(dataset.id)
    ready = repository.find_in_force(session, dataset.id)
    shares = repository.list_shares(session, [dataset.id])[dataset.id]
    return _detail(dataset, _limit(session, ledger, dataset), ready, newest, shares)


def make_view(session: ReadSession, ledger: Ledger, caller: Caller, dataset: Dataset) -> DatasetView:
    return make_views(session, ledger, caller, [dataset])[0]


def _limit(session: ReadSession, ledger: Ledger, dataset: Dataset) -> Limit | None:
    if dataset.sensitivity == "public":
        return None
    epsilon, delta = ledger.limit(session, dataset.id)
    return Limit(epsilon=epsilon, delta=delta)


def _facts(dataset: Dataset, limit: Limit | None, ready: Content | None, last: Content | None) -> dict[str, Any]:
    return {
        "id": dataset.id,
        "name": dataset.name,
        "description": dataset.description,
        "sensitivity": dataset.sensitivity,
        "population": dataset.population,
        "columns": dataset.columns,
        "privacy_unit": dataset.privacy_unit,
        "slots": dataset.slots,
        "budget": limit,
        "releases_public": dataset.releases_public,
        "status": _status(dataset, ready, last),
        "content": _content(last),
        "created_at": dataset.created_at,
    }


def _detail(
    dataset: Dataset, limit: Limit | None, ready: Content | None, last: Content | None, shares: list[str]
) -> DatasetDetail:
    return DatasetDetail(
        **_facts(dataset, limit, ready, last),
        shared_with=shares,
        rejection=_rejection(last),
        content_received_at=None if last is None else last.received_at,
        content_ended_at=None if last is None else last.ended_at,
        deleted_at=dataset.deleted_at,
    )


def _status(dataset: Dataset, ready: Content | None, last: Content | None) -> str:
    if dataset.deleted_at is not None:
        return "deleted"
    if ready is not None:
        return "ready"
    return "created" if last is None else last.status


def _content(content: Content | None) -> ContentView | None:
    if content is None:
        return None
    return ContentView.model_validate(content, from_attributes=True)


def _rejection(content: Content | None) -> RejectionView | None:
    if content is None or content.rejection is None:
        return None
    return RejectionView(code=content.rejection, columns=content.rejection_columns or [])
