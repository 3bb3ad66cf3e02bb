"""Objects appear whole or not at all, and reveal nothing by their names."""

import os
import time
from pathlib import Path

import pytest

from app.errors import DependencyUnavailable
from app.vault.errors import ObjectMissing, VaultError
from app.vault.store import LocalStore, new_name, open_store


def files(store_root: Path) -> list[Path]:
    return [path for path in store_root.rglob("*") if path.is_file()]


def put(store: LocalStore, data: bytes) -> str:
    with store.create() as target:
        target.write(data)
        return target.publish()


def test_what_was_published_is_read_and_deleted(store: LocalStore, tmp_path: Path) -> None:
    name = put(store, b"bytes")
    with store.open(name) as file:
        assert file.read() == b"bytes"
    store.delete(name)
    store.delete(name)
    assert files(tmp_path) == []
    with pytest.raises(ObjectMissing):
        store.open(name)


def test_a_note_takes_the_place_of_the_last_one(store: LocalStore, tmp_path: Path) -> None:
    """Notes and objects of one name have nothing to do with each other."""
    name = put(store, b"object")
    for content in (b"first", b"second", b""):
        store.leave(name, content)
        assert store.note(name) == content
    assert {path.stat().st_mode & 0o777 for path in files(tmp_path)} == {0o600}
    store.delete_note(name)
    store.delete_note(name)
    with pytest.raises(ObjectMissing):
        store.note(name)
    with pytest.raises(ObjectMissing):
        store.leave("../escape", b"x")
    with store.open(name) as file:
        assert file.read() == b"object"


def test_a_note_that_nobody_deletes_does_not_stay_for_ever(store: LocalStore, tmp_path: Path) -> None:
    store.leave(new_name(), b"x")
    store.delete_unfinished(3600)
    assert len(files(tmp_path)) == 1
    store.delete_unfinished(-1)
    assert files(tmp_path) == []


def test_nothing_shows_before_publication_nor_stays_without_it(store: LocalStore, tmp_path: Path) -> None:
    with store.create() as target:
        target.write(b"half")
        with pytest.raises(ObjectMissing):
            store.open(target.name)
    assert files(tmp_path) == []


def test_an_unfinished_object_can_be_deleted_by_name(store: LocalStore, tmp_path: Path) -> None:
    name = new_name()
    target = store.create(name)
    target.write(b"half")
    store.delete(name)
    assert files(tmp_path) == []
    target.discard()


def test_directories_and_files_are_closed_to_others(store: LocalStore, tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        put(LocalStore(tmp_path / "second"), b"x")
    finally:
        os.umask(before)
    root = tmp_path / "second"
    assert {path.stat().st_mode & 0o777 for path in [root, *root.rglob("*")] if path.is_dir()} == {0o700}
    assert {path.stat().st_mode & 0o777 for path in files(root)} == {0o600}


def test_names_are_random(store: LocalStore) -> None:
    """W3: no file name derives from rows."""
    assert len({put(store, b"same") for _ in range(20)}) == 20


@pytest.mark.parametrize("name", ["", "../../etc/passwd", "a" * 31, "A" * 32, "a" * 32 + "\n", "a" * 31 + "/"])
def test_other_names_name_nothing(store: LocalStore, name: str) -> None:
    for operation in (store.open, store.delete, store.create):
        with pytest.raises(ObjectMissing):
            operation(name)


def test_leftovers_of_dead_writers_are_swept_and_live_ones_kept(store: LocalStore, tmp_path: Path) -> None:
    name = put(store, b"published")
    dead, live = store.create(), store.create()
    os.utime(tmp_path / "store" / "unfinished" / dead.name, (time.time() - 7200, time.time() - 7200))
    store.delete_unfinished(3600)
    assert {path.name for path in files(tmp_path)} == {name, live.name}
    for target in (dead, live):
        target.discard()


def test_urls_lead_to_the_same_objects(store: LocalStore, tmp_path: Path) -> None:
    name = put(store, b"x")
    assert store.url == (tmp_path / "store").as_uri()
    with open_store(store.url).open(name) as file:
        assert file.read() == b"x"
    odd = tmp_path / "a b%c"
    assert open_store(odd.as_uri()).url == odd.as_uri()


@pytest.mark.parametrize("url", ["s3://bucket/x", "file://host/x", "/plain/path", "", "file:relative"])
def test_unknown_urls_are_refused_clearly(url: str) -> None:
    with pytest.raises(VaultError, match="file:///"):
        open_store(url)


def test_a_store_that_fails_is_unavailable_and_says_nothing_of_the_system(store: LocalStore, tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(DependencyUnavailable) as refusal:
        LocalStore(tmp_path / "file" / "below")
    assert str(tmp_path) not in str(refusal.value)
    assert refusal.value.__cause__ is None
