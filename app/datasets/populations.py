"""Queries over populations: datasets of one owner about the same people, which share an account.

Public data has no account, so each public dataset is a separate population here.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from sqlalchemy import case, func, select, tuple_

from app.datasets.models import Dataset
from app.datasets.repository import restrict
from app.db import ReadSession


@dataclass(frozen=True, slots=True)
class Member:
    """A dataset of a population."""

    id: str
    name: str
    slots: int
    privacy_unit: Mapping[str, Any]
    is_deleted: bool


@dataclass(frozen=True, slots=True)
class Population:
    """The datasets of a population that a caller may see, newest first; at least one."""

    owner_id: str
    name: str
    is_public: bool
    members: tuple[Member, ...]

    @property
    def active(self) -> tuple[Member, ...]:
        """The datasets that are not deleted."""
        return tuple(each for each in self.members if not each.is_deleted)


class _Key(NamedTuple):
    owner_id: str
    sensitivity: str
    group: str


_GROUP = case((Dataset.sensitivity == "public", Dataset.id), else_=Dataset.population)
_COLUMNS = (Dataset.owner_id, Dataset.sensitivity, _GROUP)


def list_populations(
    session: ReadSession, visible_to: str | None, before: str | None, limit: int
) -> tuple[Population, ...]:
    """Return populations, those with the newest datasets first, in two queries.

    ``before``: only populations whose datasets all have ids below it. ``visible_to`` restricts the datasets to the
    key's own and shared ones; None means all.
    """
    newest = func.max(Dataset.id)
    query = restrict(select(*_COLUMNS), visible_to).group_by(*_COLUMNS).order_by(newest.desc()).limit(limit)
    if before is not None:
        query = query.having(newest < before)
    return _read(session, visible_to, [_Key(*row) for row in session.execute(query)])


def find_population(session: ReadSession, visible_to: str | None, dataset: Dataset) -> Population:
    """Return the population of a dataset that the caller may see."""
    group = dataset.id if dataset.sensitivity == "public" else dataset.population
    (found,) = _read(session, visible_to, [_Key(dataset.owner_id, dataset.sensitivity, group)])
    return found


def _read(session: ReadSession, visible_to: str | None, keys: Collection[_Key]) -> tuple[Population, ...]:
    members: dict[_Key, list[Member]] = {key: [] for key in keys}
    facts = (Dataset.id, Dataset.name, Dataset.slots, Dataset.privacy_unit, Dataset.deleted_at.is_not(None))
    query = restrict(select(*_COLUMNS, *facts), visible_to).where(tuple_(*_COLUMNS).in_(keys))
    for owner_id, sensitivity, group, *member in session.execute(query.order_by(Dataset.id.desc())):
        members[_Key(owner_id, sensitivity, group)].append(Member(*member))
    return tuple(
        Population(key.owner_id, key.group, key.sensitivity == "public", tuple(found)) for key, found in members.items()
    )
