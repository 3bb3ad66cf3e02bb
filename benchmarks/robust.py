"""Robust methods on tables with wrong rows: ``make robust``.

Public: the mean of normal rows, some of them moved far away (thesis, Fig. 5.1). Private: census income with wrong
features and flipped labels (thesis, section 5.3.2, Fig. 5.2). Groups: whole groups of people, some of them with
outliers (thesis, section 5.3.4, Fig. 5.4). Each run is a line of the CSV file; page and picture
depend on this file only.
"""

import os

os.environ |= {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}

import argparse
import csv
import json
import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any, Final

import matplotlib as mpl
import numpy as np
from numpy.typing import NDArray

mpl.use("Agg")

import matplotlib.pyplot as plt

from app.inference.core.facts import Column, DeclaredFacts
from app.inference.core.grouping import make_grouping
from app.inference.core.model import Array64
from app.inference.core.plan import ModelSpec, PriorSpec
from benchmarks.adult import load_adult10
from benchmarks.cases import Case, compute_full_posterior, make_logistic, narrow
from benchmarks.designs import Rows
from benchmarks.environment import PAGES, describe, describe_environment
from benchmarks.figures import format_three_digits, write_lines
from benchmarks.group_tables import GROUPED_BY, GroupedCase, make_grouped_case
from benchmarks.measures import compute_prediction, fit_posterior
from benchmarks.runs import Job, carry_out, make_plan
from benchmarks.sources import ArrayRows
from benchmarks.summaries import wrap_paragraph
from support.divergence import compute_divergence

ROWS, COLUMNS, SIZE, MOVED = 5000, 20, 60, 10.0
BOUND, WIDE, NARROW = 16.0, 24.0, 2.0
FEATURE_VARIANCE: Final = 5.0
EPSILON: Final = 1.0
OUTLIERS: Final = (0.0, 0.15, 0.3)
WRONG: Final = (0.0, 0.1, 0.2)
PUBLIC: Final[tuple[tuple[str, Mapping[str, Any]], ...]] = (("sparse-vi", {}), ("beta-cores", {}))
PRIVATE: Final[tuple[tuple[str, float, int, Mapping[str, Any]], ...]] = (
    ("dp-psvi-surrogate", WIDE, 20, {}),
    ("dp-psvi-surrogate", WIDE, 20, {"beta": 0.5}),
    ("dp-psvi-surrogate", WIDE, 20, {"beta": 0.9}),
    ("dp-psvi-surrogate", NARROW, 20, {}),
    ("dp-psvi-surrogate", NARROW, 20, {"beta": 0.5}),
    ("dp-psvi-surrogate", NARROW, 20, {"beta": 0.9}),
    ("dp-psvi", NARROW, 50, {}),
    ("dp-psvi", NARROW, 50, {"beta": 0.5}),
)
"""Method, declared bound of the columns, number of points, and parameters."""
SLOW: Final = "dp-psvi"
SETS: Final = (1, 2, 5, 10)
BATCH, GROUP_BETA = 50, 0.6
PERMUTATIONS, PREFIX, SHAPLEY_START = 50, 20, 0.5
FULL: Final = "full posterior"
PAGE: Final = """# Robust methods on tables with wrong rows

{text}

{circumstances}

## Public tables: `beta-cores`
{public_text}

| outliers | method | β | KL to the clean posterior | outliers among the chosen | rows | runs | processor time (s) |
| ---: | --- | ---: | ---: | ---: | ---: | ---: | ---: |
{public}

## Private tables: `beta`
{private_text}

| wrong rows | method | bounds | β | accuracy | grades | runs | processor time (s) |
| ---: | --- | ---: | ---: | ---: | --- | ---: | ---: |
{private}

![Divergence and accuracy by the share of wrong rows](robust.png)

## Groups and batches: `beta-cores`
{groups_text}

| choice | sets | β | accuracy | outliers among the rows | points | runs | processor time (s) |
| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |
{groups}

## Published
The thesis states its results in figures and in words, not in numbers.

- **Fig. 5.1** (the same simulation): SparseVI and β-Cores are best at about 60 points. With outliers, only β-Cores keep
  their accuracy.
- **Fig. 5.2** (Adult and two other tables): the baselines lose "typically more than 5 %" of accuracy by outliers,
  β-Cores nothing.
- **Fig. 5.4** (hospital patients in 165 groups, which are not public): β-Cores with β = 0.6 reach more than 75 % of
  accuracy with at most two groups. Shapley values are better than random groups. One of the chosen groups had 10 %
  outliers, and the others none.
"""
TEXT: Final = (
    "Written by `make robust`; every run is a line of [robust.csv](robust.csv). Medians over runs. "
    "[Robust methods](../reference/methods.md#robust-methods) explains β."
)
PUBLIC_TEXT: Final = (
    f"{ROWS:,} rows N(0, I) in {COLUMNS} columns. A share of the rows is moved by {MOVED:g} in every column. M = "
    f"{SIZE}, defaults otherwise. Clean: the posterior of the rows that were not moved. The default β is 0.2 divided "
    f"by the number of columns, {0.2 / COLUMNS:g}."
)
PRIVATE_TEXT: Final = (
    "Census income, 30,162 rows, 10 whitened components (adult10), logistic regression, "
    f"ε = {EPSILON:g}, δ = 1/N. In a share of the rows, half of the features are replaced by N(0, "
    f"{FEATURE_VARIANCE:g}). In as many rows, the label is flipped. Accuracy is of clean held-out rows. *Bounds* are "
    "the declared bounds of the columns: narrow ones clamp wrong features. dp-psvi needs narrow bounds. *Full "
    "posterior*: of all rows, without privacy. Wrong labels shrink the coefficients with every β, so only predictions "
    "are compared."
)


