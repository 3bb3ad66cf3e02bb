"""Files of the local store: their permissions, and the removal of leftovers."""

import os
import stat
import time
from pathlib import Path

import pytest

from app.errors import DependencyUnavailable
from app.vault.local_store import LocalStore
from app.vault.stores import make_folder_url, open_store


def files(store_root: Path) -> list[Path]:
    return [path for path in store_root.rglob("*") if path.is_file()]


def put(store: LocalStore, data: bytes) -> str:
    with store.create() as target:
        target.write(data)
        return target.publish()


def modes(root: Path) -> tuple[set[int], set[int]]:
    """Of directories and of files."""
    below_root = list(root.rglob("*"))
    directories = {stat.S_IMODE(path.stat().st_mode) for path in [root, *below_root] if path.is_dir()}
    return directories, {stat.S_IMODE(path.stat().st_mode) for path in below_root if path.is_file()}


@pytest.mark.parametrize("umask", [0, 0o077])
def test_directories_and_files_are_closed_to_others(tmp_path: Path, umask: int) -> None:
    store, before = LocalStore(tmp_path / "second"), os.umask(umask)
    try:
        put(store, b"x")
        store.leave("0" * 32, b"note")
    finally:
        os.umask(before)
    assert modes(tmp_path / "second") == ({0o700}, {0o600})


@pytest.mark.parametrize(("shared", "file"), [(0o2770, 0o660), (0o2750, 0o640)])
def test_an_area_shared_with_a_group_stays_shared(tmp_path: Path, shared: int, file: int) -> None:
    """API and worker may be two users; each reads files of the other under any umask."""
    root, before = tmp_path / "area", os.umask(0o077)
    root.mkdir()
    root.chmod(shared)
    try:
        put(LocalStore(root), b"x")
    finally:
        os.umask(before)
    assert modes(root) == ({shared}, {file})


def test_no_folder_is_created_before_the_first_write(tmp_path: Path) -> None:
    """A process with read access starts before the first write to the area."""
    store = LocalStore(tmp_path / "area")
    store.delete_unfinished(0)
    assert list((tmp_path / "area").iterdir()) == []


def test_an_unmounted_disk_is_unavailable_and_not_empty(store: LocalStore, tmp_path: Path) -> None:
    name = put(store, b"x")
    (tmp_path / "store").rename(tmp_path / "elsewhere")
    with pytest.raises(DependencyUnavailable):
        store.create()
    assert not (tmp_path / "store").exists()
    (tmp_path / "elsewhere").rename(tmp_path / "store")
    with store.open(name) as file:
        assert file.read() == b"x"


def test_leftovers_of_dead_writers_are_swept_and_live_ones_kept(store: LocalStore, tmp_path: Path) -> None:
    name = put(store, b"published")
    dead, live = store.create(), store.create()
    os.utime(tmp_path / "store" / "unfinished" / dead.name, (time.time() - 7200, time.time() - 7200))
    store.delete_unfinished(3600)
    assert {path.name for path in files(tmp_path)} == {name, live.name}
    for target in (dead, live):
        target.discard()


def test_a_url_opens_the_same_objects(store: LocalStore, tmp_path: Path) -> None:
    name = put(store, b"x")
    assert store.url == (tmp_path / "store").as_uri()
    with open_store(store.url).open(name) as file:
        assert file.read() == b"x"
    odd = tmp_path / "a b%c"
    assert open_store(odd.as_uri()).url == odd.as_uri()
    assert make_folder_url(odd.as_uri(), "vault") == (odd / "vault").as_uri()


def test_errors_of_the_disk_do_not_show_system_messages(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(DependencyUnavailable) as refusal:
        LocalStore(tmp_path / "file" / "below").create()
    assert str(tmp_path) not in str(refusal.value)
    assert refusal.value.__cause__ is None


def test_write_back_of_a_large_object_starts_before_its_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Write-back covers all but the last MiB once, in order; the newest ranges stay cached."""
    advised: list[tuple[int, int]] = []
    monkeypatch.setattr(
        "app.vault.local_store.os.posix_fadvise", lambda _, start, size, __: advised.append((start, size))
    )
    piece = bytes(1_000_003)
    with LocalStore(tmp_path).create() as target:
        for _ in range(120):
            target.write(piece)
    written_back: list[tuple[int, int]] = []
    dropped: list[tuple[int, int]] = []
    for start, size in advised:
        (written_back if start == sum(length for _, length in written_back) else dropped).append((start, size))
    assert 0 <= 120 * len(piece) - sum(written_back[-1]) < 9 << 20
    assert {start for start, _ in dropped} == {0}
    assert [size for _, size in dropped] == [sum(each) - (64 << 20) for each in written_back if sum(each) > 64 << 20]
