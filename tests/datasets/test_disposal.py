"""Disposal destroys objects that are not needed any more, and no others."""

from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import pytest

from app.datasets import repository
from app.datasets.disposal import BATCH, Disposal
from app.datasets.models import Content, Dataset
from app.datasets.uploads import repository as uploads
from app.datasets.uploads.models import Upload
from app.db import Database, WriteSession, now
from app.errors import DependencyUnavailable
from app.vault.areas import WorkerAreas
from app.vault.store import ObjectStore
from tests.factories import rows
from tests.factories.datasets import entries, stored
from tests.factories.services import worker_areas_at


@dataclass(frozen=True)
class House:
    """A database and the storage areas that its rows refer to."""

    database: Database
    areas: WorkerAreas

    def content(self, dataset_id: str, version: int, status: str, *, table: bool = True, **fields: Any) -> str:
        """Store a content with a sealed original and, unless ``table`` is false, a table."""
        original = [new_object(self.areas.incoming)]
        fields["table_object"] = new_object(self.areas.vault) if table else None
        with self.database.write() as tx:
            return rows.content(tx, dataset_id, version=version, status=status, original=original, **fields).id

    def dispose(self, pinned: Collection[str] = (), keep: timedelta = timedelta(0)) -> None:
        Disposal(self.areas, keep).contents(self.database, lambda _, content_id: content_id in pinned)

    def kept(self, content_id: str) -> tuple[bool, bool]:
        """Return whether the content's original and table exist; rows and areas must agree."""
        with self.database.read() as session:
            content = session.get_one(Content, content_id)
            original = [part.object_name for part in uploads.list_objects(session, [content_id])]
        names = set(stored(self.areas))
        assert {name for name in (*original, content.table_object) if name} <= names
        return bool(original), content.table_object is not None


@pytest.fixture
def house(database: Database, storage_url: str) -> House:
    return House(database, worker_areas_at(storage_url))


@pytest.fixture
def dataset_id(database: Database, owner: rows.Key) -> str:
    with database.write() as tx:
        return rows.dataset(tx, owner.id).id


def new_object(store: ObjectStore) -> str:
    with store.create() as writer:
        return writer.publish()


def test_original_is_destroyed_when_its_ingestion_ends(house: House, dataset_id: str) -> None:
    waiting = house.content(dataset_id, 3, "received", table=False)
    rejected = house.content(dataset_id, 2, "rejected", table=False)
    ready = house.content(dataset_id, 1, "ready")
    house.dispose()
    assert house.kept(waiting) == (True, False)
    assert house.kept(rejected) == (False, False)
    assert house.kept(ready) == (False, True)
    assert len(stored(house.areas)) == 2


def test_superseded_table_is_destroyed_when_no_job_pins_it(house: House, dataset_id: str) -> None:
    old, new = (house.content(dataset_id, version, "ready") for version in (1, 2))
    house.content(dataset_id, 3, "rejected", table=False)
    house.dispose(pinned=[old])
    assert (house.kept(old), house.kept(new)) == ((False, True), (False, True))
    house.dispose()
    assert (house.kept(old), house.kept(new)) == ((False, False), (False, True))
    with house.database.read() as session:
        assert session.get_one(Content, old).wrapped_key is None


def test_superseded_table_is_kept_for_the_configured_time(house: House, dataset_id: str) -> None:
    """The time counts from when the newer content came into force."""
    long_ago = now() - timedelta(days=40)
    old = house.content(dataset_id, 1, "ready", ended_at=long_ago)
    house.content(dataset_id, 2, "ready", ended_at=now() - timedelta(days=5))
    house.dispose(keep=timedelta(days=6))
    assert house.kept(old) == (False, True)
    house.dispose(keep=timedelta(days=4))
    assert house.kept(old) == (False, False)


def test_objects_of_a_deleted_dataset_are_destroyed_even_if_pinned(house: House, dataset_id: str) -> None:
    contents = [house.content(dataset_id, version, "ready") for version in (1, 2)]
    contents.append(house.content(dataset_id, 3, "received", table=False))
    with house.database.write() as tx:
        tx.get_one(Dataset, dataset_id).deleted_at = now()
    house.dispose(pinned=contents, keep=timedelta(days=100))
    assert stored(house.areas) == []
    assert [house.kept(content_id) for content_id in contents] == [(False, False)] * 3


def test_keys_of_half_deleted_datasets_are_destroyed(house: House, dataset_id: str, owner: rows.Key) -> None:
    """W10: the process died between marking the dataset and destroying its key."""
    with house.database.write() as tx:
        other = rows.dataset(tx, owner.id).id
        rows.dataset(tx, owner.id, deleted_at=now(), deletion_receipt={"statement": {}})
        tx.get_one(Dataset, dataset_id).deleted_at = now()
    for each in (dataset_id, other):
        house.areas.keys.keep(each, each.encode())
    with house.database.read() as session:
        half_deleted = repository.list_half_deleted(session)
    assert half_deleted == [dataset_id]
    Disposal(house.areas).keys(half_deleted)
    assert list(entries(house.areas.keys.store).values()) == [other.encode()]


