"""What was read of public releases lately. They never change, and what was public stays so: nothing ever goes stale."""

from collections import OrderedDict
from threading import Lock
from typing import Final, Generic, TypeVar

from app.releases.http.representation import Points
from app.releases.models import Release

RELEASES: Final = 4_096
BYTES: Final = 64 * 2**20
LARGEST: Final = 4 * 2**20

Value = TypeVar("Value")


class Recent(Generic[Value]):
    """The values that were used last, up to a total weight. For several threads."""

    def __init__(self, capacity: int) -> None:
        self._capacity, self._weight = capacity, 0
        self._values: OrderedDict[str, tuple[Value, int]] = OrderedDict()
        self._lock = Lock()

    def get(self, name: str) -> Value | None:
        with self._lock:
            found = self._values.get(name)
            if found is None:
                return None
            self._values.move_to_end(name)
            return found[0]

    def put(self, name: str, value: Value, weight: int = 1) -> None:
        with self._lock:
            if name in self._values:
                return
            self._values[name] = value, weight
            self._weight += weight
            while self._weight > self._capacity:
                _, (_, freed) = self._values.popitem(last=False)
                self._weight -= freed


class PublicReleases:
    """Points of public releases by release id, and the bytes of small representations by object name."""

    def __init__(self) -> None:
        self._points: Recent[Points] = Recent(RELEASES)
        self._bodies: Recent[bytes] = Recent(BYTES)

    def points(self, release_id: str) -> Points | None:
        return self._points.get(release_id)

    def remember(self, release: Release) -> Points:
        """The points of a release that its caller was just allowed to read; kept if everyone is."""
        points = Points.of(release)
        if release.public:
            self._points.put(release.id, points)
        return points

    def body(self, name: str) -> bytes | None:
        return self._bodies.get(name)

    def remember_body(self, name: str, content: bytes) -> None:
        if len(content) <= LARGEST:
            self._bodies.put(name, content, len(content))
