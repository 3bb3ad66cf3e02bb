"""A cache that forgets the values that were not used for the longest time."""

from collections import OrderedDict
from collections.abc import Hashable
from threading import Lock
from typing import Generic, TypeVar

Key = TypeVar("Key", bound=Hashable)
Value = TypeVar("Value")


class LeastRecentlyUsed(Generic[Key, Value]):
    """A thread-safe cache that drops the least recently used values.

    It does so while the total weight of its values exceeds ``capacity``.
    """

    def __init__(self, capacity: int) -> None:
        self._capacity, self._weight = capacity, 0
        self._values: OrderedDict[Key, tuple[Value, int]] = OrderedDict()
        self._lock = Lock()

    def get(self, key: Key) -> Value | None:
        with self._lock:
            entry = self._values.get(key)
            if entry is None:
                return None
            self._values.move_to_end(key)
            return entry[0]

    def put(self, key: Key, value: Value, weight: int = 1) -> None:
        """Keep a value, in place of an earlier one of the same key."""
        with self._lock:
            _, earlier = self._values.pop(key, (None, 0))
            self._values[key] = value, weight
            self._weight += weight - earlier
            while self._weight > self._capacity:
                _, (_, freed) = self._values.popitem(last=False)
                self._weight -= freed
