"""Neural linear regression on public tables with wrong batches: ``make neural``.

The thesis (section 5.3.3, Fig. 5.3) has house prices and songs, which are not shipped here. Friedman's first function
(*Annals of Statistics* 19, 1991) replaces them: five of ten columns matter, and no line fits. Each run is a line of the
CSV file; page and picture depend on this file only.
"""

import os

os.environ |= {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}

import argparse
import json
import math
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import cycle
from pathlib import Path
from typing import Any, Final

import matplotlib as mpl
import numpy as np
from corevault import Schema, real, train_features

mpl.use("Agg")

import matplotlib.pyplot as plt

from app.inference.core.designs import Feature, feature_from_json
from app.inference.core.facts import Column, DeclaredFacts
from app.inference.core.model import Array64
from app.inference.core.plan import ModelSpec, PlanRequest
from app.inference.core.problems import make_problem
from app.inference.core.row_source import PRESENT
from app.inference.post.laplace import fit_laplace
from app.inference.registry import find_method
from app.inference.runner import run_public
from benchmarks.environment import PAGES, describe, describe_environment
from benchmarks.figures import format_three_digits, read_lines, write_lines
from benchmarks.summaries import wrap_paragraph
from support.table import Table

ROWS, TEST, INPUTS, BATCH, UNITS = 2000, 1000, 10, 10, 30
LOW, HIGH = -10.0, 40.0
NOISE: Final = 1.5
WRONG: Final = (0.0, 0.15, 0.3)
SIZES: Final = (5, 10)
STEPS: Final = 30
SEEDS: Final = 10
BETA: Final = 0.6
SPOILT: Final = 0.7
NAMES: Final = tuple(f"x{index}" for index in range(INPUTS))
FACTS: Final = DeclaredFacts(
    (*(Column(name, "real", 0.0, 1.0) for name in NAMES), Column("y", "real", LOW, HIGH)),
    ROWS,
    {"kind": "row"},
    "public",
)
CHOICES: Final[tuple[tuple[str, str, Mapping[str, Any]], ...]] = (
    ("random rows", "uniform", {}),
    ("SparseVI", "sparse-vi", {"iterations": STEPS}),
    ("β-Cores, rows", "beta-cores", {"iterations": STEPS, "beta": BETA}),
    ("β-Cores, batches", "beta-cores", {"iterations": STEPS, "beta": BETA, "batches": BATCH}),
)
PAGE: Final = """# Neural linear regression

{text}

{circumstances}

| wrong batches | features | rows by | points | RMSE | runs | processor time (s) |
| ---: | --- | --- | ---: | ---: | ---: | ---: |
{rows}

![Error by the number of points](neural.png)

## Published
The thesis states its results in figures. On house prices and songs, β-Cores are as good as other methods without wrong
batches. With them, only β-Cores improve with every batch (Fig. 5.3). They choose whole batches.

{comparison}
"""
TEXT: Final = (
    "Written by `make neural`; every run is a line of [neural.csv](neural.csv). "
    f"{ROWS:,} public rows of Friedman's first function, with noise of standard deviation 1, in batches of {BATCH}. "
    f"In a share of the batches, {SPOILT:.0%} of the rows have five wrong features and a random target. *Columns*: "
    f"linear regression on the ten columns. *Network*: on the {UNITS} outputs of a network with two hidden layers, "
    "which `corevault.train_features` trained on all rows of the table, wrong ones too. Points are rows that a public "
    f"method chooses, with {STEPS} steps on the weights after each choice, and β = {BETA:g}. RMSE is the root mean "
    f"square error of the posterior mean on {TEST:,} fresh rows; the noise alone gives 1. Medians over runs."
)


@dataclass(frozen=True, slots=True)
class Line:
    """One run: ``rmse`` in the target's units."""

    wrong: float
    features: str
    choice: str
    points: int
    seed: int
    rmse: float
    seconds: float


def draw_rows(rng: np.random.Generator, count: int) -> dict[str, Array64]:
    """Draw rows of Friedman's first function."""
    x = rng.uniform(0, 1, (count, INPUTS))
    y = 10 * np.sin(math.pi * x[:, 0] * x[:, 1]) + 20 * (x[:, 2] - 0.5) ** 2 + 10 * x[:, 3] + 5 * x[:, 4]
    return {**dict(zip(NAMES, x.T, strict=True)), "y": y + rng.standard_normal(count)}


