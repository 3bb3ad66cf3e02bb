"""Moving windows of hits: in this process, or shared by all API processes through Redis."""

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

_TIDIED_EVERY: Final = 10_000
_REDIS_PATIENCE_SECONDS: Final = 0.25
_AWAY_SECONDS: Final = 5.0


@dataclass(frozen=True, slots=True)
class Rate:
    """At most ``amount`` hits in any ``seconds``."""

    amount: int
    seconds: int


@dataclass(frozen=True, slots=True)
class Standing:
    """How a name stands after a hit; ``reset_seconds`` until the oldest hit of its window is forgotten."""

    allowed: bool
    remaining: int
    reset_seconds: float


class Windows(Protocol):
    """Counts hits by name."""

    def hit(self, name: str, rate: Rate) -> Standing:
        """Count one, unless the window is full."""


class MemoryWindows:
    """Windows of this process. (The library's own start a thread for every few hits.)"""

    def __init__(self) -> None:
        self._hits: dict[str, tuple[deque[float], int]] = {}
        self._lock = threading.Lock()
        self._until_tidied = _TIDIED_EVERY

    def hit(self, name: str, rate: Rate) -> Standing:
        at = time.monotonic()
        with self._lock:
            self._tidy(at)
            hits, _ = self._hits.setdefault(name, (deque(), rate.seconds))
            while hits and hits[0] <= at - rate.seconds:
                hits.popleft()
            allowed = len(hits) < rate.amount
            if allowed:
                hits.append(at)
            return Standing(allowed, rate.amount - len(hits), hits[0] + rate.seconds - at)

    def _tidy(self, at: float) -> None:
        """Forget names that have not been heard of for a window: addresses come and go."""
        self._until_tidied -= 1
        if self._until_tidied <= 0:
            self._until_tidied = _TIDIED_EVERY
            for name in [name for name, (hits, seconds) in self._hits.items() if hits[-1] <= at - seconds]:
                del self._hits[name]


class RedisWindows:
    """Windows that all processes on one Redis share."""

    def __init__(self, url: str) -> None:
        storage = RedisStorage(
            url,
            key_prefix="corevault-rates",
            wrap_exceptions=True,
            socket_timeout=_REDIS_PATIENCE_SECONDS,
            socket_connect_timeout=_REDIS_PATIENCE_SECONDS,
        )
        self._limiter = MovingWindowRateLimiter(storage)

    def hit(self, name: str, rate: Rate) -> Standing:
        """As the protocol.

        Raises:
            StorageError: Redis does not answer.
        """
        item = RateLimitItemPerSecond(rate.amount, rate.seconds)
        allowed = self._limiter.hit(item, name)
        reset, remaining = self._limiter.get_window_stats(item, name)
        return Standing(allowed, max(0, remaining), max(0.0, reset - time.time()))


class SteadyWindows:
    """Shared windows while they answer, this process's own while they do not: no request waits, none is refused."""

    def __init__(self, shared: Windows) -> None:
        self._shared, self._own = shared, MemoryWindows()
        self._away_until = 0.0

    def hit(self, name: str, rate: Rate) -> Standing:
        if time.monotonic() >= self._away_until:
            try:
                return self._shared.hit(name, rate)
            except StorageError:
                self._away_until = time.monotonic() + _AWAY_SECONDS
                structlog.get_logger().warning("rate limits count in this process alone", seconds=_AWAY_SECONDS)
        return self._own.hit(name, rate)


def open_windows(broker_url: str) -> Windows:
    """Windows for all processes where the broker is a Redis, else for this process."""
    if broker_url.startswith(("redis://", "rediss://")):
        return SteadyWindows(RedisWindows(broker_url))
    return MemoryWindows()
