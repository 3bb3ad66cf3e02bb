"""Calls that are certain to stand in one line at the same time."""

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

from app.db import GroupCommit, WriteSession

SETTLE_SECONDS = 20


def at_once(
    joined: GroupCommit, actions: Sequence[Callable[[WriteSession], Any]], names: Sequence[str] = ()
) -> list[Future[Any]]:
    """Say all of them, each under its name, while one that came before is still in front of the line."""
    entered, go_on = threading.Event(), threading.Event()

    def first(_: WriteSession) -> None:
        entered.set()
        assert go_on.wait(SETTLE_SECONDS)

    with ThreadPoolExecutor(1 + len(actions)) as pool:
        leading = pool.submit(joined.transact, first)
        assert entered.wait(SETTLE_SECONDS)
        told = []
        for number, action in enumerate(actions):
            told.append(pool.submit(joined.transact, action, names[number] if names else None))
            _wait(joined, number + 2)
        go_on.set()
        leading.result(SETTLE_SECONDS)
    return told


def _wait(joined: GroupCommit, count: int) -> None:
    ready = threading.Event()
    for _ in range(SETTLE_SECONDS * 100):
        if joined.waiting() >= count:
            return
        ready.wait(0.01)
    raise AssertionError("it never stood in line")
