"""Pairs of columns of a release's points, in the units of the table."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from markupsafe import Markup

from app.dashboard.wording import count_noun, format_number

MOST_COLUMNS: Final = 4
MOST_POINTS: Final = 500
PANEL: Final = 176
GAP: Final = 16
LEFT: Final = 66
BOTTOM: Final = 42
TOP: Final = 8
LARGEST_RADIUS: Final = 9.0
MARGIN: Final = 12
"""Between the values and the frame of a panel, so that circles stay inside."""
_LONGEST_NAME: Final = 20


@dataclass(frozen=True, slots=True)
class Variable:
    """A column in the table's units, with its declared bounds if there are some."""

    name: str
    values: tuple[float, ...]
    bounds: tuple[float, float] | None

    @property
    def reach(self) -> tuple[float, float]:
        """The least and the largest value or bound."""
        every = (*self.values, *(self.bounds or ()))
        low, high = min(every), max(every)
        return (low, high) if low < high else (low - 1, high + 1)


@dataclass(frozen=True, slots=True)
class PairPlot:
    """A drawn plot. ``marks_target``: whether full and empty circles show the two values of the target."""

    svg: Markup
    names: tuple[str, ...]
    marks_target: bool


def draw_pairs(
    columns: Sequence[str], rows: Sequence[Sequence[float]], design: Sequence[Mapping[str, Any]]
) -> PairPlot | None:
    """Draw a circle for each point in a panel for each pair; its area is in proportion to the weight.

    Args:
        columns: names of the released columns.
        rows: the points.
        design: how each design column comes from the table.

    Returns:
        None for fewer than two numeric columns, and for too many points.
    """
    table = dict(zip(columns, zip(*rows, strict=True), strict=True)) if rows else {}
    targets = table.get("y", ())
    is_binary = set(targets) <= {0.0, 1.0} and bool(targets)
    variables = [*_list_features(table, design)][: MOST_COLUMNS - (not is_binary and bool(targets))]
    if targets and not is_binary:
        variables.append(Variable("target", tuple(targets), None))
    if len(variables) < 2 or len(rows) > MOST_POINTS or not _is_finite(variables):
        return None
    radii = _compute_radii(table.get("weight", (1.0,) * len(rows)))
    marks = [*zip(radii, targets or (1.0,) * len(rows), strict=True)]
    side = len(variables) - 1
    width, height = LEFT + side * (PANEL + GAP), TOP + side * (PANEL + GAP) + BOTTOM
    names = tuple(each.name for each in variables)
    label = Markup(
        '<svg class="chart pairs" width="{0}" height="{1}" viewBox="0 0 {0} {1}" role="img" '
        'aria-label="Scatter plots of {2}, each pair of {3}">'
    ).format(width, height, count_noun(len(rows), "point"), ", ".join(names))
    parts = [part for row in range(1, side + 1) for part in _draw_row(variables, row, side, marks)]
    return PairPlot(label + Markup("").join(parts) + Markup("</svg>"), names, is_binary)


def _list_features(table: Mapping[str, Sequence[float]], design: Sequence[Mapping[str, Any]]) -> Iterator[Variable]:
    """List the numeric columns in the table's units, and then indicators."""
    for kind in ("affine", "indicator"):
        for column in design:
            name, transform = str(column.get("name")), column.get("transform") or {}
            if transform.get("kind") == kind and name in table:
                centre, scale = (float(transform.get(part, 0.5)) for part in ("center", "scale"))
                values = table[name] if kind == "indicator" else [centre + scale * value for value in table[name]]
                yield Variable(name, tuple(values), (centre - scale, centre + scale))


def _is_finite(variables: Sequence[Variable]) -> bool:
    return all(math.isfinite(value) for each in variables for value in (*each.reach, each.reach[1] - each.reach[0]))


def _compute_radii(weights: Sequence[float]) -> list[float]:
    largest = max((weight for weight in weights if math.isfinite(weight)), default=0.0) or 1.0
    return [max(1.5, LARGEST_RADIUS * math.sqrt(min(1.0, max(0.0, weight / largest)))) for weight in weights]


def _draw_row(
    variables: Sequence[Variable], row: int, side: int, marks: Sequence[tuple[float, float]]
) -> Iterator[Markup]:
    down, top = variables[row], TOP + (row - 1) * (PANEL + GAP)
    for value in down.bounds or down.reach:
        y = top + PANEL - _place(value, down.reach)
        yield Markup('<text x="{}" y="{:.1f}" text-anchor="end">{}</text>').format(
            LEFT - 6, y + 4, format_number(value)
        )
    yield Markup('<text transform="rotate(-90 14 {0})" x="14" y="{0}" text-anchor="middle">{1}</text>').format(
        top + PANEL / 2, _shorten(down.name)
    )
    for column in range(row):
        left = LEFT + column * (PANEL + GAP)
        yield from _draw_panel(variables[column], down, (left, top), marks)
        if row == side:
            yield from _draw_across(variables[column], left, top + PANEL)


def _draw_across(across: Variable, left: float, bottom: float) -> Iterator[Markup]:
    for value in across.bounds or across.reach:
        x = left + _place(value, across.reach)
        yield Markup('<text x="{:.1f}" y="{}" text-anchor="middle">{}</text>').format(
            x, bottom + 16, format_number(value)
        )
    yield Markup('<text x="{}" y="{}" text-anchor="middle">{}</text>').format(
        left + PANEL / 2, bottom + 34, _shorten(across.name)
    )


def _draw_panel(
    across: Variable, down: Variable, corner: tuple[float, float], marks: Sequence[tuple[float, float]]
) -> Iterator[Markup]:
    left, top = corner
    yield Markup('<rect class="chart-frame" x="{}" y="{}" width="{}" height="{}"/>').format(left, top, PANEL, PANEL)
    for bound in across.bounds or ():
        x = left + _place(bound, across.reach)
        yield Markup('<line class="chart-zero" x1="{0:.1f}" x2="{0:.1f}" y1="{1}" y2="{2}"/>').format(
            x, top, top + PANEL
        )
    for bound in down.bounds or ():
        y = top + PANEL - _place(bound, down.reach)
        yield Markup('<line class="chart-zero" x1="{1}" x2="{2}" y1="{0:.1f}" y2="{0:.1f}"/>').format(
            y, left, left + PANEL
        )
    for x_value, y_value, (radius, target) in zip(across.values, down.values, marks, strict=True):
        x, y = left + _place(x_value, across.reach), top + PANEL - _place(y_value, down.reach)
        name = "chart-mark" if target else "chart-mark-empty"
        yield Markup('<circle class="{}" cx="{:.1f}" cy="{:.1f}" r="{:.1f}"/>').format(name, x, y, radius)


def _place(value: float, reach: tuple[float, float]) -> float:
    """The distance of a value from the low edge of a panel."""
    return MARGIN + (value - reach[0]) / (reach[1] - reach[0]) * (PANEL - 2 * MARGIN)


def _shorten(name: str) -> str:
    return name if len(name) <= _LONGEST_NAME else f"{name[: _LONGEST_NAME - 1]}…"
