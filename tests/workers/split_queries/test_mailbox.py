"""Sums in a mailbox open for their part only, while their task exists."""

import struct
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from app.inference.core.query import Integers, Query
from app.inference.private_zone.partition import Slots
from app.inference.private_zone.queries import PotentialSum
from app.inference.private_zone.queries.arrays import from_arrays, to_arrays
from support.vault import Vault, make_vault
from tests.inference.private_zone.test_people import QUERIES
from workers.split_queries.mailbox import Mailbox, PartFaulty, Task, clear_mailbox

CANARY = 123456.78901234
SUMS = np.array([2**61, -5, 0], dtype=np.int64)


def mailbox(vault: Vault, job_id: str = "job_1", token: int = 1) -> Mailbox:
    return Mailbox(vault.store, vault.opening_key, job_id, token)


def task(query: Query = QUERIES[0], slots: Slots = range(100)) -> Task:
    return Task(query, slots, [0, 40, 80, len(slots)])


@pytest.mark.parametrize("query", QUERIES, ids=lambda query: query.kind)
def test_query_is_restored_from_its_arrays(query: Query) -> None:
    arrays = to_arrays(query)
    again = to_arrays(from_arrays(arrays))
    assert type(from_arrays(arrays)) is type(query)
    assert {name: array.tobytes() for name, array in again.items()} == {
        name: array.tobytes() for name, array in arrays.items()
    }


@pytest.mark.parametrize("slots", [range(100), np.arange(0, 300, 3)], ids=["all", "some"])
def test_task_is_read_under_the_number_of_its_query(vault: Vault, slots: Slots) -> None:
    mine = mailbox(vault)
    wanted = task(slots=slots)
    assert mine.read_task(7) is None
    assert mine.put_task(7, wanted)
    received = mailbox(vault).read_task(7)
    assert received is not None
    assert (received.places, received.key, received.parts) == (wanted.places, wanted.key, 3)
    assert list(received.units(1)) == list(slots[40:80])
    assert to_arrays(received.query).keys() == to_arrays(wanted.query).keys()
    assert mine.read_task(6) is None
    assert mine.put_task(8, wanted)
    assert mine.read_task(7) is None


def test_sums_and_faults_are_read_under_their_task(vault: Vault) -> None:
    mine, wanted = mailbox(vault), task()
    assert mine.read_part(0, wanted, 2) is None
    mailbox(vault).put_part(0, wanted, 2, SUMS)
    sums = mine.read_part(0, wanted, 2)
    assert sums is not None
    assert sums.tolist() == SUMS.tolist()
    mailbox(vault).put_part(0, wanted, 1, None)
    with pytest.raises(PartFaulty):
        mine.read_part(0, wanted, 1)
    mine.delete_part(0, 2)
    assert mine.read_part(0, wanted, 2) is None


def read_moved_sums(vault: Vault, source: tuple[str, int, int, int], key: bytes) -> Integers | None:
    """Seal sums for ``source``, move the note, and read it elsewhere.

    It is read as part 2 of query 1 of attempt 1.
    """
    wanted = task()
    job_id, token, query, part = source
    mailbox(vault, job_id, token).put_part(query, Task(wanted.query, wanted.slots, wanted.places, key), part, SUMS)
    ((name, content),) = vault.files().items()
    vault.store.delete_note(name)
    mine = mailbox(vault)
    mine.put_part(1, wanted, 2, None)
    (target,) = vault.files()
    _overwrite(vault, target, content)
    sums = mine.read_part(1, Task(wanted.query, wanted.slots, wanted.places, b"k" * 32), 2)
    vault.store.delete_note(target)
    return sums


def _overwrite(vault: Vault, name: str, content: bytes) -> None:
    vault.store.leave(name, content)


ELSEWHERE = {
    "another job": ("job_2", 1, 1, 2),
    "an earlier attempt": ("job_1", 0, 1, 2),
    "another query": ("job_1", 1, 0, 2),
    "another part": ("job_1", 1, 1, 1),
}


@pytest.mark.parametrize("source", ELSEWHERE.values(), ids=ELSEWHERE.keys())
def test_sums_moved_from_elsewhere_do_not_open(vault: Vault, source: tuple[str, int, int, int]) -> None:
    """Sums are bound to job, attempt, query and part."""
    assert read_moved_sums(vault, source, b"k" * 32) is None


