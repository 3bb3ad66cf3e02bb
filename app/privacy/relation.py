"""The one neighbouring relation that Corevault promises, prices and states."""

from enum import StrEnum


class Relation(StrEnum):
    """Two contents are neighbours when one unit is replaced in place by null rows."""

    ZERO_OUT = "zero_out"


IN_WORDS = (
    "Two contents are neighbours when one unit is replaced in place by null rows, which contribute zero to every "
    "answer. The promise hides what a unit's rows say and whether they are there; not the declared slots, bounds or "
    "categories. Telling two values of one unit apart costs up to twice the epsilon."
)
