"""Neural linear regression whose network is trained again after each batch: ``make neural-rounds``.

The loop of the thesis (section 5.3.3, Fig. 5.3 and 5.6c) on its table of 506 houses, which the package mlxtend (0.25)
ships. Each point of a curve is a line of the CSV file; page and pictures depend on this file only.
"""

import os

os.environ |= {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}

import argparse
import json
import math
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import matplotlib as mpl
import numpy as np
from corevault import Schema, real, train_features
from numpy.typing import NDArray

mpl.use("Agg")

import matplotlib.pyplot as plt

from app.inference.core.designs import feature_from_json
from app.inference.core.facts import Column, DeclaredFacts
from app.inference.core.model import Array64
from app.inference.core.plan import MechanismPlan, ModelSpec, PlanRequest
from app.inference.core.problems import Problem, make_problem
from app.inference.core.row_source import PRESENT
from app.inference.methods.psvi.groups import RowSet, SetRound, join_sets
from app.inference.methods.public_table import PublicTable
from app.inference.post.laplace import fit_laplace
from app.inference.registry import find_method
from benchmarks.environment import PAGES, describe, describe_environment
from benchmarks.figures import read_lines, write_lines
from benchmarks.sbn import find_package
from benchmarks.summaries import wrap_paragraph
from support.table import Table

HELD_OUT, START, BATCH, UNITS = 50, 20, 10, 30
ROUNDS: Final = 20
SHOWN: Final = (0, 1, 2, 5, 10, 20)
"""Rounds in the table of the page; the picture has all."""
TRAINING: Final = 1000
STEPS: Final = 30
SEEDS: Final = 30
WRONG: Final = (0.0, 0.15, 0.3)
SPOILT, VARIANCE, BOUND = 0.7, 5.0, 5.0
"""Share of spoilt rows in a wrong batch; variance and bounds of values, in standard deviations of their column."""
NOISE: Final = 0.3
BETA, BETAS = 0.6, (0.2, 0.9)
RANDOM, SPARSE_VI = "random batches", "SparseVI"


def label_beta(beta: float) -> str:
    """Name the line of beta-cores."""
    return f"β-Cores, β = {beta:g}"


CHOICES: Final = {RANDOM: None, SPARSE_VI: 0.0, **{label_beta(beta): beta for beta in (BETA, *BETAS)}}
PAGE: Final = """# Neural linear regression, trained again after each batch

{text}

{circumstances}

{tables}

![Error by rounds](neural-rounds.png)

## Published
The thesis states its results in figures, as medians of 30 trials. Without wrong batches, all methods have similar
errors. With them, only β-Cores improve from the first batch on; random batches and SparseVI need more points to reach
the same error (Fig. 5.3). Other values of β change little (Fig. 5.6c).
"""
TEXT: Final = (
    "Written by `make neural-rounds`; every point of a curve is a line of [neural-rounds.csv](neural-rounds.csv). The "
    f"506 houses of Boston, of which {HELD_OUT} random ones are held out. Columns and price are standardised. In a "
    f"share of the batches of {BATCH} rows, {SPOILT:.0%} of the rows are wrong: half of the columns and the price are "
    f"N(0, {VARIANCE:g}), at most {BOUND:g}. All runs start with the same {START} right rows. In each round, a network "
    f"with two hidden layers of {UNITS} units is trained on the points so far, by {TRAINING:,} steps of "
    "`corevault.train_features`. Then a batch is chosen for a linear regression on the outputs of the network, and "
    f"{STEPS} steps on all weights follow. The noise of that regression has a standard deviation of {NOISE:g}. RMSE is "
    "the root mean square error of its posterior mean on the houses that are held out, in standard deviations of the "
    "price. A method may choose no batch in a round, so it may have fewer points than others. Medians over {runs} runs."
)


