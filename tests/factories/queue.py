"""A queue that records the sent messages."""

from collections.abc import Sequence
from dataclasses import dataclass, field


@dataclass
class RecordingQueue:
    sent: list[tuple[str, str]] = field(default_factory=list)

    def send(self, task: str, identifier: str) -> None:
        self.sent.append((task, identifier))

    def answers(self) -> bool:
        return True

    def send_group(self, task: str, identifiers: Sequence[str]) -> None:
        self.sent.extend((task, identifier) for identifier in identifiers)
