"""Read-ahead: the same items in the same order, at most one ahead, and no read after the end."""

import threading
from collections.abc import Mapping
from contextlib import closing
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from app.inference.private_zone import partition
from app.inference.private_zone.partition import compute_partial_sum
from app.inference.private_zone.queries import MeanSum
from app.inference.private_zone.queries.blocks import MOST_ROWS
from app.inference.private_zone.read_ahead import read_ahead
from support.table import Table
from tests.inference.support import DESIGN, MODEL, WIDTH, table

WAIT_SECONDS = 10


class RecordingReader:
    """Doubles numbers, and records the steps and the threads that asked."""

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
        """Wait until ``count`` steps are asked for; False after a timeout."""
        with self.changed:
            return self.changed.wait_for(lambda: len(self.asked) >= count, WAIT_SECONDS)


@pytest.mark.parametrize("count", [0, 1, 2, 9])
def test_items_come_in_order_and_from_one_thread(count: int) -> None:
    read = RecordingReader()
    assert list(read_ahead(read, range(count))) == [2 * step for step in range(count)]
    assert read.asked == list(range(count))
    assert len(read.threads) == min(count, 1)
    assert (threading.get_ident() in read.threads) == (count == 1)


def test_one_item_is_read_ahead_and_no_more() -> None:
    """The next item is read while the caller works; at most two are held."""
    read = RecordingReader()
    for step, _ in enumerate(read_ahead(read, range(5))):
        due = min(step + 2, 5)
        assert read.wait_for(due)
        assert len(read.asked) == due


def test_an_exception_is_raised_in_its_turn_and_ends_the_reading() -> None:
    read, taken = RecordingReader(faulty=2), list[int]()
    with pytest.raises(LookupError):
        taken.extend(read_ahead(read, range(9)))
    assert taken == [0, 2]
    assert read.asked == [0, 1, 2]


def test_without_another_thread_the_caller_reads_all(monkeypatch: pytest.MonkeyPatch) -> None:
    """W14: a system without free threads is not a fault among the rows."""

    def refused(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", refused)
    read = RecordingReader()
    assert list(read_ahead(read, range(4))) == [0, 2, 4, 6]
    assert read.threads == {threading.get_ident()}


def test_no_item_is_read_after_the_close() -> None:
    """After the close, the table is not read any more."""
    read = RecordingReader()
    before = threading.active_count()
    with closing(read_ahead(read, range(9))) as finds:
        assert next(finds) == 0
    assert threading.active_count() == before
    assert read.asked == [0, 1]


class Slow(Table):
    """A table that records whether it is being read."""

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


def test_after_a_failed_sum_the_table_is_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """It holds even while the error and its traceback are alive."""
    monkeypatch.setattr(partition, "CHUNK_ROWS", MOST_ROWS)
    source = Slow(table(5 * MOST_ROWS).columns, 1)
    with pytest.raises(ArithmeticError) as kept:
        compute_partial_sum(Refusing(1.0, WIDTH, intercept=True, clip=1.0), MODEL, DESIGN, source, range(source.slots))
    assert kept.tb is not None
    assert not source.reading
    assert len(source.gathered) == 2
