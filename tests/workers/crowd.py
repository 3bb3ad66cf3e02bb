"""Workers that help with a query at once, in this process, over a table that tells what was read of it."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray

from app.datasets.facts import declared_facts
from app.inference.core.plan import ModelSpec
from app.inference.core.problems import Problem, problem_for
from app.inference.private_zone.queries import PotentialSum
from tests.factories import rows
from tests.factories.queue import RecordingQueue
from tests.factories.worker import SLOTS, House, MemoryRows
from workers.assignments import Assignment

CHUNK = 128
CHUNKS = -(-SLOTS // CHUNK)
PARTS = 4
QUERY = PotentialSum(np.random.default_rng(3).standard_normal((7, 4)), 0.5)


class Crowd(RecordingQueue):
    """A broker whose workers act at once."""

    def __init__(self, act: Callable[[Sequence[str]], None]) -> None:
        super().__init__()
        self._act = act

    def send_group(self, task: str, identifiers: Sequence[str]) -> None:
        super().send_group(task, identifiers)
        self._act(identifiers)


class Watched(MemoryRows):
    """Tells which slots were read."""

    def __init__(self, seen: list[NDArray[np.int64]]) -> None:
        super().__init__()
        self._seen = seen

    def gather(self, indices: NDArray[np.int64]) -> Any:
        self._seen.append(indices)
        return super().gather(indices)


def watched(seen: list[NDArray[np.int64]]) -> Any:
    @contextmanager
    def tables(_: Assignment) -> Iterator[MemoryRows]:
        yield Watched(seen)

    return tables


def problem_of(house: House, owner: rows.Key) -> Problem:
    with house.database.write() as tx:
        facts = declared_facts(rows.dataset(tx, owner.id, slots=SLOTS))
    return problem_for(ModelSpec("logistic-regression", ("age", "hours", "sex"), "income_gt_50k"), facts)
