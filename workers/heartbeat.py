"""Keeps a claimed run alive from a thread, and tells the run when it must stop."""

import threading
import time
from collections.abc import Callable
from types import TracebackType
from typing import Self

import structlog

from app.jobs.lifecycle import Hold, Stage
from workers.run_limits import RunLimits, resident_bytes

TICK_SECONDS = 0.5
"""How often progress is written at most."""

Beat = Callable[[Stage, int], Hold]
"""Renews the lease and notes stage and planned steps done; says what is left of the claim."""


class Stopped(Exception):
    """The run must stop: it was cancelled, it is somebody else's now, or this worker is being stopped."""

    def __init__(self, hold: Hold) -> None:
        super().__init__()
        self.hold = hold


class Overrun(Exception):
    """The run has taken more time or memory than its plan explains."""


class Heartbeat:
    """Beats every ``every_seconds``, and sooner (at most twice a second) where progress was made.

    The lease lives by the clock of the database; when no beat has succeeded for ``lease_seconds``, this process must
    take it for lost whatever the row says by then.

    Args:
        beat: what is done each time.
        every_seconds: how often.
        lease_seconds: how long silence is borne.
        stopping: whether this worker is being stopped, so that the run should make room at its next step.
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
        self._thread = threading.Thread(target=self._keep_beating, name="heartbeat", daemon=True)

    def limit(self, limits: RunLimits, end: Callable[[], None]) -> None:
        """From now on the run is held to its limits; beyond the hard ones ``end``, in the heartbeat's thread."""
        self._since, self._resident = time.monotonic(), resident_bytes()
        self._limits, self._end = limits, end

    def enter(self, stage: Stage) -> None:
        """The run is now in ``stage``; raises as :meth:`check` does."""
        self._stage = stage
        self.check()

    def step(self, done: int) -> None:
        """``done`` planned steps are done; raises as :meth:`check` does."""
        self._steps = done
        self.check()

    def check(self) -> None:
        """Whether the run may go on.

        Raises:
            Stopped: it is not this worker's to finish.
            Overrun: it is over its soft limits.
        """
        if self._hold is not Hold.HELD:
            raise Stopped(self._hold)
        if self._stopping():
            raise Stopped(Hold.HANDED_OVER)
        if self._limits is not None and self._exceeds(self._limits.seconds, self._limits.memory_bytes):
            raise Overrun

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._finished.set()
        self._thread.join()

    def _keep_beating(self) -> None:
        said, last = (self._stage, self._steps), time.monotonic()
        tick = min(TICK_SECONDS, self._every_seconds)
        while not self._finished.wait(tick):
            if self._limits is not None and self._exceeds(self._limits.hard_seconds, self._limits.hard_bytes):
                self._end()
            current = (self._stage, self._steps)
            waits = current == said and time.monotonic() - last < self._every_seconds
            if waits or self._hold is not Hold.HELD:
                continue
            try:
                self._hold = self._beat(*current)
                said, last = current, time.monotonic()
            except Exception:  # noqa: BLE001  (whatever ails the database, the lease decides)
                structlog.get_logger().warning("heartbeat missed")
                if time.monotonic() - last >= self._lease_seconds:
                    self._hold = Hold.LOST

    def _exceeds(self, seconds: float, memory_bytes: int) -> bool:
        return time.monotonic() - self._since > seconds or resident_bytes() - self._resident > memory_bytes
