"""What befalls a job in mid-run, and what became of it: its lease, its releases, the entries of its account."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import select

from app.db import now
from app.jobs import repository
from app.releases.models import Release
from tests.factories.worker import House, MemoryRows
from workers.assignments import Assignment

_BEATS = 100
"""Of a worker's heart that may come in between, at most."""

TARGETS: Mapping[str, str | None] = {
    "logistic-regression": "sick",
    "probit-regression": "sick",
    "linear-regression": "dose",
    "multinomial-logistic": "group",
    "poisson-regression": "visits",
    "gaussian-mean": None,
}
"""What each family is asked to predict."""


class Interfering(MemoryRows):
    """Does something to the world when its rows are gathered, in mid-run."""

    def __init__(self, action: Callable[[], None]) -> None:
        super().__init__()
        self._action = action

    def gather(self, indices: NDArray[np.int64]) -> Mapping[str, NDArray[Any]]:
        self._action()
        return super().gather(indices)


def interfering(action: Callable[[], None]) -> Any:
    @contextmanager
    def tables(_: Assignment) -> Iterator[MemoryRows]:
        yield Interfering(action)

    return tables


def raising(error: BaseException) -> Any:
    def act() -> None:
        raise error

    return interfering(act)


def lose_lease(house: House, job_id: str) -> None:
    """Let the lease run out, and the sweeper see it, even if a beat of its worker comes in between."""
    for _ in range(_BEATS):
        with house.database.write() as tx:
            repository.change(tx, job_id, lease_until=now() - timedelta(seconds=1))
        house.sweeper.sweep()
        if house.read(job_id).status != "running":
            return
    raise AssertionError("a lease that has run out was not seen")


def releases(house: House) -> list[Release]:
    with house.database.read() as session:
        return list(session.scalars(select(Release)))


def kinds(house: House, dataset_id: str) -> list[str]:
    with house.database.read() as session:
        return [entry.kind for entry in reversed(house.ledger.entries(session, dataset_id, limit=100, before=None))]
