"""Sliding windows of hits follow the same rules in this process and through Redis.

While Redis is away, each process counts alone.
"""

import time
from collections.abc import Iterator

import pytest
from limits.errors import StorageError

from app.http.rate_limits import rate_windows
from app.http.rate_limits.rate_windows import (
    FallbackWindows,
    MemoryWindows,
    Rate,
    RedisWindows,
    Windows,
    WindowState,
    open_windows,
)
from support.servers import Redis

RATE = Rate(5, 2)


@pytest.fixture(scope="module")
def redis() -> Iterator[Redis]:
    with Redis() as server:
        yield server


@pytest.fixture(params=["memory", pytest.param("redis", marks=pytest.mark.services)])
def counted(request: pytest.FixtureRequest) -> Windows:
    if request.param == "memory":
        return MemoryWindows()
    return RedisWindows(request.getfixturevalue("redis").url())


@pytest.mark.slow
def test_a_full_window_admits_nothing_until_its_oldest_hit_expires(counted: Windows) -> None:
    standings = [counted.hit("a", RATE) for _ in range(6)]
    assert [each.allowed for each in standings] == [True] * 5 + [False]
    assert [each.remaining for each in standings] == [4, 3, 2, 1, 0, 0]
    assert 0 < standings[-1].reset_seconds <= 2
    time.sleep(standings[-1].reset_seconds + 0.05)
    assert counted.hit("a", RATE).allowed


def test_several_hits_count_together_or_not_at_all(counted: Windows) -> None:
    standings = [counted.hit("several", RATE, count) for count in (3, 3, 2, 1)]
    assert [each.allowed for each in standings] == [True, False, True, False]
    assert [each.remaining for each in standings] == [2, 2, 0, 0]


def test_a_refused_hit_does_not_prolong_the_wait(counted: Windows) -> None:
    for _ in range(5):
        counted.hit("b", RATE)
    waits = [counted.hit("b", RATE).reset_seconds for _ in range(20)]
    assert waits == sorted(waits, reverse=True)


def test_names_do_not_share_a_window(counted: Windows) -> None:
    for _ in range(6):
        counted.hit("c", RATE)
    assert counted.hit("d", RATE).allowed


def test_names_without_a_hit_in_their_window_are_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    at = 0.0
    monkeypatch.setattr(time, "monotonic", lambda: at)
    counted = MemoryWindows()
    for name in range(rate_windows._HITS_BETWEEN_CLEANUPS - 1):
        counted.hit(str(name), RATE)
    at = 10.0
    counted.hit("last", RATE)
    assert set(counted._hits) == {"last"}


@pytest.mark.services
def test_processes_on_one_redis_share_their_windows(redis: Redis) -> None:
    one, other = RedisWindows(redis.url()), RedisWindows(redis.url())
    taken = [each.hit("shared", RATE).allowed for _ in range(5) for each in (one, other)]
    assert sum(taken) == 5


@pytest.mark.services
def test_without_redis_each_process_counts_alone_at_once(redis: Redis) -> None:
    steady = open_windows(redis.url())
    assert isinstance(steady, FallbackWindows)
    assert steady.hit("e", RATE).allowed
    redis.stop(immediate=True)
    try:
        assert [steady.hit("e", RATE).allowed for _ in range(6)] == [True] * 5 + [False]
    finally:
        redis.start()


def test_a_storage_that_fails_is_not_asked_for_some_seconds(monkeypatch: pytest.MonkeyPatch) -> None:
    at, asked = 0.0, []

    class Failing:
        def hit(self, name: str, rate: Rate, count: int = 1) -> WindowState:
            asked.append(name)
            raise StorageError(OSError("canary-7461"))

    monkeypatch.setattr(time, "monotonic", lambda: at)
    steady = FallbackWindows(Failing())
    assert [steady.hit("f", RATE).allowed for _ in range(6)] == [True] * 5 + [False]
    assert asked == ["f"]
    at = rate_windows._PAUSE_SECONDS
    steady.hit("f", RATE)
    assert asked == ["f", "f"]


def test_a_broker_other_than_redis_means_local_windows() -> None:
    assert isinstance(open_windows("filesystem://"), MemoryWindows)
    assert isinstance(open_windows("amqp://guest@127.0.0.1//"), MemoryWindows)


def test_redis_may_be_away_when_the_api_starts() -> None:
    assert open_windows("redis://127.0.0.1:1/0").hit("g", RATE).allowed