GROUPS_TEXT: Final = (
    "The table of [private weights of groups](groups.md): census income in 80 groups, age by race by sex. A third of "
    "the groups has 10 % outliers, and a third 20 %. Accuracy is of clean held-out rows, by the posterior of the "
    f"released points. *Batches* are {BATCH} random rows. *Random groups* and *Shapley values* take all rows of the "
    f"groups with weight 1. Shapley values are mean gains in accuracy over {PERMUTATIONS} random orders of groups, of "
    f"which the first {PREFIX} count; the thesis takes 5,000 orders. They see the labels of held-out rows."
)


@dataclass(frozen=True, slots=True)
class Line:
    """One run. ``wrong`` is the share of wrong rows, ``chosen`` that of outliers among the chosen rows.

    ``sets`` is the number of groups or batches that the run may choose.
    """

    part: str
    method: str
    bound: float
    beta: float
    wrong: float
    seed: int
    kl: float = math.nan
    accuracy: float = math.nan
    chosen: float = math.nan
    rows: int = 0
    grade: str = ""
    seconds: float = math.nan
    sets: int = 0


def draw_normal_rows(share: float, seed: int) -> tuple[Array64, int]:
    """Normal rows, of which the first ones are moved; and the number of these."""
    x = np.random.default_rng((seed, 0)).standard_normal((ROWS, COLUMNS))
    count = round(share * ROWS)
    x[:count] += MOVED
    return x, count


def make_case(x: Array64) -> Case:
    """The mean of ``N(theta, I)`` under ``N(0, I)``, declared within wide bounds."""
    names, slots = tuple(f"x{column}" for column in range(x.shape[1])), len(x)
    facts = DeclaredFacts(
        tuple(Column(name, "real", -BOUND, BOUND) for name in names), slots, {"kind": "row"}, "private", 1 / slots
    )
    spec = ModelSpec("gaussian-mean", names, None, PriorSpec(1 / BOUND), noise_scale=1 / BOUND)
    case = Case("moved", facts, spec, ArrayRows(np.clip(x, -BOUND, BOUND), np.zeros(slots), slots))
    return replace(case, exact=compute_full_posterior(case))


