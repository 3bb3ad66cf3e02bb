"""Leader/follower queue: the first waiter does the work of all that wait."""

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from threading import Event, Lock
from typing import Generic, TypeVar

T = TypeVar("T")
AT_ONCE = 16


@dataclass(slots=True, eq=False)
class Turn(Generic[T]):
    """A place in the queue. ``ready`` is set when the call is done or first in the queue."""

    call: T
    done: bool = False
    ready: Event = field(default_factory=Event)


class LeaderFollowerQueue(Generic[T]):
    """A queue of calls; the thread of the first call serves the first few calls together.

    Args:
        serve: does the work of the first few calls, stores the outcome of each, and returns how many it served: at
            least one.
    """

    def __init__(self, serve: Callable[[Sequence[T]], int]) -> None:
        self._serve = serve
        self._turns: deque[Turn[T]] = deque()
        self._lock = Lock()

    def submit(self, call: T) -> None:
        """Return once this thread or another one has served ``call``."""
        turn = Turn(call)
        with self._lock:
            self._turns.append(turn)
            if self._turns[0] is turn:
                turn.ready.set()
        turn.ready.wait()
        if not turn.done:
            self._lead()

    def __len__(self) -> int:
        return len(self._turns)

    def _lead(self) -> None:
        with self._lock:
            group = list(self._turns)[:AT_ONCE]
        served = 1
        try:
            served = self._serve([turn.call for turn in group])
        finally:
            self._leave(group[:served])

    def _leave(self, group: Sequence[Turn[T]]) -> None:
        with self._lock:
            for turn in group:
                self._turns.popleft()
                turn.done = True
            if self._turns:
                self._turns[0].ready.set()
        for turn in group:
            turn.ready.set()