def test_sums_under_another_key_do_not_open(vault: Vault) -> None:
    """An earlier task of the same query has another key."""
    assert read_moved_sums(vault, ("job_1", 1, 1, 2), b"l" * 32) is None
    assert read_moved_sums(vault, ("job_1", 1, 1, 2), b"k" * 32) is not None


def test_altered_or_truncated_notes_count_as_missing(vault: Vault) -> None:
    mine, wanted = mailbox(vault), task()
    for put, read in _objects(mine, wanted):
        put()
        ((name, content),) = vault.files().items()
        for altered in (content[:-1], content[:30], b"", content[:-1] + bytes([content[-1] ^ 1]), b"x" * 200):
            _overwrite(vault, name, altered)
            assert read() is None
        vault.store.delete_note(name)


def _objects(mine: Mailbox, wanted: Task) -> list[tuple[Callable[[], Any], Callable[[], Any]]]:
    return [
        (lambda: mine.put_task(3, wanted), lambda: mine.read_task(3)),
        (lambda: mine.put_part(3, wanted, 0, SUMS), lambda: mine.read_part(3, wanted, 0)),
    ]


def test_worker_with_another_opening_key_reads_no_task(vault: Vault) -> None:
    wanted = task()
    mailbox(vault).put_task(0, wanted)
    other = Mailbox(vault.store, make_vault(vault.root / "other").opening_key, "job_1", 1)
    assert other.read_task(0) is None


def test_w3_notes_are_encrypted(vault: Vault) -> None:
    """W3: queries, slots and sums are sealed."""
    query = PotentialSum(np.full((3, 6), CANARY), 0.5)
    wanted = Task(query, np.array([31337, 31338, 2**40]), [0, 2, 3])
    mine = mailbox(vault)
    mine.put_task(0, wanted)
    mine.put_part(0, wanted, 0, np.array([987654321987], dtype=np.int64))
    stored = b"".join(vault.files().values())
    for needle in (struct.pack("<d", CANARY), struct.pack("<q", 31337), struct.pack("<q", 987654321987), b"potential"):
        assert needle not in stored
    assert wanted.key not in stored
    assert repr(wanted.key) not in repr(wanted)


def test_clear_mailbox_deletes_all_notes_of_its_attempt_only(vault: Vault) -> None:
    mine, theirs, wanted = mailbox(vault), mailbox(vault, token=2), task()
    for each in (mine, theirs):
        each.put_task(5, wanted)
        for part in range(3):
            each.put_part(5, wanted, part, SUMS)
    before = set(vault.files())
    clear_mailbox(vault.store, "job_1", 1)
    assert len(before) == 8
    assert len(vault.files()) == 4
    assert theirs.read_task(5) is not None
    assert theirs.read_part(5, wanted, 0) is not None
    clear_mailbox(vault.store, "job_1", 1)
    clear_mailbox(vault.store, "job_1", 2)
    assert vault.files() == {}


def test_header_with_too_many_parts_is_ignored(vault: Vault) -> None:
    """An attacker with write access to the store cannot keep the sweeper busy."""
    mailbox(vault).put_task(0, task())
    (name,) = vault.files()
    _overwrite(vault, name, struct.pack("<4sQI", b"CVT1", 0, 2**32 - 1))
    clear_mailbox(vault.store, "job_1", 1)
    assert vault.files() == {}


def test_full_store_raises_no_error(vault: Vault) -> None:
    unfinished = vault.root / "store" / "unfinished"
    unfinished.write_bytes(b"")
    assert mailbox(vault).put_task(0, task()) is False
    mailbox(vault).put_part(0, task(), 0, SUMS)
    unfinished.unlink()
    assert vault.files() == {}


def test_old_note_is_deleted(vault: Vault) -> None:
    """W10: a helper that was killed late leaves a note that cannot be opened, and that is deleted later."""
    mailbox(vault).put_part(0, task(), 0, SUMS)
    vault.store.delete_unfinished(3600)
    assert len(vault.files()) == 1
    vault.store.delete_unfinished(-1)
    assert vault.files() == {}
