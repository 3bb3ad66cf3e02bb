"""Steps of a long way through a table, each taken while the one before is still worked on."""

from collections.abc import Callable, Generator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

Step = TypeVar("Step")
Found = TypeVar("Found")


def one_ahead(find: Callable[[Step], Found], steps: Sequence[Step]) -> Generator[Found]:
    """``find(step)`` for each of ``steps``, in order; the next one is found while the caller has the last one.

    All are found by one other thread, one after the other, and never more than one ahead: what is found and not yet
    taken is one more than without. A single step is taken by the caller, and all of them are where no thread is to be
    had. Whether and what is found ahead depends on the number of steps alone. What ``find`` raises, the caller meets in
    the step's turn. To be closed where the caller may not come to the end: that waits for the step that is being taken,
    and nothing is found afterwards.
    """
    if len(steps) < 2:
        yield from map(find, steps)
        return
    with ThreadPoolExecutor(1, thread_name_prefix="one-ahead") as other:
        try:
            ahead = other.submit(find, steps[0])
        except RuntimeError:  # the system has no thread to spare
            yield from map(find, steps)
            return
        for step in steps[1:]:
            found, ahead = ahead.result(), other.submit(find, step)
            yield found
            del found
        yield ahead.result()
