"""Predictions of held-out rows by private logistic regressions: ``make auc``.

Figure 5 of *Variational Bayes in private settings* has the records of 10,069 patients, which cannot be had. Census
income replaces them, in random training sets of the same size. Each run is a line of ``docs/benchmarks/auc.csv``; page
and picture depend on this file only.
"""

import os

os.environ |= {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}

import argparse
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

import matplotlib as mpl
import numpy as np
from numpy.typing import NDArray

mpl.use("Agg")

import matplotlib.pyplot as plt
from scipy.linalg import solve_triangular

from app.inference.core.model import Array64
from app.inference.core.plan import PriorSpec
from app.inference.post.laplace import Laplace
from app.privacy.audit.shadow import compute_area
from benchmarks.adult import load_adult10
from benchmarks.cases import Case, compute_full_posterior, make_design_rows, make_logistic
from benchmarks.designs import Rows
from benchmarks.environment import PAGES, describe, write_environment
from benchmarks.figures import read_lines, write_lines
from benchmarks.measures import fit_posterior, read_stated
from benchmarks.peers import objective_perturbation
from benchmarks.peers.problem import Problem, Settings, shrink_rows
from benchmarks.peers.tables import PeerTable, make_census
from benchmarks.peers.tuning import DEVELOPMENT_SEEDS, choose_settings, list_settings
from benchmarks.plots import COLOURS, MARKERS
from benchmarks.runs import Job, carry_out, make_plan
from benchmarks.summaries import list_distinct, render_rows, wrap_paragraph
from benchmarks.tables.drawn import Target, assemble
from benchmarks.tables.targets import LABEL, LOGISTIC
from demo import census

TRAINING, HELD_OUT, SPLITS, DELTA = 10_069, 10_000, 5, 1e-4
EPSILONS: Final = (0.1, 0.2, 0.5, 1.0, 2.0, 4.0)
PUBLISHED: Final = (0.5, 1.0, 2.0, 4.0)
BOUND: Final = 16.0
SIZE: Final = 20
VIPS, DEFAULT, EXACT = "vips", "dp-psvi-surrogate", "full posterior"
PERTURBED, PURE = "objective perturbation", "objective perturbation, δ = 0"
METHODS: Final = (VIPS, DEFAULT, PERTURBED, PURE)
PAGE: Final = """# Predictions of held-out rows, by ε

{text}

{circumstances}

{tables}
![Areas under the ROC curve by epsilon](auc.png)

## Published
Figure 5 of *Variational Bayes in private settings* has 10,069 patients and 4,146 binary columns, at ε from 0.5 to 4 and
δ = 1e-4. Its values are not in the text. In the text, `vips` has the largest area of the private methods at every ε.
Regressions without privacy have a larger one. Here:

{verdicts}

Noise with δ = 0 grows with the number of columns, and the paper's table has far more.
"""
TEXT: Final = (
    "Written by `make auc`; every run is a line of [auc.csv](auc.csv). The area under the ROC curve (AUC) is a share "
    "of pairs of a positive and a negative row: those with probabilities in the right order. "
    f"{TRAINING:,} random rows of census income are the private table, and {HELD_OUT:,} others are held out; δ = "
    f"{DELTA:g}. Areas are means of {SPLITS} splits, with their standard deviation. The methods of Corevault run at "
    "their defaults. They predict with the posterior of the release, its mean and covariance. *No noise* is the same "
    "method with exact answers. *Objective perturbation* has Gaussian noise (Kifer, Smith & Thakurta 2012), and "
    "the published form of it δ = 0 (Chaudhuri et al. 2011). The bound of both is the length of the longest row. Their "
    "settings have the largest area on the training rows of the first split. Neither costs them privacy. *Full "
    "posterior* is that of all training rows."
)


@dataclass(frozen=True, slots=True, eq=False)
class Split:
    """A private table, and held-out design rows ``x`` with labels ``y``.

    A design column times its ``unit`` has a standard normal prior.
    """

    case: Case
    x: Array64
    y: Array64
    unit: Array64


@dataclass(frozen=True, slots=True)
class Line:
    """One run; ``epsilon`` is infinite without noise."""

    data: str
    coefficients: int
    method: str
    epsilon: float
    split: int
    auc: float


def rank_rows(x: Array64, belief: Laplace) -> Array64:
    """Compute the margins of rows ``x``, whose order is that of the predictive probabilities."""
    variance = np.square(solve_triangular(belief.factor, x.T, lower=True)).sum(axis=0)
    return np.asarray(x @ belief.mean / np.sqrt(1 + np.pi * variance / 8))


