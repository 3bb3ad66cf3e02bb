"""High-water marks: they are written once, and only the newest of each account stays."""

from pathlib import Path

import pytest

from app.errors import DependencyUnavailable
from app.vault.errors import ObjectMissing, VaultError
from app.vault.marks import LocalMarks, MarkName, Marks, find_newest, find_newest_each, open_marks


@pytest.fixture
def marks(storage_url: str) -> Marks:
    """Return a store in a folder or, with ``make test-services``, in a bucket."""
    return open_marks(storage_url)


def name(account: str, sequence: int) -> MarkName:
    return MarkName(account, sequence, f"{sequence:064x}")


def test_new_store_of_marks_is_empty(marks: Marks) -> None:
    assert marks.names() == frozenset()
    with pytest.raises(ObjectMissing):
        marks.read(name("acc_1", 1))


def test_newest_mark_of_each_account_stays(marks: Marks) -> None:
    for account, sequence in [("acc_1", 1), ("acc_2", 2), ("acc_1", 3), ("acc_2", 10)]:
        marks.put(name(account, sequence), f"{account} {sequence}".encode())
    assert marks.names() == {name("acc_1", 3), name("acc_2", 10)}
    assert marks.read(name("acc_1", 3)) == b"acc_1 3"
    assert find_newest(marks.names()) == name("acc_2", 10)


def test_late_writer_does_not_replace_a_newer_mark(marks: Marks) -> None:
    """Of two workers, the slower one writes the older mark last."""
    marks.put(name("acc_1", 7), b"new")
    marks.put(name("acc_1", 5), b"late")
    assert find_newest_each(marks.names()) == [name("acc_1", 7)]
    assert marks.read(name("acc_1", 7)) == b"new"


def test_incomplete_files_are_no_marks(tmp_path: Path) -> None:
    marks = LocalMarks(tmp_path)
    (tmp_path / ".half-written").write_bytes(b"{")
    (tmp_path / "acc_1.12.34").write_bytes(b"{")
    assert marks.names() == frozenset()


def test_store_of_marks_that_cannot_be_reached_is_unavailable(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(DependencyUnavailable):
        LocalMarks(tmp_path / "file" / "below").put(name("acc_1", 1), b"")


@pytest.mark.parametrize(
    "url", ["", "mark", "file://host/mark", "http://host/mark", "s3:///prefix", "s3://key@bucket/x", "s3://b/x?acl=1"]
)
def test_unsupported_mark_urls_are_refused(url: str) -> None:
    with pytest.raises(VaultError, match="mark's URL"):
        open_marks(url)
