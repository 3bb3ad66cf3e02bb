"""One step ahead: the same finds in the same order, never two ahead, and nothing after the end."""

import threading
from collections.abc import Mapping
from contextlib import closing
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from app.inference.private_zone import partition
from app.inference.private_zone.partition import partial_sum
from app.inference.private_zone.queries import MeanSum
from app.inference.private_zone.queries.blocks import MOST_ROWS
from app.inference.private_zone.read_ahead import read_ahead
from support.table import Table
from tests.inference.support import DESIGN, MODEL, WIDTH, table

WAIT_SECONDS = 10


class Finding:
    """Doubles numbers, and keeps what it was asked for and by which thread."""

    def __init__(self, faulty: int | None = None) -> None:
        self.asked: list[int] = []
        self.threads: set[int] = set()
        self.changed = threading.Condition()
        self._faulty = faulty

    def __call__(self, step: int) -> int:
        with self.changed:
            self.asked.append(step)
            self.threads.add(threading.get_ident())
            self.changed.notify_all()
        if step == self._faulty:
            raise LookupError
        return 2 * step

    def wait_for(self, count: int) -> bool:
        """Whether so many are asked for, or soon will be."""
        with self.changed:
            return self.changed.wait_for(lambda: len(self.asked) >= count, WAIT_SECONDS)


@pytest.mark.parametrize("count", [0, 1, 2, 9])
def test_what_is_found_comes_in_order_and_from_one_thread(count: int) -> None:
    find = Finding()
    assert list(read_ahead(find, range(count))) == [2 * step for step in range(count)]
    assert find.asked == list(range(count))
    assert len(find.threads) == min(count, 1)
    assert (threading.get_ident() in find.threads) == (count == 1)


def test_the_next_one_is_found_meanwhile_and_no_other() -> None:
    """Memory is bounded by two, and the time of both passes at once."""
    find = Finding()
    for step, _ in enumerate(read_ahead(find, range(5))):
        due = min(step + 2, 5)
        assert find.wait_for(due)
        assert len(find.asked) == due


def test_a_fault_is_met_in_its_turn_and_ends_the_finding() -> None:
    find, taken = Finding(faulty=2), list[int]()
    with pytest.raises(LookupError):
        taken.extend(read_ahead(find, range(9)))
    assert taken == [0, 2]
    assert find.asked == [0, 1, 2]


def test_without_another_thread_the_caller_finds_all(monkeypatch: pytest.MonkeyPatch) -> None:
    """W14: a system that is full of threads is no fault among the rows."""

    def refused(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", refused)
    find = Finding()
    assert list(read_ahead(find, range(4))) == [0, 2, 4, 6]
    assert find.threads == {threading.get_ident()}


def test_nothing_is_found_after_the_close() -> None:
    """Whoever closes the table knows that nobody reads it."""
    find = Finding()
    before = threading.active_count()
    with closing(read_ahead(find, range(9))) as finds:
        assert next(finds) == 0
    assert threading.active_count() == before
    assert find.asked == [0, 1]


class Slow(Table):
    """Says whether it is being read."""

    reading = False

    def gather(self, indices: NDArray[np.int64]) -> Mapping[str, NDArray[Any]]:
        self.reading = True
        threading.Event().wait(0.05)
        found = super().gather(indices)
        self.reading = False
        return found


class Refusing(MeanSum):
    """A query that fails over the first chunk."""

    def sum(self, *_: object) -> Any:
        raise ArithmeticError


def test_a_sum_that_fails_leaves_nobody_at_the_table(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not even while the error, and with it all that the sum held, is kept."""
    monkeypatch.setattr(partition, "CHUNK_ROWS", MOST_ROWS)
    source = Slow(table(5 * MOST_ROWS).columns, 1)
    with pytest.raises(ArithmeticError) as kept:
        partial_sum(Refusing(1.0, WIDTH, intercept=True, clip=1.0), MODEL, DESIGN, source, range(source.slots))
    assert kept.tb is not None
    assert not source.reading
    assert len(source.gathered) == 2
