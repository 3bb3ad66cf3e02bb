"""A queue that remembers what was sent."""

from dataclasses import dataclass, field


@dataclass
class RecordingQueue:
    sent: list[tuple[str, str]] = field(default_factory=list)

    def send(self, task: str, identifier: str) -> None:
        self.sent.append((task, identifier))
