"""Server-sent events of the HTML standard. Each line is a field, and an empty line ends an event."""

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class ServerEvent:
    """One event.

    ``name`` is ``message`` by default, ``data`` has its lines joined, ``id`` may be empty.
    """

    name: str
    data: str
    id: str


@dataclass
class EventParser:
    """Makes events from lines. An incomplete last event is dropped."""

    _name: str = ""
    _data: list[str] = field(default_factory=list)
    _last_id: str = ""

    def feed(self, line: str) -> ServerEvent | None:
        """The event that ``line``, which has no line end, completes; None if it completes none."""
        if not line:
            event = ServerEvent(self._name or "message", "\n".join(self._data), self._last_id) if self._data else None
            self._name, self._data = "", []
            return event
        name, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if name == "event":
            self._name = value
        elif name == "data":
            self._data.append(value)
        elif name == "id":
            self._last_id = value
        return None
