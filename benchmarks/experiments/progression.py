"""Posteriors of a growing coreset in the plane (Bayesian Pseudocoresets, 2020, Fig. 1a)."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
from matplotlib.patches import Ellipse

from app.inference.post.laplace import Laplace
from benchmarks.cases import BOUND, Case, make_gaussian_mean
from benchmarks.figures import read_lines, write_lines
from benchmarks.measures import fit_posterior
from benchmarks.plots import COLOURS, add_legend, open_figure
from benchmarks.runs import Job, make_seeded_release
from benchmarks.study import Study
from benchmarks.summaries import format_number, render_rows
from support.divergence import compute_divergence

ROWS, DIMENSION, SIZES, DEVIATIONS = 1_000, 500, (0, 1, 5, 12, 30, 100), 3.0
METHODS: Final[tuple[tuple[str, Mapping[str, Any], str], ...]] = (
    ("psvi", {"iterations": 500}, "PSVI"),
    ("sparse-vi", {}, "SparseVI"),
)
ROW, POINT, ELLIPSE, EXACT = "row", "point", "ellipse", "exact"


@dataclass(frozen=True, slots=True)
class Line:
    """A row, a point or a predictive normal in the first two coordinates.

    The normal has the variance ``spread`` in both. ``kl`` is in nats, from the posterior of the points to the full one.
    """

    method: str
    size: int
    kind: str
    x: float
    y: float
    spread: float
    kl: float


def measure(path: Path, *, quick: bool) -> None:
    """Run both methods at every size on one table."""
    rng, d = np.random.default_rng(0), 20 if quick else DIMENSION
    x = rng.standard_normal((ROWS, d))
    case = make_gaussian_mean("progression", x, rng.standard_normal((10, d)))
    write_lines(path, list(_list_lines(case, x, SIZES[:3] if quick else SIZES)), Line)


def _list_lines(case: Case, x: Any, sizes: tuple[int, ...]) -> Iterator[Line]:
    assert case.exact is not None
    yield _describe(case, "", 0, EXACT, case.exact)
    for row in x:
        yield Line("", 0, ROW, row[0], row[1], 0.0, 0.0)
    for method, parameters, label in METHODS:
        for size in sizes:
            if not size:
                prior = case.problem.prior
                yield Line(
                    label,
                    0,
                    ELLIPSE,
                    0.0,
                    0.0,
                    float(prior.precision(np.zeros(len(x[0])))[0, 0] ** -1) * BOUND**2 + 1,
                    np.nan,
                )
                continue
            released = make_seeded_release(Job(case, method, size, 0, parameters))
            for u, weight in zip(released.u * BOUND, released.weight, strict=True):
                if weight > 0:
                    yield Line(label, size, POINT, u[0], u[1], weight, np.nan)
            yield _describe(case, label, size, ELLIPSE, fit_posterior(case, released))


def _describe(case: Case, label: str, size: int, kind: str, belief: Laplace) -> Line:
    covariance = np.linalg.inv(belief.factor @ belief.factor.T)
    mean = belief.mean * BOUND
    spread = float(covariance[0, 0]) * BOUND**2 + 1
    kl = compute_divergence(belief, case.exact) if case.exact is not None else np.nan
    return Line(label, size, kind, float(mean[0]), float(mean[1]), spread, kl)


def draw(path: Path, picture: Path) -> None:
    """Draw rows, points and predictive normals, with one panel for each size."""
    lines = read_lines(path, Line)
    rows, exact = [each for each in lines if each.kind == ROW], next(each for each in lines if each.kind == EXACT)
    sizes = sorted({each.size for each in lines if each.kind == ELLIPSE})
    colours = {label: COLOURS[index] for (_, _, label), index in zip(METHODS, (1, 2), strict=True)}
    with open_figure(picture, "Progression of posteriors, d = 500", (10.5, 7.2), (2, 3)) as (figure, panels):
        for axes, size in zip(panels, sizes, strict=False):
            axes.scatter([each.x for each in rows], [each.y for each in rows], s=3, color="#d1d5db", zorder=0)
            for label, colour in colours.items():
                of_panel = [each for each in lines if each.method == label and each.size == size]
                at = [(each.x, each.y) for each in of_panel if each.kind == POINT]
                if at:
                    axes.scatter(
                        [x for x, _ in at], [y for _, y in at], s=14, color=colour, label=f"{label}, points", zorder=3
                    )
                for each in of_panel:
                    if each.kind == ELLIPSE:
                        add_ellipse(axes, (each.x, each.y), each.spread, colour, label)
            add_ellipse(axes, (exact.x, exact.y), exact.spread, "black", "full posterior", "--")
            axes.set(xlim=(-4.5, 4.5), ylim=(-4.5, 4.5), aspect="equal")
            axes.set_title(f"M = {size}", loc="left", fontsize=10)
        add_legend(figure, panels)


def add_ellipse(  # noqa: PLR0917  (parts of a drawing)
    axes: Any, centre: tuple[float, float], variance: float, colour: str, label: str, dashes: str = "-"
) -> None:
    """Draw the circle of a predictive normal of this variance in both coordinates."""
    width = 2 * DEVIATIONS * variance**0.5
    axes.add_patch(Ellipse(centre, width, width, fill=False, color=colour, ls=dashes, lw=1.5, label=label, zorder=2))


def tabulate(path: Path) -> str:
    """Show the KL of both methods by size."""
    lines = [each for each in read_lines(path, Line) if each.kind == ELLIPSE and each.size]
    sizes = sorted({each.size for each in lines})
    kl = {(each.method, each.size): each.kl for each in lines}
    rows = [[label, *(format_number(kl[label, size]) for size in sizes)] for _, _, label in METHODS]
    return render_rows(["KL (nats), by M", *map(str, sizes)], rows)


STUDY: Final = Study(
    "progression",
    "Progression of posteriors",
    f"One table of N = {ROWS:,} rows of a standard normal in {DIMENSION} dimensions, unit noise, prior N(0, I); the "
    f"first two coordinates. Circles are {DEVIATIONS:g} standard deviations of a new row given the points; that of "
    "M = 0 is of the prior, for both methods. PSVI with T = 500.",
    measure,
    draw,
    tabulate,
)
