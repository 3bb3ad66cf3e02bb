"""Sliding windows of hits, in this process or in Redis for all API processes."""

import threading
import time
from collections import deque
from dataclasses import dataclass
from typing import Final, Protocol

import structlog
from limits import RateLimitItemPerSecond
from limits.errors import StorageError
from limits.storage import RedisStorage
from limits.strategies import MovingWindowRateLimiter

_HITS_BETWEEN_CLEANUPS: Final = 10_000
_REDIS_TIMEOUT_SECONDS: Final = 0.25
_PAUSE_SECONDS: Final = 5.0


@dataclass(frozen=True, slots=True)
class Rate:
    """At most ``amount`` hits in any ``seconds``."""

    amount: int
    seconds: int


@dataclass(frozen=True, slots=True)
class WindowState:
    """The state of a window after a hit; its oldest hit expires in ``reset_seconds``."""

    allowed: bool
    remaining: int
    reset_seconds: float


class Windows(Protocol):
    """Counts hits by name."""

    def hit(self, name: str, rate: Rate, count: int = 1) -> WindowState:
        """Count ``count`` hits, or none if the window has no room for all."""


class MemoryWindows:
    """Windows of this process. (The windows of the ``limits`` library start a thread every few hits.)"""

    def __init__(self) -> None:
        self._hits: dict[str, tuple[deque[float], int]] = {}
        self._lock = threading.Lock()
        self._hits_until_cleanup = _HITS_BETWEEN_CLEANUPS

    def hit(self, name: str, rate: Rate, count: int = 1) -> WindowState:
        at = time.monotonic()
        with self._lock:
            self._drop_idle(at)
            hits, _ = self._hits.setdefault(name, (deque(), rate.seconds))
            while hits and hits[0] <= at - rate.seconds:
                hits.popleft()
            allowed = len(hits) + count <= rate.amount
            if allowed:
                hits.extend([at] * count)
            oldest = hits[0] if hits else at
            return WindowState(allowed, rate.amount - len(hits), oldest + rate.seconds - at)

    def _drop_idle(self, at: float) -> None:
        """Drop names without a hit in their window, so that memory stays bounded."""
        self._hits_until_cleanup -= 1
        if self._hits_until_cleanup <= 0:
            self._hits_until_cleanup = _HITS_BETWEEN_CLEANUPS
            for name in [name for name, (hits, seconds) in self._hits.items() if not hits or hits[-1] <= at - seconds]:
                del self._hits[name]


class RedisWindows:
    """Windows that all processes on one Redis share."""

    def __init__(self, url: str) -> None:
        storage = RedisStorage(
            url,
            key_prefix="corevault-rates",
            wrap_exceptions=True,
            socket_timeout=_REDIS_TIMEOUT_SECONDS,
            socket_connect_timeout=_REDIS_TIMEOUT_SECONDS,
        )
        self._limiter = MovingWindowRateLimiter(storage)

    def hit(self, name: str, rate: Rate, count: int = 1) -> WindowState:
        """See :class:`Windows`.

        Raises:
            StorageError: Redis does not answer.
        """
        item = RateLimitItemPerSecond(rate.amount, rate.seconds)
        allowed = self._limiter.hit(item, name, cost=count)
        reset, remaining = self._limiter.get_window_stats(item, name)
        return WindowState(allowed, max(0, remaining), max(0.0, reset - time.time()))


class FallbackWindows:
    """Shared windows, and windows of this process while the shared ones do not answer.

    A Redis that is away neither delays nor refuses a request.
    """

    def __init__(self, shared: Windows) -> None:
        self._shared, self._local = shared, MemoryWindows()
        self._paused_until = 0.0

    def hit(self, name: str, rate: Rate, count: int = 1) -> WindowState:
        if time.monotonic() >= self._paused_until:
            try:
                return self._shared.hit(name, rate, count)
            except StorageError:
                self._paused_until = time.monotonic() + _PAUSE_SECONDS
                structlog.get_logger().warning("rate limits count in this process alone", seconds=_PAUSE_SECONDS)
        return self._local.hit(name, rate, count)


def open_windows(broker_url: str) -> Windows:
    """Open windows for all processes if the broker is Redis, else for this process."""
    if broker_url.startswith(("redis://", "rediss://")):
        return FallbackWindows(RedisWindows(broker_url))
    return MemoryWindows()
