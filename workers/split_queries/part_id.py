"""The id of one part of one query: the only content of a helper's message."""

import re
from dataclasses import dataclass

_IDENTIFIER = re.compile(r"(job_[0-9a-z]{1,64}):([0-9]{1,9}):([0-9]{1,9}):([0-9]{1,3})")


@dataclass(frozen=True, slots=True)
class PartId:
    """Identifies the attempt, its query and the part of that query."""

    job_id: str
    token: int
    query: int
    part: int

    def __str__(self) -> str:
        return f"{self.job_id}:{self.token}:{self.query}:{self.part}"

    @classmethod
    def parse(cls, text: str) -> "PartId | None":
        """Parse the text form of an id; None for other texts."""
        match = _IDENTIFIER.fullmatch(text)
        return None if match is None else cls(match[1], *map(int, match.groups()[1:]))