def spoil(rows: Mapping[str, Array64], share: float, rng: np.random.Generator) -> dict[str, Array64]:
    """Spoil most rows of a share of the batches: five features, and the target."""
    found = {name: values.copy() for name, values in rows.items()}
    batches = rng.choice(ROWS // BATCH, round(share * ROWS / BATCH), replace=False)
    for row in (batches[:, None] * BATCH + np.arange(round(SPOILT * BATCH))).ravel():
        for place in rng.choice(INPUTS, INPUTS // 2, replace=False):
            found[NAMES[place]][row] = np.clip(rng.normal(0, math.sqrt(5)), 0, 1)
        found["y"][row] = rng.uniform(LOW, HIGH)
    return found


def make_features(rows: Mapping[str, Array64], seed: int) -> dict[str, tuple[Feature, ...]]:
    """Make both kinds of features; the network is trained on ``rows``."""
    schema = Schema(*(real(name, 0.0, 1.0) for name in NAMES), real("y", LOW, HIGH))
    trained = train_features(rows, schema, NAMES, "y", units=UNITS, rng=np.random.default_rng((seed, 3)))
    return {"columns": NAMES, "network": (feature_from_json(trained),)}


def measure(seed: int, shares: Sequence[float], sizes: Sequence[int]) -> Iterator[Line]:
    """Measure every choice of rows with both kinds of features."""
    rng = np.random.default_rng((seed, 0))
    clean, fresh = draw_rows(rng, ROWS), draw_rows(rng, TEST)
    for share in shares:
        rows = spoil(clean, share, rng)
        source = Table({**rows, PRESENT: np.ones(ROWS, dtype=np.uint8)})
        for name, features in make_features(rows, seed).items():
            spec = ModelSpec("linear-regression", features, "y", noise_scale=NOISE)
            for size in sizes:
                for choice, method, parameters in CHOICES:
                    started = time.process_time()
                    points = _release(spec, source, method, size, parameters, seed)
                    seconds = time.process_time() - started
                    yield Line(share, name, choice, size * BATCH, seed, _compute_error(spec, points, fresh), seconds)


def _release(  # noqa: PLR0917  (parts of a run)
    spec: ModelSpec, source: Table, method: str, size: int, parameters: Mapping[str, Any], seed: int
) -> Any:
    """Release ``size`` batches of points, or as many rows."""
    count = size if "batches" in parameters else size * BATCH
    plan = find_method(method).plan(PlanRequest(method, count, spec, parameters), FACTS)
    return run_public(plan, FACTS, source, np.random.default_rng((seed, 1)))


def _compute_error(spec: ModelSpec, points: Any, fresh: Mapping[str, Array64]) -> float:
    """Compute the root mean square error of the posterior mean given ``points``."""
    model, design, prior = make_problem(spec, FACTS)
    posterior = fit_laplace(
        model, model.fold(points.u, design.encode_targets(points.y)), points.weight, prior, prior.mean
    )
    x, y, _ = design.encode({**fresh, PRESENT: np.ones(TEST, dtype=np.uint8)})
    half = 1.0 if design.target_scale is None else design.target_scale.half
    return float(half * np.sqrt(np.mean((x @ posterior.mean - y) ** 2)))


def _group(lines: Sequence[Line]) -> dict[tuple[float, str, str, int], list[Line]]:
    groups: dict[tuple[float, str, str, int], list[Line]] = {}
    for line in lines:
        groups.setdefault((line.wrong, line.features, line.choice, line.points), []).append(line)
    return groups


def compare(lines: Sequence[Line]) -> str:
    """Compare whole batches with the best choice.

    Both are on the network, with the most points.
    """
    most, parts = max(line.points for line in lines), []
    for share in dict.fromkeys(line.wrong for line in lines if line.wrong):
        errors = {
            choice: float(np.median([each.rmse for each in runs]))
            for (wrong, features, choice, points), runs in _group(lines).items()
            if (wrong, features, points) == (share, "network", most)
        }
        best = min(errors, key=lambda choice: errors[choice])
        parts.append(
            f"with {share:.0%} wrong batches, the least error is {errors[best]:.2f} ({best}), and "
            f"that of whole batches {errors['β-Cores, batches']:.2f}"
        )
    return f"Here, on the network and with {most} points: {'; '.join(parts)}."


def render_page(lines: Sequence[Line], circumstances: dict[str, str]) -> str:
    """Render the page."""
    rows = [
        f"| {wrong:.0%} | {features} | {choice} | {points} | {np.median([each.rmse for each in runs]):.2f} | "
        f"{len(runs)} | {format_three_digits(float(np.median([each.seconds for each in runs])))} |"
        for (wrong, features, choice, points), runs in _group(lines).items()
    ]
    return PAGE.format(
        text=wrap_paragraph(TEXT),
        comparison=wrap_paragraph(compare(lines)),
        circumstances=wrap_paragraph(describe(circumstances)),
        rows="\n".join(rows),
    )


def draw(lines: Sequence[Line], path: Path) -> None:
    """Draw errors by the number of points, for each share of wrong batches."""
    shares = list(dict.fromkeys(line.wrong for line in lines))
    figure, panels = plt.subplots(1, len(shares), figsize=(3.6 * len(shares), 3.6), sharey=True, layout="constrained")
    for panel, share in zip(np.atleast_1d(panels), shares, strict=True):
        curves: dict[str, list[tuple[int, float]]] = {}
        for (wrong, features, choice, points), runs in _group(lines).items():
            if wrong == share:
                median = float(np.median([each.rmse for each in runs]))
                curves.setdefault(f"{choice}, {features}", []).append((points, median))
        for marker, (label, places) in zip(cycle("os^vD<>p"), curves.items(), strict=False):
            panel.plot(*zip(*places, strict=True), marker=marker, lw=1, label=label)
        panel.set(xlabel="points", title=f"{share:.0%} wrong batches", yscale="log")
    np.atleast_1d(panels)[0].set_ylabel("RMSE on fresh rows")
    np.atleast_1d(panels)[-1].legend(fontsize=7)
    figure.savefig(path, dpi=110)
    plt.close(figure)


def main() -> None:
    """Measures all runs, then writes page and picture."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=PAGES / "neural.csv", help="the CSV file")
    parser.add_argument("--seeds", type=int, default=SEEDS, help="runs of each setting")
    parser.add_argument("--render", action="store_true", help="write page and picture of the existing lines")
    options = parser.parse_args()
    circumstances = options.out.with_suffix(".json")
    if not options.render:
        lines = list[Line]()
        for seed in range(options.seeds):
            for line in measure(seed, WRONG, SIZES):
                print(line, flush=True)
                lines.append(line)
        write_lines(options.out, lines)
        circumstances.write_text(json.dumps(describe_environment(), indent=1) + "\n")
    lines = read_lines(options.out, Line)
    options.out.with_suffix(".md").write_text(render_page(lines, json.loads(circumstances.read_text())))
    draw(lines, options.out.with_suffix(".png"))


if __name__ == "__main__":
    main()