@dataclass(frozen=True, slots=True)
class Houses:
    """Standardised columns ``x`` ``(n, d)`` and prices ``y`` ``(n,)``."""

    x: Array64
    y: Array64

    def take(self, rows: NDArray[np.int64]) -> "Houses":
        """The houses at ``rows``."""
        return Houses(self.x[rows], self.y[rows])

    def as_columns(self) -> dict[str, Array64]:
        """Columns by name, within their bounds."""
        names = [f"x{index}" for index in range(self.x.shape[1])]
        table = {**dict(zip(names, self.x.T, strict=True)), "y": self.y}
        return {name: np.clip(values, -BOUND, BOUND) for name, values in table.items()}


@dataclass(frozen=True, slots=True)
class Line:
    """A run after ``rounds`` rounds; ``rmse`` is in standard deviations of the target."""

    wrong: float
    choice: str
    seed: int
    rounds: int
    points: int
    wrong_batches: int
    rmse: float
    seconds: float


def read_houses(package: Path) -> Houses:
    """Read the houses from the folder of mlxtend."""
    table = np.loadtxt(package / "data" / "data" / "boston_housing.csv", delimiter=",")
    table = (table - table.mean(axis=0)) / table.std(axis=0)
    return Houses(table[:, :-1], table[:, -1])


