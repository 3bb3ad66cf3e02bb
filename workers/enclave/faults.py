"""Faults of a file as a whole. Faults of single rows have no name, no place and no count."""

from collections.abc import Sequence
from typing import Final, Literal, get_args

Reason = Literal[
    "malformed",
    "empty",
    "missing_column",
    "unknown_column",
    "wrong_type",
    "too_large",
    "too_many_units",
    "digest_mismatch",
]
REASONS: frozenset[str] = frozenset(get_args(Reason))
NAMING: frozenset[str] = frozenset({"missing_column", "unknown_column", "wrong_type"})
"""Reasons that name columns."""

MOST_NAMES: Final = 20
MOST_CHARACTERS: Final = 64


class FileFault(Exception):
    """The file is rejected for ``reason``, of the closed list that owners see.

    ``columns`` are names of a header or a declaration, never cells: the first :data:`MOST_NAMES`, each cut to
    :data:`MOST_CHARACTERS` printable characters.
    """

    def __init__(self, reason: Reason, columns: Sequence[str] = ()) -> None:
        super().__init__(reason)
        self.reason = reason
        self.columns = tuple(printable(name) for name in columns[:MOST_NAMES])


def printable(name: str) -> str:
    """The beginning of ``name``, with a mark in the place of what cannot be printed."""
    return "".join(each if each.isprintable() else "\ufffd" for each in name[:MOST_CHARACTERS])
