"""Helpers that act at once in this process, and a table that records reads."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray

from app.datasets.facts import make_declared_facts
from app.inference.core.plan import ModelSpec
from app.inference.core.problems import Problem, make_problem
from app.inference.private_zone.queries import PotentialSum
from tests.factories import rows
from tests.factories.queue import RecordingQueue
from tests.factories.worker import SLOTS, House, MemoryRows
from workers.assignments import Assignment

CHUNK = 128
CHUNKS = -(-SLOTS // CHUNK)
PARTS = 4
QUERY = PotentialSum(np.random.default_rng(3).standard_normal((7, 4)), 0.5)


class InstantQueue(RecordingQueue):
    """A queue whose messages are handled as soon as they are sent."""

    def __init__(self, act: Callable[[Sequence[str]], None]) -> None:
        super().__init__()
        self._act = act

    def send_group(self, task: str, identifiers: Sequence[str]) -> None:
        super().send_group(task, identifiers)
        self._act(identifiers)


class RecordingRows(MemoryRows):
    """A table that records the slots read."""

    def __init__(self, reads: list[NDArray[np.int64]]) -> None:
        super().__init__()
        self._reads = reads

    def gather(self, indices: NDArray[np.int64]) -> Any:
        self._reads.append(indices)
        return super().gather(indices)


def recording_tables(reads: list[NDArray[np.int64]]) -> Any:
    @contextmanager
    def tables(_: Assignment) -> Iterator[MemoryRows]:
        yield RecordingRows(reads)

    return tables


def problem_of(house: House, owner: rows.Key) -> Problem:
    with house.database.write() as tx:
        facts = make_declared_facts(rows.dataset(tx, owner.id, slots=SLOTS))
    return make_problem(ModelSpec("logistic-regression", ("age", "hours", "sex"), "income_gt_50k"), facts)
