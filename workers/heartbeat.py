"""A thread that renews a run's lease and stops the run when necessary."""

import threading
import time
from collections.abc import Callable
from types import TracebackType
from typing import Self

import structlog

from app.jobs.lifecycle import Hold, Stage
from workers.run_limits import RunLimits, read_resident_bytes

TICK_SECONDS = 0.5
"""The shortest time between two writes of progress."""

Beat = Callable[[Stage, int], Hold]
"""Renews the lease, writes the stage and the planned steps done, and returns the state of the claim."""


class Stopped(Exception):
    """The run must stop: it was cancelled, another worker has it, or this worker is being stopped."""

    def __init__(self, hold: Hold) -> None:
        super().__init__()
        self.hold = hold


class LimitExceeded(Exception):
    """The run has taken more time or memory than its plan explains."""


class Heartbeat:
    """Renews a lease every ``every_seconds``, and after progress (at most twice a second).

    The lease runs by the database's clock. If no beat has succeeded for ``lease_seconds``, this process must treat the
    lease as lost, even if the row still names it.

    Args:
        beat: renews the lease; called in the heartbeat's thread.
        every_seconds: the longest time between two beats.
        lease_seconds: how long beats may fail before the lease counts as lost.
        stopping: whether this worker is being stopped; if so, the run stops at its next step.
    """

    def __init__(
        self, beat: Beat, every_seconds: float, lease_seconds: float, stopping: Callable[[], bool] = lambda: False
    ) -> None:
        self._beat = beat
        self._every_seconds = every_seconds
        self._lease_seconds = lease_seconds
        self._stopping = stopping
        self._stage, self._steps = Stage.PREPARING, 0
        self._hold = Hold.HELD
        self._limits: RunLimits | None = None
        self._end: Callable[[], None] = lambda: None
        self._since, self._resident = 0.0, 0
        self._finished = threading.Event()
        self._thread = threading.Thread(target=self._run, name="heartbeat", daemon=True)

    def set_limits(self, limits: RunLimits, end: Callable[[], None]) -> None:
        """Start to enforce the run's limits.

        Args:
            limits: counted from now on.
            end: called in the heartbeat's thread once the run is over its hard limits.
        """
        self._since, self._resident = time.monotonic(), read_resident_bytes()
        self._limits, self._end = limits, end

    def enter(self, stage: Stage) -> None:
        """Record that the run is now in ``stage``; raises as :meth:`check` does."""
        self._stage = stage
        self.check()

    def step(self, done: int) -> None:
        """Record that ``done`` planned steps are done; raises as :meth:`check` does."""
        self._steps = done
        self.check()

    def check(self) -> None:
        """Return if the run may continue.

        Raises:
            Stopped: this worker must not finish the run.
            LimitExceeded: the run is over its soft limits.
        """
        if self._hold is not Hold.HELD:
            raise Stopped(self._hold)
        if self._stopping():
            raise Stopped(Hold.HANDED_OVER)
        if self._limits is not None and self._exceeds(self._limits.seconds, self._limits.memory_bytes):
            raise LimitExceeded

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._finished.set()
        self._thread.join()

    def _run(self) -> None:
        reported, last = (self._stage, self._steps), time.monotonic()
        tick = min(TICK_SECONDS, self._every_seconds)
        while not self._finished.wait(tick):
            if self._limits is not None and self._exceeds(self._limits.hard_seconds, self._limits.hard_bytes):
                self._end()
            current = (self._stage, self._steps)
            is_early = current == reported and time.monotonic() - last < self._every_seconds
            if is_early or self._hold is not Hold.HELD:
                continue
            try:
                self._hold = self._beat(*current)
                reported, last = current, time.monotonic()
            except Exception:  # noqa: BLE001  (any error of the database: the lease decides)
                structlog.get_logger().warning("heartbeat missed")
                if time.monotonic() - last >= self._lease_seconds:
                    self._hold = Hold.LOST

    def _exceeds(self, seconds: float, memory_bytes: int) -> bool:
        return time.monotonic() - self._since > seconds or read_resident_bytes() - self._resident > memory_bytes
