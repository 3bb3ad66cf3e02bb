"""The contract of every object store: objects appear as a whole, under random names."""

import io
import secrets
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from pyarrow.fs import FileSelector, FileSystem, FileType, LocalFileSystem

from app.vault.errors import ObjectMissing
from app.vault.local_store import LocalStore
from app.vault.s3_store import S3Store
from app.vault.store import ObjectStore, draw_name
from app.vault.stores import open_store
from tests.factories import stack

PIECE = 1 << 16
LARGE = secrets.token_bytes(3 * PIECE + 7)
SIZES = [0, 1, PIECE - 1, PIECE, PIECE + 1, 2 * PIECE, len(LARGE)]


@dataclass
class Subject:
    """A store, and a function that lists its files or keys."""

    store: ObjectStore
    behind: Callable[[], list[str]]
    """The names of all files or keys."""


@pytest.fixture(params=["local", pytest.param("s3", marks=pytest.mark.services)])
def subject(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Subject]:
    if request.param == "local":
        yield Subject(LocalStore(tmp_path), lambda: names(LocalFileSystem(), str(tmp_path)))
        return
    opened = open_store(stack.fresh_storage(tmp_path))
    assert isinstance(opened, S3Store)
    keys = opened._keys
    yield Subject(S3Store(keys, opened.url, tmp_path, PIECE), lambda: names(keys._server, keys._root))


@pytest.fixture
def store(subject: Subject) -> ObjectStore:
    return subject.store


def names(system: FileSystem, root: str) -> list[str]:
    found = system.get_file_info(FileSelector(root, recursive=True, allow_not_found=True))
    return sorted(each.path for each in found if each.type is FileType.File)


def put(store: ObjectStore, data: bytes, name: str | None = None) -> str:
    with store.create(name) as target:
        for start in range(0, len(data), 10_000):
            target.write(data[start : start + 10_000])
        return target.publish()


def read(store: ObjectStore, name: str) -> bytes:
    with store.open(name) as file:
        return file.read()


@pytest.mark.parametrize("size", SIZES)
def test_published_object_is_read_and_deleted(subject: Subject, size: int) -> None:
    name = put(subject.store, LARGE[:size])
    assert read(subject.store, name) == LARGE[:size]
    subject.store.delete(name)
    subject.store.delete(name)
    assert subject.behind() == []
    with pytest.raises(ObjectMissing):
        subject.store.open(name)


def test_an_object_is_as_seekable_as_a_file(store: ObjectStore) -> None:
    reference = io.BytesIO(LARGE)
    with store.open(put(store, LARGE)) as file:
        assert (file.readable(), file.seekable()) == (True, True)
        for offset, whence, length in [
            (-10, io.SEEK_END, 10),
            (0, io.SEEK_SET, 5),
            (PIECE - 3, io.SEEK_CUR, PIECE + 9),
            (-20, io.SEEK_CUR, 30),
            (3 * PIECE, io.SEEK_SET, 100),
            (17, io.SEEK_SET, 2 * PIECE),
            (50, io.SEEK_END, 10),
        ]:
            assert file.seek(offset, whence) == reference.seek(offset, whence)
            assert file.read(length) == reference.read(length)
            assert file.tell() == reference.tell()
        with pytest.raises((ValueError, OSError)):
            file.seek(-1)


@pytest.mark.parametrize("size", [5, len(LARGE)])
def test_unpublished_object_is_invisible_and_leaves_no_file(subject: Subject, size: int) -> None:
    with subject.store.create() as target:
        target.write(LARGE[:size])
        with pytest.raises(ObjectMissing):
            subject.store.open(target.name)
    assert subject.behind() == []
    target.discard()


def test_object_of_the_same_name_replaces_the_last_one(store: ObjectStore) -> None:
    """Readers get the old or the new one as a whole; ``rewrap`` replaces boxes in this way."""
    name = put(store, b"first")
    with store.create(name) as target:
        target.write(b"second")
        assert read(store, name) == b"first"
        target.publish()
    assert read(store, name) == b"second"


@pytest.mark.parametrize("size", [5, len(LARGE)])
def test_an_unfinished_object_can_be_deleted_by_name(subject: Subject, size: int) -> None:
    name = draw_name()
    target = subject.store.create(name)
    target.write(LARGE[:size])
    subject.store.delete(name)
    assert subject.behind() == []
    target.discard()


@pytest.mark.parametrize("size", [5, len(LARGE)])
def test_discarding_after_publication_is_harmless(store: ObjectStore, size: int) -> None:
    target = store.create()
    target.write(LARGE[:size])
    name = target.publish()
    target.discard()
    assert read(store, name) == LARGE[:size]


def test_leftovers_of_dead_writers_and_old_notes_are_swept(subject: Subject) -> None:
    name = put(subject.store, LARGE)
    dead = subject.store.create()
    dead.write(LARGE)
    subject.store.leave(draw_name(), b"note")
    before = subject.behind()
    subject.store.delete_unfinished(3600)
    assert subject.behind() == before
    subject.store.delete_unfinished(-60)
    assert read(subject.store, name) == LARGE
    assert not any(dead.name in path for path in subject.behind())
    dead.discard()
    subject.store.delete(name)
    assert subject.behind() == []


def test_note_replaces_the_last_one(subject: Subject) -> None:
    """A note and an object of the same name are independent."""
    store = subject.store
    name = put(store, b"object")
    for content in (b"first", b"second", b""):
        store.leave(name, content)
        assert store.note(name) == content
    store.delete_note(name)
    store.delete_note(name)
    with pytest.raises(ObjectMissing):
        store.note(name)
    assert read(store, name) == b"object"


def test_a_scratch_file_has_no_name_anywhere(subject: Subject) -> None:
    with subject.store.scratch() as file:
        file.write(b"sealed")
        file.seek(0)
        assert file.read() == b"sealed"
        assert subject.behind() == []


def test_names_are_random(store: ObjectStore) -> None:
    """W3: no name derives from rows."""
    assert len({put(store, b"same") for _ in range(20)}) == 20


@pytest.mark.parametrize("name", ["", "../../etc/passwd", "a" * 31, "A" * 32, "a" * 32 + "\n", "a" * 31 + "/"])
def test_invalid_name_is_refused(store: ObjectStore, name: str) -> None:
    for operation in (store.open, store.delete, store.create, store.note, store.delete_note):
        with pytest.raises(ObjectMissing):
            operation(name)
    with pytest.raises(ObjectMissing):
        store.leave(name, b"x")


def test_url_opens_the_same_objects_in_another_process(store: ObjectStore) -> None:
    name = put(store, LARGE)
    assert read(open_store(store.url), name) == LARGE
