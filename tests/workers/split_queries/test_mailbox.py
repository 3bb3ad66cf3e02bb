"""What workers tell each other: it opens for the part that it was made for, and for nobody once its task is gone."""

import struct
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from app.inference.core.query import Integers, Query
from app.inference.private_zone.partition import Slots
from app.inference.private_zone.queries import PotentialSum
from app.inference.private_zone.queries.arrays import from_arrays, to_arrays
from support.vault import Vault, new_vault
from tests.inference.private_zone.test_people import QUERIES
from workers.split_queries.mailbox import Exchange, PartFaulty, Task, clear

CANARY = 123456.78901234
SUMS = np.array([2**61, -5, 0], dtype=np.int64)


def exchange(vault: Vault, job_id: str = "job_1", token: int = 1) -> Exchange:
    return Exchange(vault.store, vault.opening_key, job_id, token)


def task(query: Query = QUERIES[0], slots: Slots = range(100)) -> Task:
    return Task(query, slots, [0, 40, 80, len(slots)])


@pytest.mark.parametrize("query", QUERIES, ids=lambda query: query.kind)
def test_queries_survive_their_journey_bit_for_bit(query: Query) -> None:
    arrays = to_arrays(query)
    again = to_arrays(from_arrays(arrays))
    assert type(from_arrays(arrays)) is type(query)
    assert {name: array.tobytes() for name, array in again.items()} == {
        name: array.tobytes() for name, array in arrays.items()
    }


@pytest.mark.parametrize("slots", [range(100), np.arange(0, 300, 3)], ids=["all", "some"])
def test_a_task_is_told_to_who_asks_for_its_query(vault: Vault, slots: Slots) -> None:
    mine = exchange(vault)
    told = task(slots=slots)
    assert mine.read_task(7) is None
    assert mine.tell(7, told)
    heard = exchange(vault).read_task(7)
    assert heard is not None
    assert (heard.places, heard.key, heard.parts) == (told.places, told.key, 3)
    assert list(heard.units(1)) == list(slots[40:80])
    assert to_arrays(heard.query).keys() == to_arrays(told.query).keys()
    assert mine.read_task(6) is None
    assert mine.tell(8, told)
    assert mine.read_task(7) is None


def test_sums_are_read_by_who_asked_for_them(vault: Vault) -> None:
    mine, told = exchange(vault), task()
    assert mine.read_part(0, told, 2) is None
    exchange(vault).hand_in(0, told, 2, SUMS)
    found = mine.read_part(0, told, 2)
    assert found is not None
    assert found.tolist() == SUMS.tolist()
    exchange(vault).hand_in(0, told, 1, None)
    with pytest.raises(PartFaulty):
        mine.read_part(0, told, 1)
    mine.withdraw(0, 2)
    assert mine.read_part(0, told, 2) is None


def moved(vault: Vault, source: tuple[str, int, int, int], key: bytes) -> Integers | None:
    """What is read at part 2 of query 1 of attempt 1, where somebody put what was sealed elsewhere."""
    told = task()
    job_id, token, query, part = source
    exchange(vault, job_id, token).hand_in(query, Task(told.query, told.slots, told.places, key), part, SUMS)
    ((name, content),) = vault.files().items()
    vault.store.delete_note(name)
    mine = exchange(vault)
    mine.hand_in(1, told, 2, None)
    (target,) = vault.files()
    _overwrite(vault, target, content)
    found = mine.read_part(1, Task(told.query, told.slots, told.places, b"k" * 32), 2)
    vault.store.delete_note(target)
    return found


def _overwrite(vault: Vault, name: str, content: bytes) -> None:
    vault.store.leave(name, content)


ELSEWHERE = {
    "another job": ("job_2", 1, 1, 2),
    "an earlier attempt": ("job_1", 0, 1, 2),
    "another query": ("job_1", 1, 0, 2),
    "another part": ("job_1", 1, 1, 1),
}


@pytest.mark.parametrize("source", ELSEWHERE.values(), ids=ELSEWHERE.keys())
def test_sums_of_anything_else_do_not_open(vault: Vault, source: tuple[str, int, int, int]) -> None:
    """Bound to job, attempt, query and part, whoever copied them where."""
    assert moved(vault, source, b"k" * 32) is None


