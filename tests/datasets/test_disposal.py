"""Bytes that nothing needs are destroyed; bytes that something needs are not."""

from collections.abc import Collection

import pytest

from app.datasets.disposal import dispose_unneeded
from app.datasets.models import Content, Dataset
from app.datasets.uploads import repository as uploads
from app.db import Database, now
from app.errors import DependencyUnavailable
from app.services import Services
from tests.factories import rows
from tests.factories.datasets import stored


@pytest.fixture
def dataset_id(database: Database, owner: rows.Key) -> str:
    with database.write() as tx:
        return rows.dataset(tx, owner.id).id


def new_object(services: Services) -> str:
    with services.store.create() as writer:
        return writer.publish()


def content(services: Services, dataset_id: str, version: int, status: str, *, table: bool = True) -> str:
    """A content whose sealed original and table lie in the store."""
    stored_table = new_object(services) if table else None
    with services.database.write() as tx:
        original = [new_object(services)]
        made = rows.content(
            tx, dataset_id, version=version, status=status, original=original, table_object=stored_table
        )
        return made.id


def dispose(services: Services, pinned: Collection[str] = ()) -> None:
    with services.database.write() as tx:
        dispose_unneeded(tx, services.store, pinned.__contains__)


def kept(services: Services, content_id: str) -> tuple[bool, bool]:
    """Whether original and table of the content are still there; rows and store must agree."""
    with services.database.read() as session:
        found = session.get_one(Content, content_id)
        original = [part.object_name for part in uploads.objects(session, [content_id])]
    names = set(stored(services.store))
    assert {name for name in (*original, found.table_object) if name} <= names
    return bool(original), found.table_object is not None


def test_an_original_lives_until_its_ingestion_ends(services: Services, dataset_id: str) -> None:
    waiting = content(services, dataset_id, 3, "received", table=False)
    rejected = content(services, dataset_id, 2, "rejected", table=False)
    ready = content(services, dataset_id, 1, "ready")
    dispose(services)
    assert kept(services, waiting) == (True, False)
    assert kept(services, rejected) == (False, False)
    assert kept(services, ready) == (False, True)
    assert len(stored(services.store)) == 2


def test_a_superseded_table_lives_until_no_job_pins_it(services: Services, dataset_id: str) -> None:
    old, new = (content(services, dataset_id, version, "ready") for version in (1, 2))
    content(services, dataset_id, 3, "rejected", table=False)
    dispose(services, pinned=[old])
    assert (kept(services, old), kept(services, new)) == ((False, True), (False, True))
    dispose(services)
    assert (kept(services, old), kept(services, new)) == ((False, False), (False, True))
    with services.database.read() as session:
        assert session.get_one(Content, old).wrapped_key is None


def test_a_deleted_dataset_keeps_nothing_pinned_or_not(services: Services, dataset_id: str) -> None:
    contents = [content(services, dataset_id, version, "ready") for version in (1, 2)]
    contents.append(content(services, dataset_id, 3, "received", table=False))
    with services.database.write() as tx:
        tx.get_one(Dataset, dataset_id).deleted_at = now()
    dispose(services, pinned=contents)
    assert stored(services.store) == []
    assert [kept(services, content_id) for content_id in contents] == [(False, False)] * 3


def test_what_a_crash_leaves_half_done_is_finished_by_the_next_sweep(
    services: Services, dataset_id: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """W10: names outlive bytes, never the other way round."""
    content_id = content(services, dataset_id, 1, "rejected", table=False)
    delete = type(services.store).delete

    def delete_then_fail(store: object, name: str) -> None:
        delete(store, name)  # type: ignore[arg-type]
        raise DependencyUnavailable

    with monkeypatch.context() as patch:
        patch.setattr(type(services.store), "delete", delete_then_fail)
        with pytest.raises(DependencyUnavailable):
            dispose(services)
    with services.database.read() as session:
        assert uploads.objects(session, [content_id]) != []
    dispose(services)
    assert kept(services, content_id) == (False, False)
