"""One figure for each experiment, with a panel for each quantity and data set.

Lines are medians, and bands are quartiles.
"""

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import matplotlib as mpl
import numpy as np

mpl.use("Agg")

import matplotlib.pyplot as plt
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

from benchmarks.experiment import AXES, Experiment, Quantity
from benchmarks.records import REFERENCE, Record
from benchmarks.summaries import (
    LINES,
    NO_NOISE,
    Summary,
    choose,
    find_place,
    list_distinct,
    list_lines,
    list_places,
    summarise,
)

COLOURS: Final = ("#E69F00", "#0072B2", "#D55E00", "#009E73", "#CC79A7", "#000000", "#56B4E9", "#8C6D31")
"""The palette of Okabe and Ito, which people with red-green colour blindness can distinguish. Markers differ too."""
MARKERS: Final = "vos^DP<*"
STYLES: Final = dict(
    zip(
        LINES,
        ((0, "-"), (1, "-"), (1, "--"), (1, ":"), (2, "-"), (3, "-"), (4, "-"), (5, "-"), (6, "-"), (6, "--"), (7, "-"),
         (2, "-"), (2, "--"), (6, "-"), (0, "-"), (7, "-"),
         (3, "-"), (0, "--"), (4, "-"), (4, "--"), (3, "-"), (0, "-")),
        strict=True,
    )
)  # fmt: skip
"""Colour and dashes of a method, the same in every figure and different from the other methods of a figure."""
DASHES: Final = ("--", ":", "-.", (0, (1, 3)))
SOLID: Final = "-"
_LOOK: Final[Any] = {"font.size": 9, "axes.spines.top": False, "axes.spines.right": False}
LEAST: Final = 1e-6
"""Smaller values are rounding errors, and are drawn here."""
_QUIET: Final = "#6b7280"
_LABEL_DISTANCE: Final = 0.08
"""The least distance between labels, as a share of the length of the axis."""
_DECADE: Final = 12.0
_FEW_DECADES: Final = 2000.0
"""Below this ratio an axis has labels at 1, 2, 5 and 10, because powers of ten would be too few."""


@contextmanager
def open_figure(
    path: Path, title: str, size: tuple[float, float], grid: tuple[int, int] = (1, 1)
) -> Iterator[tuple[Figure, list[Axes]]]:
    """A figure with a grid of panels; it is written at the end."""
    plt.rcParams.update(_LOOK)
    figure, panels = plt.subplots(*grid, figsize=size, squeeze=False, layout="constrained")
    yield figure, list(panels.flat)
    figure.suptitle(title, x=0.01, ha="left", weight="bold")
    figure.savefig(path, dpi=130)
    plt.close(figure)


def add_legend(figure: Figure, panels: Sequence[Axes], columns: int = 4) -> None:
    """One legend below the panels, with each label once."""
    handles = {label: each for axes in panels for each, label in zip(*axes.get_legend_handles_labels(), strict=True)}
    figure.legend(
        handles.values(), handles.keys(), loc="outside lower center", ncols=min(columns, len(handles)), frameon=False
    )


