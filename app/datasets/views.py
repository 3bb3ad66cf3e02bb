"""Response bodies of datasets, by caller.

All callers who may see a dataset see its declared facts. Only its owner and overseers see the outcome of uploads.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from app.auth import repository as keys
from app.auth.caller import Caller
from app.auth.schemas import KeyReference
from app.datasets import access, repository
from app.datasets.models import Content, Dataset
from app.datasets.schemas import ContentView, CostOfDataset, DatasetDetail, DatasetView, Limit, RejectionView
from app.db import ReadSession
from app.ledger import Ledger, Standing


@dataclass(frozen=True, slots=True)
class _Around:
    """The facts about a dataset that are not in its row; ``standing`` is None for public data."""

    owner: KeyReference
    standing: Standing | None
    ready: Content | None
    last: Content | None
    shares: list[str]


def make_views(session: ReadSession, ledger: Ledger, caller: Caller, datasets: Sequence[Dataset]) -> list[DatasetView]:
    """Make one view for each dataset, in order; the caller must be allowed to see all of them."""
    around = _read_around(session, ledger, caller.id, datasets)
    return [
        _detail(dataset, each)
        if access.may_oversee(caller, dataset)
        else DatasetView(**_facts(dataset, each, each.ready))  # the outcome of an upload depends on private rows
        for dataset, each in zip(datasets, around, strict=True)
    ]


def make_detail(session: ReadSession, ledger: Ledger, dataset: Dataset) -> DatasetDetail:
    """Make the view for the dataset's owner."""
    (around,) = _read_around(session, ledger, dataset.owner_id, [dataset])
    return _detail(dataset, around)


def make_view(session: ReadSession, ledger: Ledger, caller: Caller, dataset: Dataset) -> DatasetView:
    return make_views(session, ledger, caller, [dataset])[0]


def _read_around(
    session: ReadSession, ledger: Ledger, caller_id: str, datasets: Sequence[Dataset]
) -> Iterator[_Around]:
    """Read the facts about ``datasets``; the number of queries is always the same."""
    ids = [dataset.id for dataset in datasets]
    in_force = repository.find_latest(session, ids, ready_only=True)
    newest = repository.find_latest(session, ids)
    shares = repository.list_shares(session, ids)
    standings = ledger.standings(session, ids, caller_id)
    names = keys.read_names(session, {dataset.owner_id for dataset in datasets})
    for dataset in datasets:
        standing = standings.get(dataset.id)
        if standing is not None and dataset.deleted_at is not None:
            standing = replace(standing, remaining=replace(standing.remaining, epsilon=0.0))
        yield _Around(
            KeyReference(id=dataset.owner_id, name=names[dataset.owner_id]),
            standing,
            in_force.get(dataset.id),
            newest.get(dataset.id),
            shares[dataset.id],
        )


def _facts(dataset: Dataset, around: _Around, last: Content | None) -> dict[str, Any]:
    standing = around.standing
    return {
        "id": dataset.id,
        "name": dataset.name,
        "owner": around.owner,
        "description": dataset.description,
        "sensitivity": dataset.sensitivity,
        "population": dataset.population,
        "series": dataset.series,
        "columns": dataset.columns,
        "privacy_unit": dataset.privacy_unit,
        "slots": dataset.slots,
        "budget": None if standing is None else Limit.model_validate(standing.limit),
        "spent": None if standing is None else CostOfDataset.model_validate(standing.spent),
        "reserved": None if standing is None else CostOfDataset.model_validate(standing.reserved),
        "remaining": None if standing is None else CostOfDataset.model_validate(standing.remaining),
        "releases_public": dataset.releases_public,
        "status": _status(dataset, around.ready, last),
        "content": _content(last),
        "created_at": dataset.created_at,
    }


def _detail(dataset: Dataset, around: _Around) -> DatasetDetail:
    last = around.last
    return DatasetDetail(
        **_facts(dataset, around, last),
        shared_with=around.shares,
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
