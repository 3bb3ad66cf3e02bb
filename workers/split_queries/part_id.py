"""The id of one part of one query: the whole content of a message to a helper."""

import re
from dataclasses import dataclass

_IDENTIFIER = re.compile(r"(job_[0-9a-z]{1,64}):([0-9]{1,9}):([0-9]{1,9}):([0-9]{1,3})")


@dataclass(frozen=True, slots=True)
class PartId:
    """Which part of which query of which attempt."""

    job_id: str
    token: int
    query: int
    part: int

    def __str__(self) -> str:
        return f"{self.job_id}:{self.token}:{self.query}:{self.part}"

    @classmethod
    def parse(cls, text: str) -> "PartId | None":
        found = _IDENTIFIER.fullmatch(text)
        return None if found is None else cls(found[1], *map(int, found.groups()[1:]))