def test_sweep_after_a_crash_finishes_the_disposal(
    house: House, dataset_id: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """W10: an object's name is cleared only after the object was deleted."""
    content_id = house.content(dataset_id, 1, "rejected", table=False)
    delete = type(house.areas.incoming).delete

    def delete_then_fail(store: object, name: str) -> None:
        delete(store, name)  # type: ignore[arg-type]
        raise DependencyUnavailable

    with monkeypatch.context() as patch:
        patch.setattr(type(house.areas.incoming), "delete", delete_then_fail)
        with pytest.raises(DependencyUnavailable):
            house.dispose()
    with house.database.read() as session:
        assert uploads.list_objects(session, [content_id]) != []
    house.dispose()
    assert house.kept(content_id) == (False, False)


def test_objects_are_deleted_outside_of_transactions(
    house: House, dataset_id: str, owner: rows.Key, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A slow store blocks no writer; an upload that has ended is not completed later."""
    old, _ = (house.content(dataset_id, version, "ready") for version in (1, 2))
    with house.database.write() as tx:
        upload = rows.upload(tx, dataset_id, owner.id, [new_object(house.areas.incoming)])
    open_now: list[int] = []
    write, delete = Database.write, type(house.areas.incoming).delete
    seen: list[str] = []

    @contextmanager
    def counted(database: Database) -> Iterator[WriteSession]:
        with write(database) as tx:
            open_now.append(1)
            try:
                yield tx
            finally:
                open_now.pop()

    def watched(store: object, name: str) -> None:
        assert open_now == []
        with house.database.read() as session:
            current = session.get(Upload, upload.id)
            seen.append("" if current is None else current.status)
        delete(store, name)  # type: ignore[arg-type]

    monkeypatch.setattr(Database, "write", counted)
    monkeypatch.setattr(type(house.areas.incoming), "delete", watched)
    house.dispose()
    Disposal(house.areas).end_lapsed(house.database)
    originals, table, given_up = 2 * 2 * ["open"], ["open"], 2 * ["ended"]  # each part, and its key before it
    assert seen == [*originals, *table, *given_up]
    assert house.kept(old) == (False, False)
    assert len(stored(house.areas)) == 1
    with house.database.read() as session:
        assert session.get(Upload, upload.id) is None


def test_pinned_contents_do_not_block_the_disposal_of_others(house: House, dataset_id: str, owner: rows.Key) -> None:
    """There are more of them than one sweep takes, and all have smaller ids."""
    pinned = [house.content(dataset_id, version, "ready") for version in range(1, BATCH + 6)]
    house.content(dataset_id, BATCH + 6, "ready")
    with house.database.write() as tx:
        other = rows.dataset(tx, owner.id).id
    waiting = house.content(other, 1, "rejected", table=False)
    disposal = Disposal(house.areas)
    for _ in range(2):
        disposal.contents(house.database, lambda _, content_id: content_id in pinned)
    assert house.kept(waiting) == (False, False)
    for _ in range(2):
        disposal.contents(house.database, lambda *_: False)
    assert [house.kept(content_id) for content_id in pinned] == [(False, False)] * len(pinned)


def test_objects_that_cannot_be_deleted_do_not_block_others(
    house: House, dataset_id: str, owner: rows.Key, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both originals and parts of uploads are tried again, until the store deletes them."""
    stuck, other = (house.content(dataset_id, version, "rejected", table=False) for version in (1, 2))
    with house.database.write() as tx:
        held, free = (
            rows.upload(tx, dataset_id, owner.id, [new_object(house.areas.incoming)], status="ended") for _ in "ab"
        )
    with house.database.read() as session:
        refused = [part.object_name for part in uploads.list_objects(session, [stuck, held.content_id])]
    delete = type(house.areas.incoming).delete

    def delete_others(store: object, name: str) -> None:
        if name in refused:
            raise DependencyUnavailable
        delete(store, name)  # type: ignore[arg-type]

    disposal = Disposal(house.areas)
    with monkeypatch.context() as patch:
        patch.setattr(type(house.areas.incoming), "delete", delete_others)
        for _ in range(2):
            with suppress(DependencyUnavailable):
                disposal.contents(house.database, lambda *_: False)
            with suppress(DependencyUnavailable):
                disposal.end_lapsed(house.database)
    assert (house.kept(stuck), house.kept(other)) == ((True, False), (False, False))
    with house.database.read() as session:
        assert session.get(Upload, free.id) is None
        assert session.get(Upload, held.id) is not None
    for _ in range(2):
        disposal.contents(house.database, lambda *_: False)
        disposal.end_lapsed(house.database)
    assert stored(house.areas) == []