def spoil(rows: Rows, share: float, seed: int) -> Rows:
    """Replace features of some rows, and flip the labels of as many."""
    rng, (n, d) = np.random.default_rng((seed, 1)), rows.x.shape
    x, y, count = rows.x.copy(), rows.y.copy(), round(share * n)
    columns = rng.permuted(np.tile(np.arange(d), (count, 1)), axis=1)[:, : d // 2]
    x[rng.choice(n, count, replace=False)[:, None], columns] = rng.normal(0, math.sqrt(FEATURE_VARIANCE), columns.shape)
    flipped = rng.choice(n, count, replace=False)
    y[flipped] = 1 - y[flipped]
    return Rows(x, y)


def _run(job: Job) -> tuple[Any, float]:
    plan, start = make_plan(job), time.process_time()
    release, _ = carry_out(job, plan, lambda _: None)
    return release, time.process_time() - start


def measure_public(shares: Sequence[float], seeds: int) -> Iterator[Line]:
    """Measure SparseVI and beta-cores on normal rows."""
    for seed in range(seeds):
        for share in shares:
            x, count = draw_normal_rows(share, seed)
            case, clean = make_case(x), make_case(x[count:]).exact
            assert clean is not None
            for method, parameters in PUBLIC:
                plan = make_plan(Job(case, method, SIZE, seed, parameters))
                release, seconds = _run(Job(case, method, SIZE, seed, parameters))
                used = release.u[release.weight > 0]
                yield Line(
                    "public",
                    method,
                    BOUND,
                    float(plan.parameters.get("beta", 0)),
                    share,
                    seed,
                    kl=compute_divergence(fit_posterior(case, release), clean),
                    chosen=float((used.mean(axis=1) > 0.5 * MOVED / BOUND).mean()),
                    rows=len(used),
                    grade=str(release.reliability.grade),
                    seconds=seconds,
                )


def measure_private(shares: Sequence[float], seeds: int, slow: int) -> Iterator[Line]:
    """Measure the private methods on census income; ``slow`` is the number of runs of dp-psvi."""
    train, test = load_adult10()
    for seed in range(max(seeds, slow)):
        for share in shares:
            rows = spoil(Rows(*train), share, seed)
            case = make_logistic(f"adult10, {share:g}, {seed}", rows, bound=WIDE, held_out=Rows(*test))
            assert case.exact is not None
            accuracy = compute_prediction(case, case.exact).accuracy
            yield Line("private", FULL, WIDE, 0.0, share, seed, accuracy=accuracy)
            for method, bound, size, parameters in PRIVATE:
                if seed < (slow if method == SLOW else seeds):
                    table = narrow(case, bound) if bound < WIDE else case
                    yield _measure_one(Job(table, method, size, seed, parameters, EPSILON), share)


def _measure_one(job: Job, share: float) -> Line:
    release, seconds = _run(job)
    bound = job.case.facts.columns[0].upper
    assert bound is not None
    return Line(
        "private",
        job.method,
        bound,
        float(job.parameters.get("beta", 0)),
        share,
        job.seed,
        accuracy=compute_prediction(job.case, fit_posterior(job.case, release)).accuracy,
        rows=job.size,
        grade=str(release.reliability.grade),
        seconds=seconds,
    )


def measure_groups(seeds: int, sizes: Sequence[int] = SETS) -> Iterator[Line]:
    """Measure groups and batches that beta-cores choose, random groups, and groups by Shapley values."""
    chosen: tuple[tuple[str, str, Mapping[str, Any]], ...] = (
        ("groups", "beta-cores", {"groups": list(GROUPED_BY), "beta": GROUP_BETA}),
        ("batches", "beta-cores", {"batches": BATCH, "beta": GROUP_BETA}),
    )
    for seed in range(seeds):
        grouped, rng = make_grouped_case(seed), np.random.default_rng((seed, 6))
        order = rng.permutation(np.flatnonzero(grouped.sizes))
        started = time.process_time()
        values = compute_shapley_values(grouped, rng)
        seconds = time.process_time() - started
        for size in sizes:
            for name, method, parameters in chosen:
                yield _measure_sets(grouped, Job(grouped.case, method, size, seed, parameters), name)
            yield _measure_all_rows(grouped, order[:size], "random groups", seed, 0.0)
            best = np.argsort(-values, kind="stable")[:size]
            yield _measure_all_rows(grouped, best, "Shapley values", seed, seconds)


def _measure_sets(grouped: GroupedCase, job: Job, name: str) -> Line:
    release, seconds = _run(job)
    weights = release.diagnostics.get("weight_of_groups", {})
    share = math.nan
    if weights:
        grouping = make_grouping(list(GROUPED_BY), grouped.case.facts)
        used = np.isin([grouping.name_group(label) for label in grouping.labels], list(weights))
        share = _find_share(grouped, np.flatnonzero(used))
    return Line(
        "groups",
        f"beta-cores, {name}",
        0.0,
        float(job.parameters["beta"]),
        0.0,
        job.seed,
        accuracy=compute_prediction(grouped.case, fit_posterior(grouped.case, release)).accuracy,
        chosen=share,
        rows=len(release.weight),
        grade=str(release.reliability.grade),
        seconds=seconds,
        sets=job.size,
    )


def _measure_all_rows(grouped: GroupedCase, groups: NDArray[np.int64], name: str, seed: int, seconds: float) -> Line:
    weight = np.isin(np.arange(len(grouped.outliers)), groups).astype(np.float64)
    return Line(
        "groups",
        name,
        0.0,
        0.0,
        0.0,
        seed,
        accuracy=grouped.measure_accuracy(grouped.fit_groups(weight)),
        chosen=_find_share(grouped, groups),
        rows=int(grouped.sizes[groups].sum()),
        seconds=seconds,
        sets=len(groups),
    )


def _find_share(grouped: GroupedCase, groups: NDArray[np.int64]) -> float:
    sizes = grouped.sizes[groups]
    return float(sizes @ grouped.outliers[groups] / max(sizes.sum(), 1))


def compute_shapley_values(
    grouped: GroupedCase, rng: np.random.Generator, permutations: int = PERMUTATIONS, prefix: int = PREFIX
) -> Array64:
    """Estimate the mean gain in accuracy by each group ``(G,)``, in random orders."""
    count = len(grouped.outliers)
    gains, times = np.zeros(count), np.zeros(count)
    present = np.flatnonzero(grouped.sizes)
    for _ in range(permutations):
        weight, before = np.zeros(count), SHAPLEY_START
        for group in rng.permutation(present)[:prefix]:
            weight[group] = 1.0
            after = grouped.measure_accuracy(grouped.fit_groups(weight))
            gains[group] += after - before
            times[group] += 1
            before = after
    return np.where(times > 0, gains / np.maximum(times, 1), -np.inf)


def read_lines(path: Path) -> list[Line]:
    """Read what :func:`main` wrote."""
    kinds: dict[str, Callable[[str], Any]] = {"str": str, "int": int, "float": lambda text: float(text or "nan")}
    with path.open(newline="") as file:
        return [
            Line(
                **{
                    each.name: kinds[getattr(each.type, "__name__", str(each.type))](row.get(each.name, "0"))
                    for each in fields(Line)
                }
            )
            for row in csv.DictReader(file)
        ]


def _group(lines: Sequence[Line], part: str) -> dict[tuple[float, str, float, float], list[Line]]:
    groups: dict[tuple[float, str, float, float], list[Line]] = {}
    for line in lines:
        if line.part == part:
            groups.setdefault((line.wrong, line.method, line.bound, line.beta), []).append(line)
    return dict(sorted(groups.items(), key=lambda item: (item[0][0], item[0][1] != FULL)))


def _median(lines: Sequence[Line], name: str) -> float:
    return float(np.median([getattr(line, name) for line in lines]))


def render_page(lines: Sequence[Line], circumstances: dict[str, str]) -> str:
    """Render the page."""
    public = [
        f"| {wrong:.0%} | `{method}` | {beta:g} | {format_three_digits(_median(group, 'kl'))} | "
        f"{_median(group, 'chosen'):.0%} | {_median(group, 'rows'):g} | {len(group)} | "
        f"{format_three_digits(_median(group, 'seconds'))} |"
        for (wrong, method, _, beta), group in _group(lines, "public").items()
    ]
    private = []
    for (wrong, method, bound, beta), group in _group(lines, "private").items():
        is_run = method != FULL
        grades = ", ".join(sorted({line.grade for line in group})) if is_run else "–"
        seconds = format_three_digits(_median(group, "seconds")) if is_run else "–"
        name, accuracy = f"`{method}`" if is_run else method, _median(group, "accuracy")
        private.append(
            f"| {wrong:.0%} | {name} | ±{bound:g} | {beta:g} | {accuracy:.4f} | {grades} | {len(group)} | {seconds} |"
        )
    groups = []
    by_choice: dict[tuple[str, int], list[Line]] = {}
    for line in lines:
        if line.part == "groups":
            by_choice.setdefault((line.method, line.sets), []).append(line)
    for (choice, sets), group in sorted(by_choice.items()):
        share = _median(group, "chosen")
        groups.append(
            f"| {choice} | {sets} | {group[0].beta:g} | {_median(group, 'accuracy'):.4f} | "
            f"{'–' if math.isnan(share) else f'{share:.0%}'} | {_median(group, 'rows'):,.0f} | {len(group)} | "
            f"{format_three_digits(_median(group, 'seconds'))} |"
        )
    return PAGE.format(
        groups_text=wrap_paragraph(GROUPS_TEXT),
        groups="\n".join(groups),
        text=wrap_paragraph(TEXT),
        circumstances=wrap_paragraph(describe(circumstances)),
        public_text=wrap_paragraph(PUBLIC_TEXT),
        private_text=wrap_paragraph(PRIVATE_TEXT),
        public="\n".join(public),
        private="\n".join(private),
    )


def draw(lines: Sequence[Line], path: Path) -> None:
    """Draw divergences and accuracies by the share of wrong rows."""
    figure, panels = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
    for panel, part, name in ((panels[0], "public", "kl"), (panels[1], "private", "accuracy")):
        curves: dict[str, list[tuple[float, float]]] = {}
        for (wrong, method, bound, beta), group in _group(lines, part).items():
            label = method if method == FULL else f"{method}, ±{bound:g}, β = {beta:g}"
            curves.setdefault(label, []).append((wrong, _median(group, name)))
        for marker, (label, points) in zip("os^vD<>Px*", curves.items(), strict=False):
            panel.plot(*zip(*points, strict=True), marker=marker, label=label, linewidth=1)
        panel.set_xlabel("share of outliers" if part == "public" else "share of wrong features, and of wrong labels")
        panel.legend(fontsize=7)
    panels[0].set_yscale("log")
    panels[0].set_ylabel("KL to the clean posterior (nats)")
    panels[1].set_ylabel("accuracy on clean rows")
    figure.savefig(path, dpi=110)
    plt.close(figure)


def main() -> None:
    """Measures one part or both, then writes page and picture."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=PAGES / "robust.csv", help="the CSV file")
    parser.add_argument("--seeds", type=int, default=5, help="runs of each setting")
    parser.add_argument("--slow", type=int, default=2, help="runs of each setting of dp-psvi")
    parser.add_argument(
        "--part", choices=("public", "private", "groups"), help="measure one part, and keep the lines of the others"
    )
    parser.add_argument("--render", action="store_true", help="write page and picture of the existing lines")
    options = parser.parse_args()
    parts = () if options.render else (options.part,) if options.part else ("public", "private", "groups")
    kept = read_lines(options.out) if options.out.exists() and (options.render or options.part) else []
    lines = [line for line in kept if line.part not in parts]
    work: dict[str, Iterator[Line]] = {
        "public": measure_public(OUTLIERS, options.seeds),
        "private": measure_private(WRONG, options.seeds, options.slow),
        "groups": measure_groups(options.seeds),
    }
    for part in parts:
        for line in work[part]:
            lines.append(line)
            write_lines(options.out, lines)
            print(line, flush=True)
    circumstances = options.out.with_suffix(".json")
    if parts:
        circumstances.write_text(json.dumps(describe_environment(), indent=1) + "\n")
    options.out.with_suffix(".md").write_text(render_page(lines, json.loads(circumstances.read_text())))
    draw(lines, options.out.with_suffix(".png"))


if __name__ == "__main__":
    main()
