"""Read-ahead: computes the next item in a second thread while the caller uses the last one."""

from collections.abc import Callable, Generator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

Step = TypeVar("Step")
Item = TypeVar("Item")


def read_ahead(read: Callable[[Step], Item], steps: Sequence[Step]) -> Generator[Item]:
    """Yield ``read(step)`` for each of ``steps`` in order, computed one step ahead.

    One other thread computes the items one after the other, at most one ahead of the caller. So memory holds one item
    more than without. The caller's thread computes them if there is a single step, or if the system has no thread to
    spare. The number of steps alone decides whether items are computed ahead. An exception of ``read`` is raised when
    its item is due. Close the generator if it may not be exhausted: closing waits for the running step and starts no
    other.
    """
    if len(steps) < 2:
        yield from map(read, steps)
        return
    with ThreadPoolExecutor(1, thread_name_prefix="read-ahead") as other:
        try:
            ahead = other.submit(read, steps[0])
        except RuntimeError:  # the system has no thread to spare
            yield from map(read, steps)
            return
        for step in steps[1:]:
            item, ahead = ahead.result(), other.submit(read, step)
            yield item
            del item
        yield ahead.result()