def make_splits(name: str) -> Iterator[Split]:
    """Make the random splits of a table.

    Raises:
        MissingData: the files of the census are missing.
    """
    if name == "adult10":
        (x, y), _ = load_adult10()
        for train, test in _draw_places(len(y)):
            case = make_logistic(name, Rows(x[train], y[train]), bound=BOUND)
            held_out = make_design_rows(case, Rows(x[test], y[test]))
            yield Split(_set_delta(case), *held_out, np.append(np.full(x.shape[1], BOUND), 1.0))
        return
    table = make_census(census.SCHEMA.names[:-1], name)
    for train, test in _draw_places(table.problem.rows):
        case = _choose_rows(table, train)
        case = _set_delta(replace(case, exact=compute_full_posterior(case)))
        yield Split(case, *make_design_rows(_choose_rows(table, test)), np.ones(case.problem.model.dimension))


def _draw_places(rows: int) -> Iterator[tuple[NDArray[np.intp], NDArray[np.intp]]]:
    for split in range(SPLITS):
        order = np.random.default_rng((5, split)).permutation(rows)
        yield order[:TRAINING], order[TRAINING : TRAINING + HELD_OUT]


def _choose_rows(table: PeerTable, places: NDArray[np.intp]) -> Case:
    features = replace(table.features, values=tuple(values[places] for values in table.features.values))
    target = Target(LOGISTIC, LABEL, table.problem.y[places])
    return replace(assemble(features, target, prior=PriorSpec(scale=1.0)), name=table.name)


def _set_delta(case: Case) -> Case:
    return replace(case, facts=replace(case.facts, delta=DELTA))


def measure(name: str, epsilons: Sequence[float], methods: Sequence[str] = METHODS) -> Iterator[Line]:
    """Measure methods on the splits of one table, and the full posterior."""
    settings: dict[tuple[str, float], Settings] = {}
    for number, split in enumerate(make_splits(name)):
        assert split.case.exact is not None
        problem = _make_problem(split)
        blank = Line(name, problem.parameters, EXACT, math.inf, number, 0.0)
        yield replace(blank, auc=compute_area(rank_rows(split.x, split.case.exact), split.y > 0))
        for epsilon in (*epsilons, math.inf):
            for method in (each for each in (VIPS, DEFAULT) if each in methods):
                auc = compute_area(rank_rows(split.x, _release(split.case, method, epsilon, number)), split.y > 0)
                yield replace(blank, method=method, epsilon=epsilon, auc=auc)
            for method in (each for each in (PERTURBED, PURE) if each in methods and math.isfinite(epsilon)):
                if (method, epsilon) not in settings:
                    settings[method, epsilon] = _choose_settings(problem, method, epsilon)
                theta = _perturb(problem, method, epsilon, settings[method, epsilon], 1000 + number)
                auc = compute_area(split.x @ (split.unit * theta), split.y > 0)
                yield replace(blank, method=method, epsilon=epsilon, auc=auc)


def _release(case: Case, method: str, epsilon: float, seed: int) -> Laplace:
    job = Job(case, method, max(SIZE, case.problem.model.smallest_exact), seed, {}, epsilon)
    release, _ = carry_out(job, make_plan(job), lambda _: None)
    return fit_posterior(case, release) if release.posterior is None else read_stated(release.posterior)


def _make_problem(split: Split) -> Problem:
    """Make the problem of objective perturbation in the units of the prior."""
    x, y = make_design_rows(split.case)
    x *= split.unit
    return Problem(x, y, float(np.sqrt(np.vecdot(x, x).max())), 1.0, DELTA)


def _perturb(problem: Problem, method: str, epsilon: float, settings: Settings, seed: int) -> Array64:
    rng = np.random.default_rng(seed)
    if method == PURE:
        return perturb_purely(problem, epsilon, settings, rng)
    return objective_perturbation.release(problem, epsilon, settings, rng).mean


def perturb_purely(problem: Problem, epsilon: float, settings: Settings, rng: np.random.Generator) -> Array64:
    """Minimise an objective with pure noise (Chaudhuri et al. 2011).

    The density of the linear term is ``exp(-|b| e / L)``. L bounds a row's gradient, and ``e`` is the part of epsilon
    that the Jacobian leaves. Rows are scaled down to L.

    Raises:
        ValueError: the ridge is too small for this epsilon.
    """
    clip, ridge = settings["clip"] * problem.norm, settings["ridge"] + problem.precision
    left = epsilon - math.log1p(clip**2 / 4 / ridge)
    if left <= 0:
        raise ValueError("the ridge is too small for this epsilon")
    direction = rng.standard_normal(problem.parameters)
    tilt = direction / np.linalg.norm(direction) * rng.gamma(problem.parameters, clip / left)
    x = shrink_rows(problem.x, clip)
    return objective_perturbation.minimise(x, problem.y, np.ones(problem.rows), ridge, tilt)


def _choose_settings(problem: Problem, method: str, epsilon: float) -> Settings:
    """Choose the settings with the largest area on the training rows."""

    def measure(settings: Settings, seed: int) -> float:
        try:
            return -compute_area(problem.x @ _perturb(problem, method, epsilon, settings, seed), problem.y > 0)
        except ValueError:
            return math.inf

    grid = {**objective_perturbation.GRID, **({"weigh": (0.0,)} if method == PURE else {})}
    return choose_settings(list_settings(grid), measure, DEVELOPMENT_SEEDS[:1])


