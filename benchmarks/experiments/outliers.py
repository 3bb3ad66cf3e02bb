"""The mean of rows with outliers (thesis, section 5.3.1, Fig. 5.1 and 5.6a)."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any, Final

import numpy as np

from app.inference.core.model import Array64
from app.inference.post.laplace import Laplace
from benchmarks.cases import Case
from benchmarks.experiment import MEMORY, RELATIVE_KL, SECONDS, Experiment, Quantity
from benchmarks.experiments.progression import DEVIATIONS, add_ellipse
from benchmarks.figures import read_lines, write_lines
from benchmarks.measures import fit_posterior
from benchmarks.plots import COLOURS, add_legend, open_figure
from benchmarks.records import Record
from benchmarks.robust_runs import BOUND, make_case
from benchmarks.runs import Job, make_seeded_release
from benchmarks.study import Study
from benchmarks.summaries import render_rows
from support.divergence import compute_divergence

ROWS, COLUMNS, CENTRE, FAR = 5000, 20, 1.0, 10.0
SHARES: Final = (0.0, 0.15, 0.3)
SEEDS: Final = 3
SIZES: Final = (10, 20, 60, 100)
FEW_SIZES: Final = (20, 60)
"""Sizes at which other values of beta are measured."""
BETAS: Final = (0.1, 0.3)
BETA_CORES, SPARSE_VI = "β-Cores", "SparseVI"
Method = tuple[str, Mapping[str, Any], str]
"""A method, its parameters and its label."""
METHODS: Final[tuple[Method, ...]] = (
    ("psvi", {"iterations": 500}, "PSVI"),
    ("sparse-vi", {}, SPARSE_VI),
    ("beta-cores", {}, BETA_CORES),
    ("uniform", {}, "uniform"),
)
DRAWN: Final = (10, 60, 100)
"""Sizes of the panels of points."""
SHOWN_ROWS: Final = 400
ROW, OUTLIER, POINT, ELLIPSE, CLEAN = "row", "outlier", "point", "ellipse", "clean"


def name_table(share: float) -> str:
    """Name the table with this share of outliers."""
    return f"{share:.0%} outliers"


def draw_rows(share: float, seed: int) -> tuple[Array64, int]:
    """Draw rows N(1, I), of which the first ones are N(10, I); and the number of these."""
    x = CENTRE + np.random.default_rng((seed, 0)).standard_normal((ROWS, COLUMNS))
    count = round(share * ROWS)
    x[:count] += FAR - CENTRE
    return x, count


@cache
def make_table(share: float, seed: int) -> Case:
    """Make a table; ``exact`` is the posterior of its rows without the outliers."""
    x, count = draw_rows(share, seed)
    return replace(make_case(x), name=name_table(share), exact=make_case(x[count:]).exact)


def label_beta(beta: float) -> str:
    """Name the method with this beta in tables."""
    return f"{BETA_CORES}, β = {beta:g}"


def plan_methods(case: Case, size: int, seed: int, methods: Sequence[Method], betas: Sequence[float]) -> Iterator[Job]:
    """Yield these methods on one table, and β-Cores with other values of beta."""
    for method, parameters, label in methods:
        yield Job(case, method, size, seed, parameters, label=label)
    for beta in betas:
        yield Job(case, "beta-cores", size, seed, {"beta": beta}, label=label_beta(beta))


def plan_work(quick: bool) -> Iterator[Job | Record]:
    """Yield every method at every size, seed by seed."""
    for seed in range(1 if quick else SEEDS):
        for share in SHARES[1:2] if quick else SHARES:
            case = make_table(share, seed)
            for size in SIZES[:1] if quick else SIZES:
                yield from plan_methods(case, size, seed, METHODS, BETAS if size in FEW_SIZES else ())


EXPERIMENT = Experiment(
    "outliers",
    "Mean of rows with outliers",
    f"N = {ROWS:,} rows N(1, I) in {COLUMNS} columns; a share of them is N(10, I) instead. Unit noise, prior N(0, I), "
    "new rows for each seed. KL is to the posterior of the other rows alone. β-Cores and SparseVI with 100 steps for "
    "each chosen row, PSVI with T = 500. The default β is 0.01, as in the thesis: 0.2 divided by the number of "
    "columns. As a row may be chosen again, there may be fewer points than M.",
    plan_work,
    (Quantity("kl", "KL to the posterior without outliers (nats)"), RELATIVE_KL, SECONDS, MEMORY),
)


@dataclass(frozen=True, slots=True)
class Line:
    """A row, a point or a predictive normal, in the first two columns.

    The normal has the variance ``spread`` in both. A point has the weight ``spread``, and ``far`` is 1 if it is an
    outlier. ``kl`` is in nats, to the posterior of the rows without outliers.
    """

    share: float
    method: str
    size: int
    kind: str
    x: float
    y: float
    spread: float
    far: int
    kl: float


def measure(path: Path, *, quick: bool) -> None:
    """Run both methods at every size on one table for each share of outliers."""
    shares, sizes = (SHARES[1:2], DRAWN[:1]) if quick else (SHARES, DRAWN)
    write_lines(path, [line for share in shares for line in _list_lines(share, sizes)], Line)


def _list_lines(share: float, sizes: tuple[int, ...]) -> Iterator[Line]:
    (x, count), case = draw_rows(share, 0), make_table(share, 0)
    assert case.exact is not None
    for place in range(0, ROWS, ROWS // SHOWN_ROWS):
        kind = OUTLIER if place < count else ROW
        yield Line(share, "", 0, kind, x[place, 0], x[place, 1], 0.0, int(place < count), np.nan)
    yield _describe(case, share, "", 0, CLEAN, case.exact)
    for method, parameters, label in METHODS:
        for size in sizes if label in {BETA_CORES, SPARSE_VI} else ():
            released = make_seeded_release(Job(case, method, size, 0, parameters))
            for u, weight in zip(released.u * BOUND, released.weight, strict=True):
                if weight > 0:
                    far = int(u.mean() > (CENTRE + FAR) / 2)
                    yield Line(share, label, size, POINT, u[0], u[1], weight, far, np.nan)
            yield _describe(case, share, label, size, ELLIPSE, fit_posterior(case, released))


def _describe(case: Case, share: float, label: str, size: int, kind: str, belief: Laplace) -> Line:  # noqa: PLR0917
    covariance, mean = np.linalg.inv(belief.factor @ belief.factor.T), belief.mean * BOUND
    assert case.exact is not None
    spread, kl = float(covariance[0, 0]) * BOUND**2 + 1, compute_divergence(belief, case.exact)
    return Line(share, label, size, kind, float(mean[0]), float(mean[1]), spread, 0, kl)


def draw(path: Path, picture: Path) -> None:
    """Draw rows, points and predictive normals: shares of outliers from top to bottom, sizes from left to right."""
    lines = read_lines(path, Line)
    shares = sorted({line.share for line in lines})
    sizes = sorted({line.size for line in lines if line.kind == ELLIPSE})
    grid = (len(shares), len(sizes))
    with open_figure(picture, "Points and outliers", (3.4 * len(sizes), 3.2 * len(shares) + 0.8), grid) as (
        figure,
        panels,
    ):
        for axes, (share, size) in zip(panels, [(a, b) for a in shares for b in sizes], strict=True):
            own = [line for line in lines if line.share == share]
            rows = [line for line in own if line.kind in {ROW, OUTLIER}]
            axes.scatter([line.x for line in rows], [line.y for line in rows], s=3, color="#d1d5db", zorder=0)
            for label, colour in ((BETA_CORES, COLOURS[1]), (SPARSE_VI, COLOURS[2])):
                chosen = [line for line in own if (line.method, line.size) == (label, size)]
                points = [(line.x, line.y) for line in chosen if line.kind == POINT]
                x, y = ([point[axis] for point in points] for axis in (0, 1))
                axes.scatter(x, y, s=12, color=colour, label=f"{label}, points", zorder=3)
                for line in chosen:
                    if line.kind == ELLIPSE:
                        add_ellipse(axes, (line.x, line.y), line.spread, colour, label)
            clean = next(line for line in own if line.kind == CLEAN)
            add_ellipse(axes, (clean.x, clean.y), clean.spread, "black", "posterior of the other rows", "--")
            axes.set(xlim=(-3.5, 14.5), ylim=(-3.5, 14.5), aspect="equal")
            axes.set_title(f"{name_table(share)}, M = {size}", loc="left", fontsize=10)
        add_legend(figure, panels)


def tabulate(path: Path) -> str:
    """Show the share of outliers among the points."""
    lines = read_lines(path, Line)
    sizes = sorted({line.size for line in lines if line.kind == ELLIPSE})
    rows = []
    for share, label in dict.fromkeys((line.share, line.method) for line in lines if line.kind == POINT):
        counts = [count_points(lines, share, label, size) for size in sizes]
        rows.append([name_table(share), label, *(f"{far} of {points}" for far, points in counts)])
    return render_rows(["data", "outliers among the points, by M", *map(str, sizes)], rows)


def count_points(lines: list[Line], share: float, label: str, size: int) -> tuple[int, int]:
    """Count the outliers among the points, and the points."""
    chosen = [line for line in lines if (line.share, line.method, line.size) == (share, label, size)]
    far = [line.far for line in chosen if line.kind == POINT]
    return sum(far), len(far)


STUDY: Final = Study(
    "outlier-points",
    "Points and outliers",
    f"One table of the experiment above for each share of outliers, the first two columns, {SHOWN_ROWS} of the rows. "
    f"Circles are {DEVIATIONS:g} standard deviations of a new row given the points. Defaults otherwise.",
    measure,
    draw,
    tabulate,
)
