"""A memory of drawn charts: a long history takes half a second to draw."""

from collections import OrderedDict
from collections.abc import Hashable
from threading import Lock
from typing import Final, Generic, TypeVar

MOST: Final = 64
"""Remembered drawings of a process, each of about 30 kB."""
T = TypeVar("T")


class Drawings(Generic[T]):
    """The latest drawings by the facts that they depend on; thread-safe.

    The caller checks who may see a drawing before it asks. A key holds everything that the drawing depends on.
    """

    def __init__(self, most: int = MOST) -> None:
        self._most = most
        self._lock = Lock()
        self._drawn: OrderedDict[Hashable, T] = OrderedDict()

    def recall(self, key: Hashable) -> T | None:
        """Find a drawing; None if it is not remembered."""
        with self._lock:
            if key in self._drawn:
                self._drawn.move_to_end(key)
            return self._drawn.get(key)

    def remember(self, key: Hashable, drawn: T) -> None:
        """Remember a drawing; the drawing that was used least recently is forgotten."""
        with self._lock:
            self._drawn[key] = drawn
            self._drawn.move_to_end(key)
            while len(self._drawn) > self._most:
                self._drawn.popitem(last=False)
