"""Named places at which tests pull the plug: where a crash would hurt most, one on either side of each commit.

In service, reaching one does nothing, and no setting changes that: tests put another function in the place of
:func:`reach`, from outside.
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
    """Nothing."""
