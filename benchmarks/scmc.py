"""A coreset of a stream against all its rows and a reservoir: ``make scmc``.

Sequential Monte Carlo filters the same rows with three memories (Beronov, Weilbach, Wood & Campbell, *Sequential
Core-Set Monte Carlo*). Each run is a line of ``docs/benchmarks/scmc.csv``. A memory of all rows is the reference here
and no choice in the service, because it would release every row.
"""

import os

os.environ |= {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}

import argparse
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import matplotlib as mpl
import numpy as np

mpl.use("Agg")

import matplotlib.pyplot as plt
from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator
from scipy.special import expit

from app.inference.core.model import Array64
from app.inference.methods.hilbert.omp import omp
from app.inference.methods.hilbert.vectors import sum_vectors
from app.inference.methods.public_table import Selection
from app.inference.methods.scmc.filtering import Density, Filter, Likelihood, State
from app.inference.methods.scmc.memory import Compress, Memory, compress_to_coreset, compress_to_reservoir
from app.inference.methods.scmc.particles import normalise
from app.inference.post.laplace import Laplace, fit_laplace
from benchmarks.adult import MissingData, load_adult10
from benchmarks.cases import Case, make_linear_regression, make_logistic
from benchmarks.designs import Rows
from benchmarks.environment import PAGES, describe, describe_environment
from benchmarks.figures import format_three_digits, write_lines
from benchmarks.normal_inverse_wishart import NormalInverseWishart, NormalRows, fold_rows
from benchmarks.plots import COLOURS, LEAST, MARKERS
from benchmarks.summaries import list_distinct, wrap_paragraph
from support.divergence import compute_divergence

SIZES: Final = (25, 50, 100, 200)
ROWS, BATCH, PARTICLES, MOVES, SEEDS = 2_000, 20, 400, 8, 5
WIDTH, MORE_PARTICLES, EXACT_DRAWS = 6, 1_000, 200_000
PROMISED: Final = 100
FULL, CORESET, RESERVOIR = "all rows", "coreset", "reservoir"
PAGE: Final = """# A coreset of a stream

{text}

{circumstances}

| data | memory | M | KL (nats) | over all rows | evaluations (millions) | share | KL of the points | seconds |
| --- | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |
{rows}

![Divergence and evaluations of three memories](scmc.png)

{verdicts}

One compression from 220 rows to 200, with 400 particles, takes {compression} ms of processor time (median). It starts
from the rows in memory. A search from no rows takes {cold} ms.
"""
TEXT: Final = (
    f"Written by `make scmc`. {ROWS:,} rows arrive in batches of {BATCH}. {PARTICLES} particles take {MOVES} moves "
    f"after each resampling. The normal distribution has {WIDTH} columns, {WIDTH * (WIDTH + 3) // 2} parameters and "
    f"{MORE_PARTICLES:,} particles; its prior is normal-inverse-Wishart. KL is from the normal distribution with the "
    "particles' mean and covariance to the full posterior. KL of the points is from the posterior of the points in "
    "memory. Posteriors of regressions are Laplace approximations. That of the normal distribution has a closed form: "
    f"for the KL of particles, it has the mean and covariance of {EXACT_DRAWS:,} draws, and the KL of points is exact. "
    "*Over all rows* and *share* compare with a memory of all rows: the ratio of KL, and the share of likelihood "
    f"evaluations. Medians of {SEEDS} seeds; a seed decides the random numbers, and the data if they are generated. "
    "The KL of a memory of all rows is the Monte Carlo error of the particles. KL below 1e-8 is rounding. Every run: "
    "[scmc.csv](scmc.csv)."
)


@dataclass(frozen=True, slots=True)
class Run:
    """One run. ``kl`` is that of the particles, ``points_kl`` that of the points in memory."""

    data: str
    memory: str
    size: int
    seed: int
    kl: float
    points_kl: float
    evaluations: int
    resamplings: int
    seconds: float


