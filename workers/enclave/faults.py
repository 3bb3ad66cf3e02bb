"""Faults of a file as a whole. Faults of single rows are neither named nor counted."""

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
    """The file is rejected for a reason from the closed list that owners see.

    Attributes:
        reason: the code.
        columns: names of a header or a declaration, never cells. The first :data:`MOST_NAMES` names are kept, each cut
            to :data:`MOST_CHARACTERS` printable characters.
    """

    def __init__(self, reason: Reason, columns: Sequence[str] = ()) -> None:
        super().__init__(reason)
        self.reason = reason
        self.columns = tuple(make_printable(name) for name in columns[:MOST_NAMES])


def make_printable(name: str) -> str:
    """Cut ``name``, and replace characters that cannot be printed by U+FFFD."""
    return "".join(each if each.isprintable() else "\ufffd" for each in name[:MOST_CHARACTERS])
