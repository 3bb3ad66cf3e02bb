"""Keeps a claimed run alive from a thread, and tells the run when it must stop."""

import threading
import time
from collections.abc import Callable
from types import TracebackType
from typing import Self

import structlog

from app.jobs.lifecycle import Hold, Stage

TICK_SECONDS = 0.5
"""How often progress is written at most."""

Beat = Callable[[Stage, int], Hold]
"""Renews the lease and notes stage and planned steps done; says what is left of the claim."""


class Stopped(Exception):
    """The run must stop: it was cancelled, or it is somebody else's now."""

    def __init__(self, hold: Hold) -> None:
        super().__init__()
        self.hold = hold


class Heartbeat:
    """Beats every ``every_seconds``, and sooner (at most twice a second) where progress was made.

    The lease lives by the clock of the database's row; when no beat has succeeded for ``lease_seconds``, this process
    must take it for lost whatever the row says by then.
    """

    def __init__(self, beat: Beat, every_seconds: float, lease_seconds: float) -> None:
        self._beat = beat
        self._every_seconds = every_seconds
        self._lease_seconds = lease_seconds
        self._stage, self._steps = Stage.PREPARING, 0
        self._hold = Hold.HELD
        self._finished = threading.Event()
        self._thread = threading.Thread(target=self._keep_beating, name="heartbeat", daemon=True)

    def enter(self, stage: Stage) -> None:
        """The run is now in ``stage``; raises Stopped if it must not go on."""
        self._stage = stage
        self.check()

    def step(self, done: int) -> None:
        """``done`` planned steps are done; raises Stopped if the run must not go on."""
        self._steps = done
        self.check()

    def check(self) -> None:
        if self._hold is not Hold.HELD:
            raise Stopped(self._hold)

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
        while not self._finished.wait(tick) and self._hold is Hold.HELD:
            current = (self._stage, self._steps)
            if current == said and time.monotonic() - last < self._every_seconds:
                continue
            try:
                self._hold = self._beat(*current)
                said, last = current, time.monotonic()
            except Exception:  # noqa: BLE001  (whatever ails the database, the lease decides)
                structlog.get_logger().warning("heartbeat missed")
                if time.monotonic() - last >= self._lease_seconds:
                    self._hold = Hold.LOST
