"""The neighbouring relation of Corevault's privacy promise."""

from enum import StrEnum


class Relation(StrEnum):
    """Two contents are neighbours when one unit is replaced in place by null rows."""

    ZERO_OUT = "zero_out"


IN_WORDS = (
    "Two contents are neighbours when one unit is replaced in place by null rows, which contribute zero to every "
    "answer. The promise hides the values of a unit's rows and whether the unit is present. It does not hide the "
    "declared slots, bounds or categories. Two values of one unit are both neighbours of the content without it. "
    "Distinguishing them costs up to (2 epsilon, (1 + e^epsilon) delta)."
)
"""The relation in words, for certificates."""