def draw(experiment: Experiment, records: Sequence[Record], path: Path) -> None:
    """Writes the figure."""
    quantities = [each for each in experiment.quantities if each.in_figure]
    names = list_distinct(record.data for record in records)
    plt.rcParams.update(_LOOK)
    panels = [(quantity, data) for quantity in quantities for data in names]
    columns = len(names) if len(names) < 4 else 2
    rows = -(-len(panels) // columns)
    size = (max(4.1 * columns, 6.5), 3.3 * rows + 0.9)
    figure, grid = plt.subplots(rows, columns, figsize=size, squeeze=False, layout="constrained")
    order = list_lines(records)
    for spare in grid.flat[len(panels) :]:
        spare.set_axis_off()
    for axes, (quantity, data) in zip(grid.flat[: len(panels)], panels, strict=True):
        _panel(axes, experiment.axis(data), quantity, choose(records, data=data), order)
        axes.set_title(data, loc="left", fontsize=10)
    add_legend(figure, list(grid.flat), 4 if columns > 1 else 3)
    figure.suptitle(experiment.title, x=0.01, ha="left", weight="bold")
    figure.savefig(path, dpi=130)
    plt.close(figure)


def _panel(axes: Axes, axis: str, quantity: Quantity, records: Sequence[Record], order: Sequence[str]) -> None:
    references = list_distinct(record.method for record in records if record.outcome == REFERENCE)
    for index, line in enumerate(each for each in order if each not in references):
        place = find_place(line)
        _line(axes, axis, quantity, choose(records, method=line), (index, SOLID) if place < 0 else STYLES[LINES[place]])
    for index, line in enumerate(references):
        points = _points(axis, quantity, choose(records, method=line))
        if points:
            x, y = [at for at, _ in points], [max(each.median, LEAST) for _, each in points]
            mark = "_" if len(points) == 1 else ""  # a line of one point is not visible
            dashes = DASHES[index % len(DASHES)]
            axes.plot(x, y, color=_QUIET, ls=dashes, marker=mark, lw=1.6, ms=14, label=line, zorder=1)
    axes.set_xscale("log")
    if quantity.logarithmic:
        axes.set_yscale("log")
        _widen(axes)
    axes.grid(which="major", color="#e5e7eb", lw=0.6)
    axes.set_xlabel(AXES[axis])
    axes.set_ylabel(quantity.label)
    _ticks(axes, axis, list_places(records, axis))


def _widen(axes: Axes) -> None:
    """Widens the axis to at least a decade, so noise does not fill it."""
    low, high = axes.get_ylim()
    spare = max(1.0, (_DECADE / (high / low)) ** 0.5)
    axes.set_ylim(low / spare, high * spare)
    if high / low < _FEW_DECADES:
        axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        axes.yaxis.set_minor_locator(NullLocator())


def _line(axes: Axes, axis: str, quantity: Quantity, records: Sequence[Record], style: tuple[int, str]) -> None:
    points = _points(axis, quantity, records)
    if not points:
        return
    x = [at for at, _ in points]
    index, dashes = style
    colour = COLOURS[index % len(COLOURS)]
    least = LEAST if quantity.logarithmic else -math.inf
    lower, medians, upper = (
        [max(getattr(each, name), least) for _, each in points] for name in ("lower", "median", "upper")
    )
    axes.plot(
        x, medians, color=colour, marker=MARKERS[index % len(MARKERS)], ms=4, lw=1.5, ls=dashes, label=records[0].method
    )
    axes.fill_between(x, lower, upper, color=colour, alpha=0.18, lw=0)


def _points(axis: str, quantity: Quantity, records: Sequence[Record]) -> list[tuple[float, Summary]]:
    across = list_places(records, axis)
    largest = max((value for value in across if not math.isinf(value)), default=1.0)
    summaries = [summarise(choose(records, **{axis: value}), quantity.name) for value in across]
    at = [_no_noise(largest) if math.isinf(value) else value for value in across]
    return [(x, each) for x, each in zip(at, summaries, strict=True) if each is not None]


def _no_noise(largest: float) -> float:
    return 2.5 * largest


def _ticks(axes: Axes, axis: str, across: Sequence[float]) -> None:
    """Labels the values with runs, or powers of ten for rows. The last value may be infinite."""
    if not across:
        return
    largest = max(value for value in across if not math.isinf(value))
    at = [_no_noise(largest) if math.isinf(value) else value for value in across]
    if axis != "rows":
        axes.set_xticks(at, _labels(at, across))
        axes.xaxis.set_minor_locator(NullLocator())
    axes.set_xlim(0.85 * float(np.min(at)), 1.2 * float(np.max(at)))


def _labels(at: Sequence[float], across: Sequence[float]) -> list[str]:
    """The labels of values. A label that would overlap the one before is empty."""
    step, last, labels = (max(at) / min(at)) ** _LABEL_DISTANCE, 0.0, []
    for x, value in zip(at, across, strict=True):
        fits = x >= last * step
        labels.append((NO_NOISE if math.isinf(value) else f"{value:g}") if fits else "")
        last = x if fits else last
    return labels