def spoil(houses: Houses, share: float, rng: np.random.Generator) -> tuple[Houses, NDArray[np.bool_]]:
    """Spoil most rows of a share of the batches; also gives which batches ``(k,)`` are wrong."""
    x, y, count = houses.x.copy(), houses.y.copy(), len(houses.y) // BATCH
    is_wrong = np.isin(np.arange(count), rng.choice(count, round(share * count), replace=False))
    for batch in np.flatnonzero(is_wrong):
        for row in batch * BATCH + np.arange(round(SPOILT * BATCH)):
            places = rng.choice(x.shape[1], x.shape[1] // 2, replace=False)
            x[row, places] = rng.normal(0, math.sqrt(VARIANCE), len(places))
            y[row] = rng.normal(0, math.sqrt(VARIANCE))
    return Houses(x, y), is_wrong


def measure(
    houses: Houses, seed: int, shares: Sequence[float] = WRONG, rounds: int = ROUNDS, training: int = TRAINING
) -> Iterator[Line]:
    """Measure every choice of batches, with all shares of wrong ones."""
    for share in shares:
        rng = np.random.default_rng((seed, round(100 * share)))
        order = rng.permutation(len(houses.y))
        fresh = houses.take(order[:HELD_OUT])
        rows, is_wrong = spoil(houses.take(order[HELD_OUT:]), share, rng)
        right = np.flatnonzero(~np.repeat(is_wrong, BATCH))
        start = rng.choice(right, START, replace=False)
        for choice, beta in CHOICES.items():
            yield from Run(rows, fresh, start, is_wrong, share, choice, beta, seed).carry_out(rounds, training)


@dataclass(frozen=True, slots=True)
class Run:
    """One run: houses to choose from, fresh ones, and the rows ``(START,)`` of the start."""

    rows: Houses
    fresh: Houses
    start: NDArray[np.int64]
    is_wrong: NDArray[np.bool_]
    wrong: float
    choice: str
    beta: float | None
    seed: int

    def carry_out(self, rounds: int, training: int) -> Iterator[Line]:
        """Yield a line at the start, and after each round."""
        rng = np.random.default_rng((self.seed, 1))
        chosen, weights = [-1], np.array([len(self.rows.y) / START])
        for done in range(rounds + 1):
            started = time.process_time()
            problem, table, plan = self._make_problem(chosen, training)
            sets = [self._read(table, batch) for batch in chosen]
            rmse = self._compute_error(problem, sets, weights)
            count, wrong = sum(len(each.x) for each in sets), sum(bool(self.is_wrong[each]) for each in chosen[1:])
            if done < rounds:
                chosen, weights = self._add(chosen, weights, problem, table, plan, rng)
            yield Line(self.wrong, self.choice, self.seed, done, count, wrong, rmse, time.process_time() - started)

    def _make_problem(self, chosen: Sequence[int], training: int) -> tuple[Problem, PublicTable, MechanismPlan]:
        """Train a network on the chosen rows, and make the regression on its outputs."""
        columns = self.rows.as_columns()
        names = [name for name in columns if name != "y"]
        places = np.concatenate([self._list_rows(batch) for batch in chosen])
        term = train_features(
            {name: values[places] for name, values in columns.items()},
            Schema(*(real(name, -BOUND, BOUND) for name in columns)),
            names,
            "y",
            np.random.default_rng((self.seed, 2)),
            units=UNITS,
            steps=training,
        )
        spec = ModelSpec("linear-regression", (feature_from_json(term),), "y", noise_scale=NOISE)
        facts = DeclaredFacts(
            tuple(Column(name, "real", -BOUND, BOUND) for name in columns),
            len(self.rows.y),
            {"kind": "row"},
            "public",
        )
        problem = make_problem(spec, facts)
        present = np.ones(len(self.rows.y), dtype=np.uint8)
        parameters = {"iterations": STEPS, "batches": BATCH}
        plan = find_method("beta-cores").plan(PlanRequest("beta-cores", ROUNDS, spec, parameters), facts)
        return problem, PublicTable(Table({**columns, PRESENT: present}), problem.design), plan

    def _list_rows(self, batch: int) -> NDArray[np.int64]:
        """List the rows of a batch; -1 is the start."""
        return self.start if batch < 0 else batch * BATCH + np.arange(BATCH)

    def _read(self, table: PublicTable, batch: int) -> RowSet:
        x, y = table.read(self._list_rows(batch))
        return RowSet(str(batch), x.astype(np.float64), y, 1.0)

    def _add(  # noqa: PLR0917  (parts of one round)
        self,
        chosen: list[int],
        weights: Array64,
        problem: Problem,
        table: PublicTable,
        plan: MechanismPlan,
        rng: np.random.Generator,
    ) -> tuple[list[int], Array64]:
        """Add a batch; all batches have the same weight if they are random."""
        others = [batch for batch in range(len(self.is_wrong)) if batch not in chosen]
        if self.beta is None:
            chosen = [*chosen, int(rng.choice(others))]
            count = START + BATCH * (len(chosen) - 1)
            return chosen, np.full(len(chosen), len(self.rows.y) / count)
        turn = SetRound(plan, problem, table, rng, beta=self.beta)
        offered, sets = ([self._read(table, batch) for batch in each] for each in (others, chosen))
        sets, weights = turn.add(offered, sets, weights)
        return [int(each.label) for each in sets], weights

    def _compute_error(self, problem: Problem, sets: Sequence[RowSet], weights: Array64) -> float:
        """Compute the root mean square error of the posterior mean on the fresh houses."""
        model, design, prior = problem
        points = join_sets(sets, weights, design.width)
        posterior = fit_laplace(model, model.fold(points.u, points.y), points.weights, prior, prior.mean)
        present = {PRESENT: np.ones(len(self.fresh.y), dtype=np.uint8)}
        x, y, _ = design.encode({**self.fresh.as_columns(), **present})
        half = 1.0 if design.target_scale is None else design.target_scale.half
        return float(half * np.sqrt(np.mean((x @ posterior.mean - y) ** 2)))


def list_medians(lines: Sequence[Line]) -> dict[tuple[float, str, int], tuple[float, float, int]]:
    """List medians of errors and of points, and the number of wrong batches."""
    groups: dict[tuple[float, str, int], list[Line]] = {}
    for line in lines:
        groups.setdefault((line.wrong, line.choice, line.rounds), []).append(line)
    return {
        key: (
            float(np.median([each.rmse for each in runs])),
            float(np.median([each.points for each in runs])),
            sum(each.wrong_batches for each in runs),
        )
        for key, runs in groups.items()
    }


def render_page(lines: Sequence[Line], circumstances: dict[str, str]) -> str:
    """Render the page: a table for each share of wrong batches."""
    medians, last = list_medians(lines), max(line.rounds for line in lines)
    shown = [each for each in SHOWN if each <= last]
    tables = list[str]()
    for share in dict.fromkeys(line.wrong for line in lines):
        tables += [
            f"## {share:.0%} wrong batches",
            f"| rows by | {' | '.join(f'RMSE after {each}' for each in shown)} | points | wrong batches |",
            f"| --- | {' | '.join('---:' for _ in (*shown, 'points', 'wrong'))} |",
        ]
        for choice in dict.fromkeys(line.choice for line in lines):
            errors = " | ".join(f"{medians[share, choice, each][0]:.3f}" for each in shown)
            _, points, wrong = medians[share, choice, last]
            runs = len({line.seed for line in lines})
            tables.append(f"| {choice} | {errors} | {points:g} | {wrong / runs:.1f} |")
        tables.append("")
    text = TEXT.format(runs=len({line.seed for line in lines}))
    parts = {"text": wrap_paragraph(text), "circumstances": wrap_paragraph(describe(circumstances))}
    return PAGE.format(**parts, tables="\n".join(tables).strip().replace("batches\n|", "batches\n\n|"))


def draw(lines: Sequence[Line], path: Path) -> None:
    """Draw median errors by rounds: methods above, values of beta below."""
    shares, medians = list(dict.fromkeys(line.wrong for line in lines)), list_medians(lines)
    figure, panels = plt.subplots(
        2, len(shares), figsize=(3.6 * len(shares), 6.4), sharex=True, sharey=True, squeeze=False, layout="constrained"
    )
    methods = (RANDOM, SPARSE_VI, label_beta(BETA))
    for row, choices in zip(panels, (methods, tuple(map(label_beta, sorted((BETA, *BETAS))))), strict=True):
        for panel, share in zip(row, shares, strict=True):
            for marker, choice in zip("os^", choices, strict=True):
                places = [(key[2], rmse) for key, (rmse, *_) in medians.items() if key[:2] == (share, choice)]
                panel.plot(*zip(*sorted(places), strict=True), marker=marker, markersize=3, lw=1, label=choice)
            panel.set(title=f"{share:.0%} wrong batches")
        row[0].set_ylabel("RMSE on fresh houses")
        row[-1].legend(fontsize=7)
    for panel in panels[-1]:
        panel.set_xlabel(f"rounds of {BATCH} rows, after {START}")
    figure.savefig(path, dpi=110)
    plt.close(figure)


def main() -> None:
    """Measures all runs, then writes page and picture."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=PAGES / "neural-rounds.csv", help="the CSV file")
    parser.add_argument("--seeds", type=int, default=SEEDS, help="runs of each setting")
    parser.add_argument("--package", type=Path, default=find_package(), help="the folder of the package mlxtend")
    parser.add_argument("--render", action="store_true", help="write page and picture of the existing lines")
    options = parser.parse_args()
    circumstances = options.out.with_suffix(".json")
    if not options.render:
        if options.package is None:
            parser.exit(1, "Install mlxtend 0.25, or state its folder with --package.\n")
        houses, lines = read_houses(options.package), list[Line]()
        for seed in range(options.seeds):
            lines += measure(houses, seed)
            print(f"{seed + 1} of {options.seeds}", flush=True)
        write_lines(options.out, lines)
        circumstances.write_text(json.dumps(describe_environment(), indent=1) + "\n")
    lines = read_lines(options.out, Line)
    options.out.with_suffix(".md").write_text(render_page(lines, json.loads(circumstances.read_text())))
    draw(lines, options.out.with_suffix(".png"))


if __name__ == "__main__":
    main()
