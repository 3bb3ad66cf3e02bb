"""Crash points: named places at which tests stop the process, before and after each critical commit.

In production a crash point does nothing, and no setting changes that. Tests replace :func:`reach`.
"""

from typing import Literal, get_args

Point = Literal[
    "before-reserve",
    "after-reserve",
    "before-queueing",
    "after-open",
    "mid-gather",
    "mid-iteration",
    "before-publish",
    "after-publish",
]
POINTS: tuple[Point, ...] = get_args(Point)


def reach(point: Point) -> None:
    """Mark a crash point; it does nothing unless a test replaces this function."""
