"""Variational inference by noised statistics against the default method: ``make vips``.

Logistic regression on the two large tables of the papers' experiments, linear regression with and without outliers,
and a normal distribution of six columns. Each run is a line of ``docs/benchmarks/vips.csv``.
"""

import os

os.environ |= {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}

import argparse
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

import matplotlib as mpl
import numpy as np

mpl.use("Agg")

import matplotlib.pyplot as plt

from app.inference.conjugate import make_conjugate_problem, make_run_problem
from app.inference.conjugate.gaussian import NormalTable
from app.inference.core.facts import Column, DeclaredFacts
from app.inference.core.model import Array64
from app.inference.core.plan import ModelSpec, PlanRequest
from app.inference.core.release import BeliefRelease
from app.inference.core.statistics import Averages, split_answer
from app.inference.private_zone.mechanisms import DiscreteGaussian
from app.inference.private_zone.oracle import ClippedGaussianOracle
from app.inference.private_zone.rng import make_monte_carlo_generator, make_sampling_generator
from app.inference.registry import find_method
from app.inference.runner import run
from app.privacy.calibration import calibrate
from benchmarks.cases import Case, make_linear_regression
from benchmarks.designs import Rows
from benchmarks.environment import PAGES, describe, write_environment
from benchmarks.experiments.paper_tables import make_large
from benchmarks.figures import format_three_digits, read_lines, write_lines
from benchmarks.measures import fit_posterior, read_stated
from benchmarks.plots import COLOURS, MARKERS
from benchmarks.runs import Job, carry_out, make_plan
from benchmarks.sources import ArrayRows
from benchmarks.summaries import NOTHING, list_distinct, wrap_paragraph
from support.divergence import compute_divergence

EPSILONS: Final = (0.05, 0.1, 0.2, 0.5, 1.0)
SEEDS: Final = {"vips": 20, "dp-psvi-surrogate": 5}
ROWS, COLUMNS, MEAN_RUNS = 30_000, 6, 20
SIZE: Final = 20
LARGE, LINEAR, NORMAL_TABLE = ("adult10", "synth100k"), ("linear", "linear, outliers"), "normal"
TABLES: Final = (*LARGE, *LINEAR, NORMAL_TABLE)
TARGETS: Final = {0.05: 900, 0.1: 750, 0.2: 220, 0.5: 40, 1.0: 20}
"""Largest medians of ``vips`` on ``adult10`` that this project set itself, by epsilon."""
PAGE: Final = """# Variational inference by noised statistics

{text}

{circumstances}

| table | method | ε | KL (nats) | target | worst | stated |
| --- | --- | ---: | ---: | ---: | ---: | ---: |
{rows}

![Divergence over epsilon](vips.png)

## A normal distribution of {columns} columns
{normal}

| ε | relative error of the covariance | error of a mean over its stated noise |
| ---: | ---: | ---: |
{means}
"""
TEXT: Final = (
    "Written by `make vips`. KL is from the released posterior to the full one: medians, and the worst run. *Target*: "
    "the largest median of `vips` on adult10 that this project set itself. *Stated* is the median of the expected KL "
    f"by noise (`noise_kl`). Every method runs at its defaults, with δ = 1/N: `vips` {SEEDS['vips']} times, and the "
    f"default method {SEEDS['dp-psvi-surrogate']} times. The linear tables have {ROWS:,} rows, {COLUMNS} columns and "
    "known noise; with outliers, one target in a hundred is 5 standard deviations away. The paper runs `vips` on a "
    "table of strokes at ε from 0.5 to 4, and draws its accuracy without figures. Every run: [vips.csv](vips.csv)."
)
NORMAL: Final = (
    f"The model `gaussian` on {ROWS:,} correlated rows within 4 standard deviations, {MEAN_RUNS} runs at each ε. The "
    "relative error is the Frobenius norm of the difference from the posterior's expectation without noise, over the "
    "norm of that. The last column is a root mean square, and 1 if the stated noise is true."
)


@dataclass(frozen=True, slots=True)
class Run:
    """One run: ``kl`` is to the full posterior, ``stated`` the expected KL by noise."""

    data: str
    method: str
    epsilon: float
    seed: int
    kl: float
    stated: float
    grade: str


@dataclass(frozen=True, slots=True)
class NormalRun:
    """One run of the model ``gaussian``."""

    epsilon: float
    seed: int
    covariance_error: float
    mean_square: float


