"""Bytes that nothing needs are destroyed; bytes that something needs are not."""

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
    """A database and the areas that its rows speak of."""

    database: Database
    areas: WorkerAreas

    def content(self, dataset_id: str, version: int, status: str, *, table: bool = True, **fields: Any) -> str:
        """A content whose sealed original and table lie in their areas."""
        original = [new_object(self.areas.incoming)]
        fields["table_object"] = new_object(self.areas.vault) if table else None
        with self.database.write() as tx:
            return rows.content(tx, dataset_id, version=version, status=status, original=original, **fields).id

    def dispose(self, pinned: Collection[str] = (), keep: timedelta = timedelta(0)) -> None:
        Disposal(self.areas, keep).contents(self.database, lambda _, content_id: content_id in pinned)

    def kept(self, content_id: str) -> tuple[bool, bool]:
        """Whether original and table of the content are still there; rows and areas must agree."""
        with self.database.read() as session:
            found = session.get_one(Content, content_id)
            original = [part.object_name for part in uploads.objects(session, [content_id])]
        names = set(stored(self.areas))
        assert {name for name in (*original, found.table_object) if name} <= names
        return bool(original), found.table_object is not None


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


def test_an_original_lives_until_its_ingestion_ends(house: House, dataset_id: str) -> None:
    waiting = house.content(dataset_id, 3, "received", table=False)
    rejected = house.content(dataset_id, 2, "rejected", table=False)
    ready = house.content(dataset_id, 1, "ready")
    house.dispose()
    assert house.kept(waiting) == (True, False)
    assert house.kept(rejected) == (False, False)
    assert house.kept(ready) == (False, True)
    assert len(stored(house.areas)) == 2


def test_a_superseded_table_lives_until_no_job_pins_it(house: House, dataset_id: str) -> None:
    old, new = (house.content(dataset_id, version, "ready") for version in (1, 2))
    house.content(dataset_id, 3, "rejected", table=False)
    house.dispose(pinned=[old])
    assert (house.kept(old), house.kept(new)) == ((False, True), (False, True))
    house.dispose()
    assert (house.kept(old), house.kept(new)) == ((False, False), (False, True))
    with house.database.read() as session:
        assert session.get_one(Content, old).wrapped_key is None


def test_a_superseded_table_is_kept_as_long_as_the_operator_says(house: House, dataset_id: str) -> None:
    """Counted from the moment at which the newer one came into force, not from its own."""
    long_ago = now() - timedelta(days=40)
    old = house.content(dataset_id, 1, "ready", ended_at=long_ago)
    house.content(dataset_id, 2, "ready", ended_at=now() - timedelta(days=5))
    house.dispose(keep=timedelta(days=6))
    assert house.kept(old) == (False, True)
    house.dispose(keep=timedelta(days=4))
    assert house.kept(old) == (False, False)


def test_a_deleted_dataset_keeps_nothing_pinned_or_not(house: House, dataset_id: str) -> None:
    contents = [house.content(dataset_id, version, "ready") for version in (1, 2)]
    contents.append(house.content(dataset_id, 3, "received", table=False))
    with house.database.write() as tx:
        tx.get_one(Dataset, dataset_id).deleted_at = now()
    house.dispose(pinned=contents, keep=timedelta(days=100))
    assert stored(house.areas) == []
    assert [house.kept(content_id) for content_id in contents] == [(False, False)] * 3


def test_keys_of_half_deleted_datasets_are_found_and_destroyed(house: House, dataset_id: str, owner: rows.Key) -> None:
    """W10: a deletion whose process died between the mark and the key."""
    with house.database.write() as tx:
        other = rows.dataset(tx, owner.id).id
        rows.dataset(tx, owner.id, deleted_at=now(), deletion_receipt={"statement": {}})
        tx.get_one(Dataset, dataset_id).deleted_at = now()
    for each in (dataset_id, other):
        house.areas.keys.keep(each, each.encode())
    with house.database.read() as session:
        half_deleted = repository.half_deleted(session)
    assert half_deleted == [dataset_id]
    Disposal(house.areas).keys(half_deleted)
    assert list(entries(house.areas.keys.store).values()) == [other.encode()]


def test_what_a_crash_leaves_half_done_is_finished_by_the_next_sweep(
    house: House, dataset_id: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """W10: names outlive bytes, never the other way round."""
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
        assert uploads.objects(session, [content_id]) != []
    house.dispose()
    assert house.kept(content_id) == (False, False)


def test_no_transaction_waits_for_a_store(
    house: House, dataset_id: str, owner: rows.Key, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A slow store holds up no writer; what goes is decided before, for good: an upload that ended is not completed."""
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
            found = session.get(Upload, upload.id)
            seen.append("" if found is None else found.status)
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


def test_what_a_job_holds_does_not_keep_others_from_their_turn(house: House, dataset_id: str, owner: rows.Key) -> None:
    """More of them than one sweep looks at, and all before the others by their ids."""
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


def test_what_the_store_refuses_does_not_keep_others_from_their_turn(
    house: House, dataset_id: str, owner: rows.Key, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither an original nor a part of an upload; they are tried again, and go once the store lets them."""
    stuck, other = (house.content(dataset_id, version, "rejected", table=False) for version in (1, 2))
    with house.database.write() as tx:
        held, free = (
            rows.upload(tx, dataset_id, owner.id, [new_object(house.areas.incoming)], status="ended") for _ in "ab"
        )
    with house.database.read() as session:
        refused = [part.object_name for part in uploads.objects(session, [stuck, held.content_id])]
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