@dataclass(frozen=True, slots=True)
class Median:
    """Medians over the seeds of one memory."""

    memory: str
    size: int
    kl: float
    points_kl: float
    evaluations: float
    seconds: float


def keep_all(_: np.random.Generator, memory: Memory, __: Array64, ___: int) -> Memory:
    """Keep every row, as sequential Monte Carlo without compression does."""
    return memory


@dataclass(frozen=True, slots=True, eq=False)
class Stream:
    """Folded ``rows`` ``(n, w)`` in their order, with a model and its prior.

    ``exact`` is the full posterior. ``measure_points`` computes the divergence of the posterior of a memory from it.
    """

    name: str
    model: Likelihood
    prior: Density
    rows: Array64
    exact: Laplace
    measure_points: Callable[[Memory], float]
    particles: int = PARTICLES


def list_memories(sizes: Sequence[int]) -> Iterator[tuple[str, int, Compress]]:
    """List all rows first, then the coresets, then the reservoirs."""
    yield FULL, 0, keep_all
    yield from ((CORESET, size, compress_to_coreset(size)) for size in sizes)
    yield from ((RESERVOIR, size, compress_to_reservoir(size)) for size in sizes)


def make_streams(seed: int, rows: int) -> Iterator[Stream]:
    """Make the streams of one seed: logistic regression, an autoregressive model, and a normal distribution."""
    rng = np.random.default_rng(seed)
    yield make_case_stream(make_logistic_case(rng, rows))
    series = np.zeros(rows + 1)
    for place in range(rows):
        series[place + 1] = 0.8 * series[place] + rng.standard_normal()
    lagged = Rows(series[:-1, None], series[1:])
    yield make_case_stream(make_linear_regression("autoregressive", lagged, lagged))
    yield make_normal_stream(rng, rows)


def make_case_stream(case: Case) -> Stream:
    """Make the stream of a case, whose posteriors are Laplace approximations."""
    model, design, prior = case.problem
    x, y, _ = design.encode(case.source.gather(np.arange(case.source.slots)))
    exact = case.exact
    assert exact is not None

    def measure_points(memory: Memory) -> float:
        found = fit_laplace(model, memory.rows, memory.weights, prior, np.zeros(model.dimension))
        return compute_divergence(found, exact)

    return Stream(case.name, model, prior, np.asarray(model.fold(x.astype(np.float64), y)), exact, measure_points)


def make_normal_stream(rng: np.random.Generator, count: int) -> Stream:
    """Make correlated normal rows, whose mean and covariance are unknown; draws give the exact moments."""
    x = rng.standard_normal((count, WIDTH)) @ np.tril(rng.standard_normal((WIDTH, WIDTH))).T + rng.standard_normal(
        WIDTH
    )
    prior = NormalInverseWishart(np.zeros(WIDTH), 1.0, np.eye(WIDTH), WIDTH + 2.0)
    exact = prior.update(x, np.ones(count))

    def measure_points(memory: Memory) -> float:
        return prior.update(memory.rows[:, 1 : 1 + WIDTH], memory.weights).compute_divergence(exact)

    draws = exact.sample(rng, EXACT_DRAWS)
    moments = fit_normal(draws, np.full(EXACT_DRAWS, 1 / EXACT_DRAWS))
    return Stream(
        "normal, unknown covariance",
        NormalRows(WIDTH),
        prior,
        fold_rows(x),
        moments,
        measure_points,
        MORE_PARTICLES,
    )


def make_logistic_case(rng: np.random.Generator, rows: int) -> Case:
    """Make the first rows of census income, or generated rows without its files."""
    try:
        (x, y), _ = load_adult10()
    except MissingData:
        x, truth = rng.standard_normal((rows, 10)), rng.standard_normal(11)
        y = (rng.random(rows) < expit(x @ truth[:-1] + truth[-1])).astype(np.float64)
        return make_logistic("logistic, generated", Rows(x, y), bound=16.0)
    return make_logistic("logistic, adult10", Rows(x[:rows], y[:rows]), bound=16.0)


