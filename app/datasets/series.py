"""Series of datasets in which each person counts once.

A *series* is a list of private datasets of one owner, its *blocks*. Their unit is a person, named by the same declared
column. Each block has a separate population. A person belongs to the first block that received that person's rows.
In every other block the rows of the person become null rows when they are ingested.

The order is that of receipt. A content gets its place under the lock of the series, and can be claimed only when all
contents with earlier places have ended. So the rows of one person change nothing about another person
(``docs/adr/0052-people-count-once-in-a-series.md``).

Each ready content has a *register*: the keyed pseudonyms of the people that it keeps, padded to the declared slots. It
is an object that only workers can open. It outlives the table, also after the deletion of its dataset, because releases
of that table exist. This module reads the names of registers, never their bytes.
"""

from dataclasses import dataclass
from typing import Any

from sqlalchemy import ColumnElement, select
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import aliased

from app.datasets.models import Content, Dataset, Series
from app.db import ReadSession, WriteSession
from app.errors import Internal, InvalidRequest

OTHER_UNIT = (
    "The series has datasets whose privacy unit is another column. Declare this column with the same name, type and "
    "bounds or categories in all of them. Then a person has the same value in all of them."
)


@dataclass(frozen=True, slots=True)
class Register:
    """The stored register of one content, and the slots to which it is padded."""

    object_name: str
    slots: int


@dataclass(frozen=True, slots=True)
class Membership:
    """The series of a claimed content, and the earlier registers of other blocks."""

    name: str
    earlier: tuple[Register, ...]


def join(tx: WriteSession, dataset: Dataset) -> None:
    """Make a new dataset a block of its series. The first block creates it.

    Raises:
        InvalidRequest: the series has another unit's column.
    """
    if dataset.series is None:
        return
    unit = _find_unit(dataset)
    row = _lock(tx, dataset.owner_id, dataset.series) or _create(tx, dataset.owner_id, dataset.series, unit)
    if row.unit != unit:
        raise InvalidRequest.at("/privacy_unit/column", OTHER_UNIT)


def take_place(tx: WriteSession, dataset: Dataset) -> int | None:
    """Take the next place in the series, for a received content; None without a series.

    The series is locked until the transaction ends. So places are in the order of commits.
    """
    if dataset.series is None:
        return None
    row = _lock(tx, dataset.owner_id, dataset.series)
    if row is None:
        raise Internal
    row.places += 1
    return row.places


def make_turn_condition() -> ColumnElement[bool]:
    """Make the condition that no earlier content of the same series is waiting; true without a series."""
    own, earlier, block = aliased(Dataset), aliased(Content), aliased(Dataset)
    waiting = (
        select(earlier.id)
        .join(block, block.id == earlier.dataset_id)
        .join(own, (own.owner_id == block.owner_id) & (own.series == block.series))
        .where(
            own.id == Content.dataset_id,
            earlier.series_place < Content.series_place,
            earlier.status == "received",
            block.deleted_at.is_(None),
        )
        .correlate(Content)
    )
    return ~waiting.exists()


def find_next(session: ReadSession, content_id: str) -> str | None:
    """Find the content whose turn it is, in the series of a content; None if none waits."""
    content = session.get(Content, content_id)
    dataset = None if content is None else session.get(Dataset, content.dataset_id)
    if dataset is None or dataset.series is None:
        return None
    query = (
        select(Content.id)
        .join(Dataset)
        .where(_is_in(dataset), Content.status == "received", Dataset.deleted_at.is_(None), make_turn_condition())
        .order_by(Content.series_place)
    )
    return session.scalars(query.limit(1)).first()


def find_membership(session: ReadSession, content: Content, dataset: Dataset) -> Membership | None:
    """Find the registers of a claimed content's series; None without a series.

    Contents of deleted datasets and superseded contents count too.

    Raises:
        Internal: a ready content has no register.
    """
    if dataset.series is None:
        return None
    query = (
        select(Content.register_object, Dataset.slots)
        .join(Dataset)
        .where(
            _is_in(dataset),
            Content.status == "ready",
            Content.dataset_id != dataset.id,
            Content.series_place < content.series_place,
        )
        .order_by(Content.series_place)
    )
    found = session.execute(query).all()
    if any(row.register_object is None for row in found):
        raise Internal
    return Membership(dataset.series, tuple(Register(row.register_object, row.slots) for row in found))


def _is_in(dataset: Dataset) -> ColumnElement[bool]:
    return (Dataset.owner_id == dataset.owner_id) & (Dataset.series == dataset.series)


def _find_unit(dataset: Dataset) -> dict[str, Any]:
    name = dataset.privacy_unit["column"]
    return next(dict(column) for column in dataset.columns if column["name"] == name)


def _lock(tx: WriteSession, owner_id: str, name: str) -> Series | None:
    query = select(Series).where(Series.owner_id == owner_id, Series.name == name).with_for_update()
    return tx.scalars(query.execution_options(populate_existing=True)).one_or_none()


def _create(tx: WriteSession, owner_id: str, name: str, unit: dict[str, Any]) -> Series:
    """Create the series; another transaction may create it at the same time."""
    row = Series(owner_id=owner_id, name=name, unit=unit, places=0)
    try:
        with tx.begin_nested():
            tx.add(row)
    except IntegrityError:
        found = _lock(tx, owner_id, name)
        if found is None:
            raise Internal from None
        return found
    return row
