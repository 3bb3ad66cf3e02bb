"""Calls that certainly wait in one group commit at the same time."""

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

from app.db import GroupCommit, WriteSession

SETTLE_SECONDS = 20


def at_once(
    group: GroupCommit, actions: Sequence[Callable[[WriteSession], Any]], names: Sequence[str] = ()
) -> list[Future[Any]]:
    """Submit all actions, each under its name, while an earlier one is still running."""
    is_entered, may_continue = threading.Event(), threading.Event()

    def first(_: WriteSession) -> None:
        is_entered.set()
        assert may_continue.wait(SETTLE_SECONDS)

    with ThreadPoolExecutor(1 + len(actions)) as pool:
        leading = pool.submit(group.transact, first)
        assert is_entered.wait(SETTLE_SECONDS)
        futures = []
        for number, action in enumerate(actions):
            futures.append(pool.submit(group.transact, action, names[number] if names else None))
            _wait(group, number + 2)
        may_continue.set()
        leading.result(SETTLE_SECONDS)
    return futures


def _wait(group: GroupCommit, count: int) -> None:
    ready = threading.Event()
    for _ in range(SETTLE_SECONDS * 100):
        if group.waiting() >= count:
            return
        ready.wait(0.01)
    raise AssertionError("the call did not join the queue")
