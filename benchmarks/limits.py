"""Figures of speed with limits: ``python -m benchmarks.limits``, part of ``make bench``.

Times are processor time of one core, the fastest of several runs. Rounding to the grid is included, but discrete noise
and generating rows are not. Other load changes the figures through caches and shared cores, so the page states the load
before the measurement.
"""

import os

os.environ |= {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}

import argparse
import statistics
import time
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Final

import numpy as np

from app.inference.core.plan import Mechanism
from app.inference.methods.psvi import psvi
from app.inference.private_zone.mechanisms import NoiseSource
from benchmarks.adult import MissingData
from benchmarks.cases import Case, make_gaussian_mean
from benchmarks.environment import describe, describe_environment
from benchmarks.experiments.paper_tables import make_large
from benchmarks.figures import Figure, format_three_digits, read_csv, write_csv
from benchmarks.queries import DRAWS, ROWS, WIDTH, generate, make_potentials, measure_fastest
from benchmarks.quotes import CASES, SURROGATE, dry_run, measure_milliseconds, price_target
from benchmarks.runs import Job, carry_out, make_plan
from benchmarks.sources import GeneratedRows, NoNoise, make_facts, make_spec
from benchmarks.speed import measure_products
from benchmarks.summaries import wrap_paragraph

REPEATS, FEW = 9, 5
PAGE: Final = """# Speed

Written by `make bench`: processor time of one core, the fastest of {few} to {repeats} runs. Rounding to the grid is
included, but discrete noise and generating rows are not. A run is from the plan to the release. Prices and dry runs are
of the default method, with 20 features: the median of {cases} new cases. The bare products show how fast the machine
was.

{table}
{environment}
"""


def measure_figures() -> Iterator[Figure]:
    """All figures. The census table needs its files."""
    rng = np.random.default_rng(0)
    query, rows = make_potentials(rng), generate(rng)
    label = f"potentials at {DRAWS} draws, {ROWS:,} rows x {WIDTH} columns"
    yield Figure(label, 1e3 * measure_fastest(lambda: query.sum(*rows, 1), REPEATS), "ms", "at most 60, aim 25")
    for batch, target in ((200, "at most 0.25, aim 0.10"), (2_000, "at most 0.6, aim 0.30")):
        table = Case("generated", make_facts(WIDTH - 1, ROWS), make_spec(WIDTH - 1), GeneratedRows(ROWS, WIDTH - 1))
        job = Job(table, "dp-psvi", 100, 0, mechanism=Mechanism(5.0, batch / ROWS, 500))
        yield Figure(f"dp-psvi, T = 500, M = 100, S = 100, batch {batch:,}", measure_least(job, REPEATS), "s", target)
    bare = min(measure_products(batch) for _ in range(FEW))
    yield Figure(f"bare matrix products of the run with batch {batch:,}", bare, "s")
    x = np.random.default_rng(1).standard_normal((1_000, 500))
    for steps, target in ((500, "at most 1.3"), (psvi.ITERATIONS.default, "")):
        mean = Job(make_gaussian_mean("d = 500", x, x[:1]), "psvi", 100, 0, {"iterations": steps})
        yield Figure(f"psvi, Gaussian mean, d = 500, M = 100, T = {steps:,}", measure_least(mean, FEW), "s", target)
    for name, target in (("synth100k", "at most 2, aim 1.0"), ("adult10", "at most 0.8, aim 0.4")):
        try:
            job = Job(make_large(name), "dp-psvi-surrogate", 100, 0, epsilon=1.0)
        except MissingData as missing:
            print(missing)
        else:
            yield Figure(f"dp-psvi-surrogate, {name}, M = 100, ε = 1", measure_least(job, FEW), "s", target)
    price_target(SURROGATE, CASES)  # loads the libraries
    for label, rate in (("all rows", 1.0), ("a third sampled", 0.3)):
        times = measure_milliseconds(partial(price_target, SURROGATE, sampling_rate=rate))
        yield Figure(f"price of a target epsilon, {label}", statistics.median(times), "ms", "at most 300")
    yield Figure("dry run of a quote", statistics.median(measure_milliseconds(partial(dry_run, SURROGATE))), "ms")


def measure_least(job: Job, repeats: int) -> float:
    """Seconds of the fastest of ``repeats`` runs of ``job``."""
    return min(measure_seconds(job, NoNoise()) for _ in range(repeats))


def measure_seconds(job: Job, noise: NoiseSource) -> float:
    """Processor time of one run, without gathering rows."""
    plan = make_plan(job)
    start = time.process_time()
    _, source_seconds = carry_out(job, plan, lambda _: None, noise)
    return time.process_time() - start - source_seconds


def render_page(results: Sequence[Figure], circumstances: Mapping[str, str]) -> str:
    """The figures as a page, with the environment of their measurement."""
    lines = ["| what | value | unit | limit |", "| --- | ---: | --- | --- |"]
    lines += [f"| {each.what} | {format_three_digits(each.value)} | {each.unit} | {each.target} |" for each in results]
    text = wrap_paragraph(describe(circumstances))
    return PAGE.format(few=FEW, repeats=REPEATS, cases=CASES, table="\n".join(lines) + "\n", environment=text)


def main() -> None:
    """Prints the page. With ``--csv`` also writes page and figures; with ``--render`` only the page of old figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--csv", type=Path, help="the CSV file to write; the page gets the suffix .md")
    parser.add_argument(
        "--render", type=Path, help="the CSV file of an earlier measurement, whose page is written again"
    )
    options, load = parser.parse_args(), os.getloadavg()[0]
    if options.render:
        options.render.with_suffix(".md").write_text(render_page(*read_csv(options.render)))
        return
    results = list(measure_figures())
    text = render_page(results, {**describe_environment(), "load before": f"{load:.1f}"})
    print(text)
    if options.csv:
        write_csv(options.csv, results, load)
        options.csv.with_suffix(".md").write_text(text)


if __name__ == "__main__":
    main()