def measure(stream: Stream, seed: int, sizes: Sequence[int]) -> Iterator[Run]:
    """Measure every memory on one stream."""
    for memory, size, compress in list_memories(sizes):
        rng, start = np.random.default_rng(seed), time.process_time()
        state = run_filter(Filter(stream.model, stream.prior, compress, MOVES), stream.rows, rng, stream.particles)
        seconds = time.process_time() - start
        yield Run(
            data=stream.name,
            memory=memory,
            size=size or len(stream.rows),
            seed=seed,
            kl=compute_divergence(fit_normal(state.particles, normalise(state.log_weights)), stream.exact),
            points_kl=stream.measure_points(state.memory),
            evaluations=state.counts.evaluations,
            resamplings=state.counts.resamplings,
            seconds=seconds,
        )


def run_filter(chosen: Filter, rows: Array64, rng: np.random.Generator, particles: int) -> State:
    """Filter all rows, batch by batch, as the method ``scmc`` does."""
    state = chosen.init(rng, particles, rows.shape[1])
    for start in range(0, len(rows), BATCH):
        part = rows[start : start + BATCH]
        state = chosen.step(rng, state, np.arange(start, start + len(part)), part)
    return state


def fit_normal(particles: Array64, weights: Array64) -> Laplace:
    """Fit the normal distribution with the mean and covariance of weighted particles."""
    mean = weights @ particles
    deviations = particles - mean
    covariance = (deviations * weights[:, None]).T @ deviations
    return Laplace(mean, np.asarray(np.linalg.cholesky(np.linalg.inv(covariance))))


def measure_compression(size: int = 200, new: int = BATCH, repeats: int = 20) -> tuple[float, float]:
    """Measure milliseconds of one compression from ``size + new`` rows: from the rows in memory, and from no rows."""
    case = make_logistic_case(np.random.default_rng(0), size + new)
    model, design, prior = case.problem
    x, y, _ = design.encode(case.source.gather(np.arange(size + new)))
    draws = prior.sample(np.random.default_rng(1), PARTICLES) * 0.1
    potentials = np.asarray(model.log_likelihood(model.fold(x.astype(np.float64), y), draws))
    memory = Memory(np.arange(size + new), np.zeros((size + new, 1)), np.ones(size + new), potentials)
    even = np.full(PARTICLES, 1 / PARTICLES)
    compress = compress_to_coreset(size)
    centred = (potentials - potentials.mean(axis=1, keepdims=True)) / np.sqrt(PARTICLES)
    warm, cold = list[float](), list[float]()
    for _ in range(repeats):
        start = time.process_time()
        compress(np.random.default_rng(0), memory, even, new)
        warm.append(time.process_time() - start)
        start = time.process_time()
        omp(sum_vectors(centred.astype(np.float32)), size, Selection(np.zeros(0, np.int64), np.zeros(0)))
        cold.append(time.process_time() - start)
    return 1e3 * float(np.median(warm)), 1e3 * float(np.median(cold))


def summarise(runs: Sequence[Run]) -> list[Median]:
    """Compute medians over seeds, in the order of the runs."""
    groups: dict[tuple[str, int], list[Run]] = {}
    for run in runs:
        groups.setdefault((run.memory, run.size), []).append(run)

    def median(group: Sequence[Run], name: str) -> float:
        return float(np.median([getattr(run, name) for run in group]))

    names = ("kl", "points_kl", "evaluations", "seconds")
    return [Median(*key, *(median(group, name) for name in names)) for key, group in groups.items()]


def render_page(runs: Sequence[Run], times: tuple[float, float], circumstances: dict[str, str]) -> str:
    """Render the page."""
    by_data = {data: summarise([run for run in runs if run.data == data]) for data in list_data(runs)}
    return PAGE.format(
        text=wrap_paragraph(TEXT),
        circumstances=wrap_paragraph(describe(circumstances)),
        rows="\n".join(_render_row(data, each, medians[0]) for data, medians in by_data.items() for each in medians),
        verdicts="\n".join(_render_verdict(data, medians) for data, medians in by_data.items()),
        compression=format_three_digits(times[0]),
        cold=format_three_digits(times[1]),
    )