def _group(lines: Sequence[Line]) -> Mapping[tuple[str, str, float], list[float]]:
    groups: dict[tuple[str, str, float], list[float]] = {}
    for line in lines:
        groups.setdefault((line.data, line.method, line.epsilon), []).append(line.auc)
    return groups


def render_page(lines: Sequence[Line], circumstances: Mapping[str, str]) -> str:
    """Render the page."""
    tables = list_distinct(line.data for line in lines)
    return PAGE.format(
        text=wrap_paragraph(TEXT),
        circumstances=wrap_paragraph(describe(circumstances)),
        tables="\n".join(_render_table(table, [line for line in lines if line.data == table]) for table in tables),
        verdicts="\n".join(_compare(table, [line for line in lines if line.data == table]) for table in tables),
    )


def _render_table(name: str, lines: Sequence[Line]) -> str:
    groups = _group(lines)
    epsilons = sorted({line.epsilon for line in lines})
    head = [
        f"{name}, {lines[0].coefficients} coefficients",
        *("no noise" if math.isinf(epsilon) else f"ε = {epsilon:g}" for epsilon in epsilons),
    ]
    rows = [
        [method, *(_render_cell(groups.get((name, method, epsilon), ())) for epsilon in epsilons)]
        for method in (EXACT, *METHODS)
    ]
    return render_rows(head, rows)


def _render_cell(areas: Sequence[float]) -> str:
    return f"{np.mean(areas):.3f} ± {np.std(areas, ddof=1):.3f}" if areas else "–"


def _compare(name: str, lines: Sequence[Line]) -> str:
    """Compare mean areas."""
    means = {(method, epsilon): np.mean(areas) for (_, method, epsilon), areas in _group(lines).items()}
    exact = means[EXACT, math.inf]

    def list_wins(worse: str) -> str:
        places = [f"{each:g}" for each in EPSILONS if means[VIPS, each] > means[worse, each]]
        return f"at ε = {', '.join(places)}" if places else "at no ε"

    gap = {method: exact - means[method, PUBLISHED[0]] for method in (VIPS, DEFAULT)}
    return wrap_paragraph(
        f"- {name}: `vips` is above objective perturbation with δ = 0 {list_wins(PURE)}. It is above that with δ = "
        f"{DELTA:g} {list_wins(PERTURBED)}. It is above the default method {list_wins(DEFAULT)}. At ε = "
        f"{PUBLISHED[0]:g}, it is {gap[VIPS]:.3f} below the full posterior, and the default method {gap[DEFAULT]:.3f}."
    )


def draw(lines: Sequence[Line], path: Path) -> None:
    """Draw mean areas by epsilon, with standard deviations."""
    tables, groups = list_distinct(line.data for line in lines), _group(lines)
    figure, panels = plt.subplots(1, len(tables), figsize=(4.2 * len(tables), 3.4), squeeze=False, layout="constrained")
    for panel, table in zip(panels[0], tables, strict=True):
        for place, method in enumerate(METHODS):
            at = sorted(each for data, name, each in groups if (data, name) == (table, method) and math.isfinite(each))
            areas = [groups[table, method, each] for each in at]
            means, spreads = [np.mean(each) for each in areas], [np.std(each, ddof=1) for each in areas]
            panel.errorbar(
                at, means, spreads, marker=MARKERS[place], color=COLOURS[place], lw=1.3, capsize=2, label=method
            )
        for method, style in ((EXACT, "-"), (VIPS, ":")):
            label = method if method == EXACT else f"{method}, no noise"
            panel.axhline(np.mean(groups[table, method, math.inf]), color="#6b7280", lw=1, ls=style, label=label)
        panel.set(xscale="log", xlabel="ε", title=table)
    panels[0][0].set_ylabel("AUC on held-out rows")
    panels[0][0].legend(loc="lower right", fontsize=8)
    figure.savefig(path, dpi=130)
    plt.close(figure)


def main() -> None:
    """Measures all runs, then writes page and picture."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=PAGES / "auc.csv", help="the CSV file")
    parser.add_argument("--only", choices=METHODS, help="measure one method, and keep the lines of the others")
    parser.add_argument("--render", action="store_true", help="write page and picture of the existing lines")
    options = parser.parse_args()
    circumstances = options.out.with_suffix(".json")
    if not options.render:
        methods = (options.only,) if options.only else METHODS
        old = [line for line in read_lines(options.out, Line) if line.method != options.only] if options.only else []
        lines = list[Line]()
        for name in ("adult10", "census, 14 columns"):
            lines += [line for line in old if line.data == name]
            for line in measure(name, EPSILONS, methods):
                if not options.only or line.method == options.only:
                    print(line, flush=True)
                    lines.append(line)
        write_lines(options.out, lines)
        write_environment(circumstances, options.only)
    lines = read_lines(options.out, Line)
    options.out.with_suffix(".md").write_text(render_page(lines, json.loads(circumstances.read_text())))
    draw(lines, options.out.with_suffix(".png"))


if __name__ == "__main__":
    main()
