"""The lower bound of coresets of rows by dimension (Bayesian Pseudocoresets, 2020, Fig. 1b)."""

from dataclasses import dataclass
from pathlib import Path
from typing import Final

from benchmarks.figures import read_lines, write_lines
from benchmarks.lower_bound import compute_subset_lower_bound
from benchmarks.plots import open_figure
from benchmarks.study import Study
from benchmarks.summaries import NOTHING, format_number, render_rows

ROWS, DELTA = 1_000, 0.5
SIZES: Final = tuple(range(0, 101, 5))
DIMENSIONS: Final = (1, *range(10, 501, 10))
_SHOWN_SIZES, _SHOWN_DIMENSIONS = (0, 5, 25, 50, 100), (50, 100, 200, 500)


@dataclass(frozen=True, slots=True)
class Line:
    """The bound in nats for one dimension and one size."""

    dimension: int
    size: int
    bound: float


def measure(path: Path, *, quick: bool) -> None:
    """Compute the bound at every dimension and size."""
    dimensions = DIMENSIONS[::10] if quick else DIMENSIONS
    write_lines(
        path, [Line(d, m, compute_subset_lower_bound(ROWS, m, d, DELTA)) for d in dimensions for m in SIZES], Line
    )


def draw(path: Path, picture: Path) -> None:
    """Draw one line for each size; darker lines are for more points."""
    lines = read_lines(path, Line)
    with open_figure(picture, "Lower bound for any subset of rows", (6.5, 4.2)) as (figure, (axes,)):
        for size in sorted({line.size for line in lines}):
            points = [(line.dimension, line.bound) for line in lines if line.size == size and line.dimension > size]
            shade = 0.85 - 0.75 * size / SIZES[-1]
            axes.plot(*zip(*points, strict=True), color=(shade, shade, 1 - 0.4 * (1 - shade)), lw=1.2)
            if size % 25 == 0:
                axes.annotate(f"M = {size}", points[-1], textcoords="offset points", xytext=(4, -3), fontsize=8)
        axes.set(xlabel="dimension d", ylabel="least KL (nats)", xlim=(0, 570))
        figure.align_labels()


def tabulate(path: Path) -> str:
    """Show some of the bounds."""
    bounds = {(line.size, line.dimension): line.bound for line in read_lines(path, Line)}
    head = ["least KL (nats), by M", *(f"d = {d}" for d in _SHOWN_DIMENSIONS)]
    rows = [
        [str(m), *(format_number(bounds[m, d]) if (m, d) in bounds else NOTHING for d in _SHOWN_DIMENSIONS)]
        for m in _SHOWN_SIZES
    ]
    return render_rows(head, rows)


STUDY: Final = Study(
    "bound",
    "Lower bound for subsets of rows",
    f"The bound of Proposition 1 for N = {ROWS:,} rows of a standard normal at δ = {DELTA:g}: on half of all tables, "
    "no M rows with any weights have a smaller KL. M is from 0 (the lightest line) to 100 in steps of 5.",
    measure,
    draw,
    tabulate,
)
