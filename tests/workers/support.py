"""Interference with a running job, and reads of its releases and its account's entries."""

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
"""The most heartbeats of a worker that may renew the lease in between."""

TARGETS: Mapping[str, str | None] = {
    "logistic-regression": "sick",
    "probit-regression": "sick",
    "linear-regression": "dose",
    "student-t-regression": "dose",
    "multinomial-logistic": "group",
    "poisson-regression": "visits",
    "negative-binomial-regression": "visits",
    "gaussian-mean": None,
    "gaussian": None,
}
"""The target column of each family."""


class ActingRows(MemoryRows):
    """A table that calls ``action`` during the run, whenever rows are gathered."""

    def __init__(self, action: Callable[[], None]) -> None:
        super().__init__()
        self._action = action

    def gather(self, indices: NDArray[np.int64]) -> Mapping[str, NDArray[Any]]:
        self._action()
        return super().gather(indices)


def acting_tables(action: Callable[[], None]) -> Any:
    @contextmanager
    def tables(_: Assignment) -> Iterator[MemoryRows]:
        yield ActingRows(action)

    return tables


def failing_tables(error: BaseException) -> Any:
    def act() -> None:
        raise error

    return acting_tables(act)


def lose_lease(house: House, job_id: str) -> None:
    """Expire the lease and sweep, until the job is no longer running.

    A heartbeat of its worker may renew the lease in between.
    """
    for _ in range(_BEATS):
        with house.database.write() as tx:
            repository.change(tx, job_id, lease_until=now() - timedelta(seconds=1))
        house.sweeper.sweep()
        if house.read(job_id).status != "running":
            return
    raise AssertionError("the sweeper did not end an expired lease")


def releases(house: House) -> list[Release]:
    with house.database.read() as session:
        return list(session.scalars(select(Release)))


def kinds(house: House, dataset_id: str) -> list[str]:
    with house.database.read() as session:
        return [entry.kind for entry in reversed(house.ledger.entries(session, dataset_id, limit=100, before=None))]
