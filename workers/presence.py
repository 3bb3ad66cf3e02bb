"""The sign of life that a worker's parent process records every few seconds."""

import socket
import time
from collections.abc import Callable
from importlib.metadata import version
from typing import Final

from celery.worker import state

from app.db import Database
from app.jobs import workers
from app.queue import RUN_JOB

EVERY_SECONDS: Final = 5.0
_ATTEMPTS: Final = 3


def count_running_jobs() -> int | None:
    """Count the jobs that this worker's pool runs; None if other threads change the list all the time."""
    for _ in range(_ATTEMPTS):
        try:
            return [request.name for request in tuple(state.active_requests)].count(RUN_JOB)
        except RuntimeError:
            continue
    return None


class Presence:
    """Records signs of life of one worker."""

    def __init__(
        self, database: Database, processes: int, count: Callable[[], int | None] = count_running_jobs
    ) -> None:
        self._database = database
        self._processes = processes
        self._count = count
        self._id: str | None = None
        self._due = time.monotonic()

    def report(self) -> None:
        """Record a sign of life, if it is time for one."""
        if time.monotonic() < self._due:
            return
        with self._database.write() as tx:
            if self._id is None or not workers.give_sign(tx, self._id, self._count()):
                self._id = workers.begin(
                    tx, name=socket.gethostname(), version=version("corevault-server"), processes=self._processes
                )
        self._due = time.monotonic() + EVERY_SECONDS

    def end(self) -> None:
        """Remove this worker from the list, because it ends by itself."""
        if self._id is not None:
            with self._database.write() as tx:
                workers.end(tx, self._id)
