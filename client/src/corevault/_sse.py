"""Server-sent events of the HTML standard. Each line is a field, and an empty line ends an event."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ServerEvent:
    """One event.

    ``name`` is ``message`` by default, ``data`` has its lines joined, ``id`` may be empty.
    """

    name: str
    data: str
    id: str


def parse(lines: Iterable[str]) -> Iterator[ServerEvent]:
    """Events from lines without line ends. An incomplete last event is dropped."""
    name, data, last_id = "", list[str](), ""
    for line in lines:
        if not line:
            if data:
                yield ServerEvent(name or "message", "\n".join(data), last_id)
            name, data = "", []
            continue
        field, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if field == "event":
            name = value
        elif field == "data":
            data.append(value)
        elif field == "id":
            last_id = value