def make_cases(tables: Sequence[str]) -> Iterator[Case]:
    """Make the tables of these names, with delta 1/N; the adult table needs the shared data."""
    cases = [make_large(name) for name in LARGE if name in tables]
    rng = np.random.default_rng(3)
    x = rng.standard_normal((ROWS, COLUMNS))
    y = x @ rng.standard_normal(COLUMNS) + rng.standard_normal(ROWS)
    far = y + 5 * (rng.random(ROWS) < 0.01) * rng.choice([-1, 1], ROWS)
    for name, targets in zip(LINEAR, (y, far), strict=True):
        if name in tables:
            cases.append(make_linear_regression(name, Rows(x, targets), Rows(x[:100], targets[:100])))
    for case in cases:
        yield replace(case, facts=replace(case.facts, delta=1 / case.facts.slots))


def measure(case: Case, epsilons: Sequence[float], seeds: dict[str, int]) -> Iterator[Run]:
    """Measure both methods on one table."""
    assert case.exact is not None
    for method, count in seeds.items():
        for epsilon in epsilons:
            for seed in range(count):
                job = Job(case, method, max(SIZE, case.problem.model.smallest_exact), seed, {}, epsilon)
                release, _ = carry_out(job, make_plan(job), lambda _: None)
                assert release.reliability is not None
                stated = release.posterior
                belief = fit_posterior(case, release) if stated is None else read_stated(stated)
                yield Run(
                    case.name,
                    method,
                    epsilon,
                    seed,
                    compute_divergence(belief, case.exact),
                    float(release.diagnostics["noise_kl"]),
                    str(release.reliability.grade),
                )


def measure_normal(epsilons: Sequence[float], runs: int) -> Iterator[NormalRun]:
    """Measure the model ``gaussian`` against its belief without noise."""
    rng = np.random.default_rng(4)
    root = np.tril(rng.standard_normal((COLUMNS, COLUMNS)))
    x = rng.standard_normal((ROWS, COLUMNS)) @ root.T
    bounds = 4 * np.sqrt(np.square(root).sum(axis=1))
    names = tuple(f"x{place}" for place in range(COLUMNS))
    columns = tuple(Column(name, "real", -bound, bound) for name, bound in zip(names, bounds, strict=True))
    facts = DeclaredFacts(columns, ROWS, {"kind": "row"}, "private", 1 / ROWS)
    spec, source = ModelSpec("gaussian", names, None), ArrayRows(x, np.zeros(ROWS), ROWS)
    expected_mean, expected = _conclude_exactly(spec, facts, source)
    method = find_method("vips")
    for epsilon in epsilons:
        noise = calibrate(
            lambda sigma: method.plan(PlanRequest("vips", 1, spec, {}, None, sigma), facts).events, epsilon, 1 / ROWS
        )
        plan = method.plan(PlanRequest("vips", 1, spec, {}, None, noise), facts)
        for seed in range(runs):
            model, sampling = make_run_problem(plan, facts).model, make_sampling_generator()
            oracle = ClippedGaussianOracle(model, plan, facts, source, noise=DiscreteGaussian(), sampling=sampling)
            released = run(plan, facts, oracle, make_monte_carlo_generator(), lambda _: None)
            assert isinstance(released, BeliefRelease)
            posterior, doubt = (block.arrays for block in released.blocks)
            covariance = posterior["scale"] / (posterior["degrees"][0] - COLUMNS - 1)
            error = posterior["mean"] - expected_mean
            yield NormalRun(
                epsilon,
                seed,
                float(np.linalg.norm(covariance - expected) / np.linalg.norm(expected)),
                float(error @ np.linalg.solve(doubt["covariance"], error)) / COLUMNS,
            )


def _conclude_exactly(spec: ModelSpec, facts: DeclaredFacts, source: ArrayRows) -> tuple[Array64, Array64]:
    """Compute the mean and the expected covariance without noise."""
    model, design = make_conjugate_problem(spec, facts)
    x, y, _ = design.encode(source.gather(np.arange(facts.slots)))
    assert isinstance(model, NormalTable), "the family's model"
    rows = model.fold(x, y.astype(np.float32)).astype(np.float32)
    blocks = model.list_blocks(model.largest_radius, moving=False)
    total = model.contribute(rows, np.zeros(0), model.largest_radius, moving=False).sum(axis=0, dtype=np.float64)
    averages = Averages(split_answer(total, blocks), {blocks[0].name: 0.0}, model.largest_radius)
    arrays = model.conclude(averages, [column.name for column in design.columns]).blocks[0].arrays
    return arrays["mean"], arrays["scale"] / (arrays["degrees"][0] - COLUMNS - 1)


