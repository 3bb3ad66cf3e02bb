"""A line of calls that would wait for one another: who is in front does the work of those who came meanwhile."""

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from threading import Event, Lock
from typing import Generic, TypeVar

T = TypeVar("T")
AT_ONCE = 16


@dataclass(slots=True, eq=False)
class Turn(Generic[T]):
    """A place in a line. ``ready``: it is done, or it is in front."""

    call: T
    done: bool = False
    ready: Event = field(default_factory=Event)


class LeaderFollowerQueue(Generic[T]):
    """Calls that are served from the front, some at a time, by the threads that stand in it.

    Args:
        serve: does the work of the first few calls, says of how many, at least one, and keeps what comes of each.
    """

    def __init__(self, serve: Callable[[Sequence[T]], int]) -> None:
        self._serve = serve
        self._turns: deque[Turn[T]] = deque()
        self._lock = Lock()

    def stand(self, call: T) -> None:
        """Return once ``call`` has been served, by this thread or by another."""
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
