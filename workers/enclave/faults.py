"""Faults of a file as a whole. Faults of single rows have no name, no place and no count."""

from typing import Literal, get_args

Reason = Literal[
    "malformed", "empty", "missing_column", "unknown_column", "too_large", "too_many_units", "digest_mismatch"
]
REASONS: frozenset[str] = frozenset(get_args(Reason))


class FileFault(Exception):
    """The file is rejected for ``reason``, of the closed list that owners see."""

    def __init__(self, reason: Reason) -> None:
        super().__init__(reason)
        self.reason = reason