def test_sums_under_another_key_do_not_open(vault: Vault) -> None:
    """An earlier task of the same query is another task."""
    assert moved(vault, ("job_1", 1, 1, 2), b"l" * 32) is None
    assert moved(vault, ("job_1", 1, 1, 2), b"k" * 32) is not None


def test_altered_or_truncated_objects_are_as_good_as_missing(vault: Vault) -> None:
    mine, told = exchange(vault), task()
    for put, read in _objects(mine, told):
        put()
        ((name, content),) = vault.files().items()
        for altered in (content[:-1], content[:30], b"", content[:-1] + bytes([content[-1] ^ 1]), b"x" * 200):
            _overwrite(vault, name, altered)
            assert read() is None
        vault.store.delete_note(name)


def _objects(mine: Exchange, told: Task) -> list[tuple[Callable[[], Any], Callable[[], Any]]]:
    return [
        (lambda: mine.tell(3, told), lambda: mine.read_task(3)),
        (lambda: mine.hand_in(3, told, 0, SUMS), lambda: mine.read_part(3, told, 0)),
    ]


def test_the_worker_of_another_house_reads_nothing(vault: Vault) -> None:
    told = task()
    exchange(vault).tell(0, told)
    other = Exchange(vault.store, new_vault(vault.root / "other").opening_key, "job_1", 1)
    assert other.read_task(0) is None


def test_w3_nothing_lies_in_the_clear(vault: Vault) -> None:
    """W3: neither what is asked, nor for whom, nor what comes back."""
    query = PotentialSum(np.full((3, 6), CANARY), 0.5)
    told = Task(query, np.array([31337, 31338, 2**40]), [0, 2, 3])
    mine = exchange(vault)
    mine.tell(0, told)
    mine.hand_in(0, told, 0, np.array([987654321987], dtype=np.int64))
    stored = b"".join(vault.files().values())
    for needle in (struct.pack("<d", CANARY), struct.pack("<q", 31337), struct.pack("<q", 987654321987), b"potential"):
        assert needle not in stored
    assert told.key not in stored
    assert repr(told.key) not in repr(told)


def test_clearing_leaves_nothing_of_an_attempt_and_all_of_others(vault: Vault) -> None:
    mine, theirs, told = exchange(vault), exchange(vault, token=2), task()
    for each in (mine, theirs):
        each.tell(5, told)
        for part in range(3):
            each.hand_in(5, told, part, SUMS)
    before = set(vault.files())
    clear(vault.store, "job_1", 1)
    assert len(before) == 8
    assert len(vault.files()) == 4
    assert theirs.read_task(5) is not None
    assert theirs.read_part(5, told, 0) is not None
    clear(vault.store, "job_1", 1)
    clear(vault.store, "job_1", 2)
    assert vault.files() == {}


def test_a_header_that_lies_costs_no_time(vault: Vault) -> None:
    """Whoever can write to the store cannot keep the sweeper busy."""
    exchange(vault).tell(0, task())
    (name,) = vault.files()
    _overwrite(vault, name, struct.pack("<4sQI", b"CVT1", 0, 2**32 - 1))
    clear(vault.store, "job_1", 1)
    assert vault.files() == {}


def test_a_store_that_is_full_is_no_fault(vault: Vault) -> None:
    unfinished = vault.root / "store" / "unfinished"
    unfinished.write_bytes(b"")
    assert exchange(vault).tell(0, task()) is False
    exchange(vault).hand_in(0, task(), 0, SUMS)
    unfinished.unlink()
    assert vault.files() == {}


def test_what_nobody_clears_is_deleted_when_it_is_old(vault: Vault) -> None:
    """W10: a helper that was killed in the last moment leaves a note that opens for nobody, and not for ever."""
    exchange(vault).hand_in(0, task(), 0, SUMS)
    vault.store.delete_unfinished(3600)
    assert len(vault.files()) == 1
    vault.store.delete_unfinished(-1)
    assert vault.files() == {}