def list_data(runs: Sequence[Run]) -> list[str]:
    """List the names of the tables, in the order of the runs."""
    return list_distinct(run.data for run in runs)


def _render_row(data: str, each: Median, full: Median) -> str:
    three = format_three_digits
    points = "–" if each.memory == FULL else three(each.points_kl)
    return (
        f"| {data} | {each.memory} | {each.size:,} | {three(each.kl)} | {three(each.kl / full.kl)} | "
        f"{three(each.evaluations / 1e6)} | {each.evaluations / full.evaluations:.0%} | {points} | "
        f"{three(each.seconds)} |"
    )


def _render_verdict(data: str, medians: Sequence[Median]) -> str:
    full, three = medians[0], format_three_digits
    coreset, reservoir = (
        next((each for each in medians if (each.memory, each.size) == (memory, PROMISED)), full)
        for memory in (CORESET, RESERVOIR)
    )
    enough = next((each for each in medians if each.memory == CORESET and each.kl <= 2 * full.kl), full)
    return wrap_paragraph(
        f"- {data}: at M = {PROMISED}, the coreset has {three(coreset.kl / full.kl)} times the KL of all rows, with "
        f"{coreset.evaluations / full.evaluations:.0%} of the evaluations. The reservoir has "
        f"{three(reservoir.kl / coreset.kl)} times the KL of the coreset. Twice the KL of all rows needs M = "
        f"{enough.size:,} at most, with {enough.evaluations / full.evaluations:.0%} of the evaluations."
    )


def draw_figure(runs: Sequence[Run], path: Path) -> None:
    """Draw the divergence against the evaluations, with a panel for each table."""
    plt.rcParams.update({"font.size": 9, "axes.spines.top": False, "axes.spines.right": False})
    names = list_data(runs)
    figure, grid = plt.subplots(1, len(names), figsize=(4.1 * len(names), 3.6), squeeze=False, layout="constrained")
    for axes, data in zip(grid.flat, names, strict=True):
        medians = summarise([run for run in runs if run.data == data])
        for index, memory in enumerate((FULL, CORESET, RESERVOIR)):
            line = [each for each in medians if each.memory == memory]
            x, y = [each.evaluations / 1e6 for each in line], [max(each.kl, LEAST) for each in line]
            axes.plot(x, y, color=COLOURS[index], marker=MARKERS[index], ms=5, lw=1.5, label=memory)
            for each, at, height in zip(line, x, y, strict=True):
                axes.annotate(f"{each.size:,}", (at, height), xytext=(4, 4), textcoords="offset points", fontsize=7)
        axes.set(xscale="log", yscale="log", xlabel="likelihood evaluations (millions)", ylabel="KL (nats)")
        axes.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        axes.xaxis.set_minor_locator(NullLocator())
        axes.set_title(data, loc="left", fontsize=10)
        axes.grid(which="major", color="#e5e7eb", lw=0.6)
    figure.legend(*grid.flat[0].get_legend_handles_labels(), loc="outside lower center", ncols=3, frameon=False)
    figure.suptitle("Memories of a stream; numbers are points M", x=0.01, ha="left", weight="bold")
    figure.savefig(path, dpi=130)
    plt.close(figure)


def main() -> None:
    """Measures every memory, then writes runs, page and picture."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=PAGES / "scmc.csv", help="the CSV file")
    options = parser.parse_args()
    runs = list[Run]()
    for seed in range(SEEDS):
        for stream in make_streams(seed, ROWS):
            for run in measure(stream, seed, SIZES):
                print(f"{run.data}, {run.memory}, M = {run.size}, seed {seed}: KL {run.kl:.4g}", flush=True)
                runs.append(run)
    write_lines(options.out, runs)
    options.out.with_suffix(".md").write_text(render_page(runs, measure_compression(), describe_environment()))
    draw_figure(runs, options.out.with_suffix(".png"))


if __name__ == "__main__":
    main()
