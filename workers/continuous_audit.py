"""The continuous audit: between tasks, a worker asks the code of its runs about simulated tables.

The thread of :class:`Auditor` runs in each process of the pool. It shares a lock with the tasks, so a task waits for
at most one batch, and no batch is drawn during a task. A batch takes a fraction of a second.
"""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

import structlog

from app.continuous_audit import service
from app.db import Database
from app.inference.audit.batches import Batch, draw_batch, find_stream, list_weights
from workers.computation import make_oracle

FIRST_SECONDS: Final = 20.0
"""Time from the start of a process to its first batch."""
LEAST_SECONDS: Final = 1.0
"""Shortest time between two batches of a process."""


class Governor:
    """Limits a repeated work to a share of the time, by measured durations.

    After a work of d seconds the next one waits ``d (1 / share - 1)`` seconds. So whenever a work starts, all earlier
    ones together have taken at most ``share`` of the time since the start of the governor.
    """

    def __init__(self, share: float, clock: Callable[[], float] = time.monotonic) -> None:
        if not 0 < share <= 1:
            raise ValueError("a share must be greater than 0 and at most 1")
        self._share, self._clock = share, clock
        self._next = clock() + FIRST_SECONDS

    def compute_wait(self) -> float:
        """Compute the seconds until the next work may start; 0 if it may start now."""
        return max(0.0, self._next - self._clock())

    @contextmanager
    def measure(self) -> Iterator[None]:
        """Measure a work, also one that fails."""
        started = self._clock()
        try:
            yield
        finally:
            ended = self._clock()
            pause = max(LEAST_SECONDS, (ended - started) * (1 / self._share - 1))
            self._next = ended + pause


class Auditor:
    """Draws batches when its process has no task, and records them.

    Args:
        database: holds the state of the audit.
        governor: limits the time.
        turn: the lock that a task holds while it runs.
        draw: draws the batch with a number; by default from the oracle of runs.
    """

    def __init__(
        self,
        database: Database,
        governor: Governor,
        turn: threading.Lock,
        draw: Callable[[int], Batch] = lambda number: draw_batch(number, make_oracle),
    ) -> None:
        self._database, self._governor, self._turn, self._draw = database, governor, turn, draw

    def run(self, stop: threading.Event) -> None:
        """Audit until ``stop`` is set."""
        while not stop.wait(max(self._governor.compute_wait(), LEAST_SECONDS)):
            self.step()

    def step(self) -> None:
        """Draw and record a batch, unless a task runs or the governor forbids it. An error ends the step only."""
        if self._governor.compute_wait() > 0 or not self._turn.acquire(blocking=False):
            return
        try:
            with self._governor.measure():
                self._audit()
        except Exception as error:  # noqa: BLE001  (the audit must not stop the worker; its age shows the fault)
            structlog.get_logger().warning("continuous audit failed", kind=type(error).__name__)
        finally:
            self._turn.release()

    def _audit(self) -> None:
        with self._database.write() as tx:
            ticket = service.take_ticket(tx)
        if ticket is None:
            return
        stream = find_stream(ticket)
        try:
            sample = (batch := self._draw(ticket)).sample
            outcome = service.Outcome(stream, batch.claim, sample.answers, sample.present, list_weights())
            with self._database.write() as tx:
                has_alarm = service.record_batch(tx, ticket, outcome)
        except Exception as error:  # noqa: BLE001  (any error may depend on answers)
            structlog.get_logger().warning("batch of the audit failed", stream=stream, kind=type(error).__name__)
            with self._database.write() as tx:
                service.forfeit_batch(tx, ticket, stream, list_weights())
            return
        if has_alarm:
            structlog.get_logger().error("continuous audit raised an alarm", stream=stream)
