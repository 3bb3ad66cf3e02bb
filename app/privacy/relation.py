"""The one neighbouring relation that Corevault promises, prices and states."""

from enum import StrEnum


class Relation(StrEnum):
    """Two contents are neighbours when one unit is replaced in place by null rows."""

    ZERO_OUT = "zero_out"


IN_WORDS = (
    "Two contents are neighbours when one unit is replaced in place by null rows, which contribute zero to every "
    "answer. The promise hides what a unit's rows say and whether they are there; not the declared slots, bounds or "
    "categories. Two values of one unit are neighbours of the same content, so telling them apart costs up to "
    "(2 epsilon, (1 + e^epsilon) delta)."
)