def render_page(runs: Sequence[Run], normal: Sequence[NormalRun], circumstances: dict[str, str]) -> str:
    """Render the page."""
    return PAGE.format(
        text=wrap_paragraph(TEXT),
        circumstances=wrap_paragraph(describe(circumstances)),
        rows="\n".join(_render_row(group) for group in _group(runs)),
        columns=COLUMNS,
        normal=wrap_paragraph(NORMAL),
        means="\n".join(_render_normal(normal, each) for each in dict.fromkeys(run.epsilon for run in normal)),
    )


def _group(runs: Sequence[Run]) -> list[list[Run]]:
    groups: dict[tuple[str, str, float], list[Run]] = {}
    for each in runs:
        groups.setdefault((each.data, each.method, each.epsilon), []).append(each)
    return list(groups.values())


def _render_row(group: Sequence[Run]) -> str:
    first, kl = group[0], [each.kl for each in group]
    target = TARGETS.get(first.epsilon) if (first.data, first.method) == ("adult10", "vips") else None
    stated = float(np.median([each.stated for each in group]))
    median, *others = (format_three_digits(each) for each in (float(np.median(kl)), max(kl), stated))
    cells = [median, NOTHING if target is None else str(target), *others]
    return f"| {first.data} | {first.method} | {first.epsilon:g} | {' | '.join(cells)} |"


def _render_normal(runs: Sequence[NormalRun], epsilon: float) -> str:
    chosen = [each for each in runs if each.epsilon == epsilon]
    error = float(np.median([each.covariance_error for each in chosen]))
    square = float(np.sqrt(np.mean([each.mean_square for each in chosen])))
    return f"| {epsilon:g} | {format_three_digits(error)} | {format_three_digits(square)} |"


def draw(runs: Sequence[Run], path: Path) -> None:
    """Draw the median divergence over epsilon, one panel for each table."""
    tables = list_distinct(each.data for each in runs)
    figure, panels = plt.subplots(1, len(tables), figsize=(3.2 * len(tables), 3), squeeze=False, layout="constrained")
    for panel, table in zip(panels[0], tables, strict=True):
        for place, method in enumerate(SEEDS):
            groups = [group for group in _group(runs) if (group[0].data, group[0].method) == (table, method)]
            x, y = [group[0].epsilon for group in groups], [np.median([each.kl for each in group]) for group in groups]
            panel.loglog(x, y, marker=MARKERS[place], color=COLOURS[place], label=method)
        panel.set_title(table)
        panel.set_xlabel("ε")
    panels[0][0].set_ylabel("KL (nats)")
    panels[0][0].legend(loc="lower left")
    figure.savefig(path, dpi=150)
    plt.close(figure)


def main() -> None:
    """Measure, and write the page, the lines and the figure."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a small run as a check")
    parser.add_argument("--only", choices=TABLES, help="measure one table, and keep the lines of the others")
    parser.add_argument("--out", type=Path, default=PAGES)
    options = parser.parse_args()
    epsilons = (1.0,) if options.quick else EPSILONS
    seeds = dict.fromkeys(SEEDS, 1) if options.quick else SEEDS
    file, normal_file = options.out / "vips.csv", options.out / "vips-normal.csv"
    tables = (options.only,) if options.only else (*LARGE[:1], *LINEAR, NORMAL_TABLE) if options.quick else TABLES
    runs = [each for each in read_lines(file, Run) if each.data not in tables] if options.only else []
    for case in make_cases(tables):
        for each in measure(case, epsilons, seeds):
            print(each, flush=True)
            runs.append(each)
    if NORMAL_TABLE in tables:
        write_lines(normal_file, list(measure_normal(epsilons, 2 if options.quick else MEAN_RUNS)))
    runs.sort(key=lambda each: TABLES.index(each.data))
    write_lines(file, runs)
    draw(runs, options.out / "vips.png")
    circumstances = write_environment(options.out / "vips.json", options.only)
    page = render_page(runs, read_lines(normal_file, NormalRun), circumstances)
    (options.out / "vips.md").write_text(page)


if __name__ == "__main__":
    main()
