"""Marks: written once, the newest of each account kept, and nothing undone by whoever writes last."""

from pathlib import Path

import pytest

from app.errors import DependencyUnavailable
from app.vault.errors import ObjectMissing, VaultError
from app.vault.marks import LocalMarks, MarkName, Marks, newest, newest_each, open_marks


@pytest.fixture
def marks(storage_url: str) -> Marks:
    """In a folder or, under ``make test-services``, in a bucket."""
    return open_marks(storage_url)


def name(account: str, sequence: int) -> MarkName:
    return MarkName(account, sequence, f"{sequence:064x}")


def test_a_place_is_empty_until_something_lies_there(marks: Marks) -> None:
    assert marks.names() == frozenset()
    with pytest.raises(ObjectMissing):
        marks.read(name("acc_1", 1))


def test_the_newest_of_each_account_stays(marks: Marks) -> None:
    for account, sequence in [("acc_1", 1), ("acc_2", 2), ("acc_1", 3), ("acc_2", 10)]:
        marks.put(name(account, sequence), f"{account} {sequence}".encode())
    assert marks.names() == {name("acc_1", 3), name("acc_2", 10)}
    assert marks.read(name("acc_1", 3)) == b"acc_1 3"
    assert newest(marks.names()) == name("acc_2", 10)


def test_whoever_comes_late_undoes_nothing(marks: Marks) -> None:
    """Two workers, the slower of which puts down the older mark last."""
    marks.put(name("acc_1", 7), b"new")
    marks.put(name("acc_1", 5), b"late")
    assert newest_each(marks.names()) == [name("acc_1", 7)]
    assert marks.read(name("acc_1", 7)) == b"new"


def test_a_file_is_whole_or_not_there(tmp_path: Path) -> None:
    marks = LocalMarks(tmp_path)
    (tmp_path / ".half-written").write_bytes(b"{")
    (tmp_path / "acc_1.12.34").write_bytes(b"{")
    assert marks.names() == frozenset()


def test_a_place_that_cannot_be_reached_is_unavailable(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(DependencyUnavailable):
        LocalMarks(tmp_path / "file" / "below").put(name("acc_1", 1), b"")


@pytest.mark.parametrize(
    "url", ["", "mark", "file://host/mark", "http://host/mark", "s3:///prefix", "s3://key@bucket/x", "s3://b/x?acl=1"]
)
def test_other_urls_are_refused(url: str) -> None:
    with pytest.raises(VaultError, match="mark's URL"):
        open_marks(url)
