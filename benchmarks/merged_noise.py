"""Whether merged releases state their noise truly: ``make merged-noise``.

Each table is dealt out to several datasets. A private release of each is made, and their posteriors are multiplied as
``corevault.merge`` does, and as ``corevault.combine`` does. The errors of the joint means are compared with statements
of their noise.
"""

import os

os.environ |= {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}

import argparse
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
from corevault import Gaussian
from corevault.combination import bound_noises
from scipy.special import expit

from app.inference.core.model import Array64
from benchmarks.adult import MissingData, load_adult10
from benchmarks.cases import Case, make_logistic
from benchmarks.designs import Rows, draw_bnd15
from benchmarks.environment import PAGES, describe, describe_environment
from benchmarks.figures import format_three_digits, write_lines
from benchmarks.measures import fit_posterior
from benchmarks.runs import Job, make_seeded_release
from benchmarks.summaries import list_distinct, wrap_paragraph

COLUMNS: Final = ("single", "independent", "dependent", "combined_independent", "combined_dependent")
METHOD, SIZE, EPSILON, BLOCKS, SEEDS = "dp-psvi-surrogate", 20, 1.0, 5, 10
PAGE: Final = """# Noise of merged releases

{text}

{circumstances}

| table | single | merged, independent | merged, any dependence | combined, independent | combined, any dependence |
| --- | ---: | ---: | ---: | ---: | ---: |
{rows}
"""
TEXT: Final = (
    f"Written by `make merged-noise`. Rows are dealt out to {BLOCKS} datasets. Each has a release of `{METHOD}` at "
    f"ε = {EPSILON:g}, with {SIZE} points. The error of a posterior's mean is its distance from the mean of the full "
    "posterior. The figure is the mean square of the error in its stated standard deviations, by parameter, over "
    f"{SEEDS} seeds. A true statement has at most 1. Rows of `generated` follow the model, and rows of the other "
    "tables do not. There, bounds may cause an error that is common to all datasets. It does not average out, so the "
    "sum of independent errors may state too little noise. *Merged*: `merge`, which multiplies posteriors. *Combined*: "
    "`combine`, which gives noisy releases less weight. Its mean moves away from the full posterior's mean also where "
    "weights differ, so its figure contains this difference. Every run: [merged-noise.csv](merged-noise.csv)."
)


@dataclass(frozen=True, slots=True)
class Run:
    """Mean squares of standardised errors in one run."""

    table: str
    seed: int
    single: float
    independent: float
    dependent: float
    combined_independent: float
    combined_dependent: float


def draw_tables() -> Iterator[tuple[str, float, Callable[[], Rows]]]:
    """List the tables: name, bound of columns, and rows."""
    yield "generated", 8.0, _draw_generated
    yield "bnd15", 1.0, draw_bnd15
    yield "adult10", 16.0, lambda: Rows(*load_adult10()[0])


def _draw_generated() -> Rows:
    rng = np.random.default_rng(1)
    x, truth = rng.standard_normal((30_000, 10)), 0.7 * rng.standard_normal(11)
    return Rows(x, (rng.random(len(x)) < expit(x @ truth[:-1] + truth[-1])).astype(np.float64))


def deal(name: str, rows: Rows, bound: float, blocks: int) -> tuple[Case, list[Case]]:
    """Deal out the rows to ``blocks`` datasets; the whole table first."""
    parts = [Rows(rows.x[block::blocks], rows.y[block::blocks]) for block in range(blocks)]
    cases = [make_logistic(f"{name}, part {block}", part, bound=bound) for block, part in enumerate(parts)]
    return make_logistic(name, rows, bound=bound), cases


def measure(whole: Case, parts: Sequence[Case], seed: int) -> Run:
    """Make one release of each part, and compare errors with statements."""
    assert whole.exact is not None
    d = len(whole.exact.mean)
    prior = whole.problem.prior.precision(np.zeros(d))
    precision, information = prior.copy(), np.zeros(d)
    moments, singles, fits, noises = list[Array64](), list[float](), list[Gaussian](), list[Array64]()
    for number, part in enumerate(parts):
        release = make_seeded_release(Job(part, METHOD, SIZE, seed * len(parts) + number, epsilon=EPSILON))
        assert release.doubt is not None
        assert part.exact is not None
        fit = fit_posterior(part, release)
        own = fit.factor @ fit.factor.T
        precision += own - prior
        information += own @ fit.mean
        moments.append(own @ release.doubt @ own)
        noises.append(release.doubt)
        fits.append(Gaussian(tuple(map(str, range(d))), fit.mean, np.asarray(np.linalg.inv(own), dtype=np.float64)))
        singles.append(_standardise(fit.mean - part.exact.mean, release.doubt))
    covariance = np.linalg.inv(precision)
    error = covariance @ information - whole.exact.mean
    sizes = np.sqrt([np.sum(covariance * moment) for moment in moments])
    sums = (sum(moments), sum(sizes.sum() / size * moment for size, moment in zip(sizes, moments, strict=True)))
    stated = [_standardise(error, covariance @ np.asarray(each) @ covariance) for each in sums]
    combined = [_combine(whole, prior, fits, each) for each in (noises, bound_noises(fits, noises))]
    return Run(whole.name, seed, float(np.mean(singles)), *stated, *combined)


def _combine(whole: Case, prior: Array64, fits: Sequence[Gaussian], noises: Sequence[Array64]) -> float:
    """Compare the error of the combined mean with its stated noise.

    With precision J of the combined posterior, its mean is ``J^-1 sum_k L_k S_k^-1 (P_k mean_k - pull)``. Here ``L`` is
    the likelihood's precision, and ``S = L + P noise P``. So noise adds ``J^-1 G J^-1`` to its covariance, where ``G``
    is the sum of ``L S^-1 P noise P S^-1 L``.
    """
    assert whole.exact is not None
    precision, noise, information = prior.copy(), np.zeros_like(prior), np.zeros(len(prior))
    for fit, own_noise in zip(fits, noises, strict=True):
        own = np.linalg.inv(fit.covariance)
        likelihood = own - prior
        moment = own @ own_noise @ own
        gain = np.linalg.solve(likelihood + moment, likelihood).T
        precision += gain @ likelihood
        information += gain @ (own @ fit.mean)
        noise += gain @ moment @ gain.T
    covariance = np.linalg.inv(precision)
    return _standardise(covariance @ information - whole.exact.mean, covariance @ noise @ covariance)


def _standardise(error: Array64, covariance: Array64) -> float:
    """Compute the mean square of an error in standard deviations."""
    return float(error @ np.linalg.solve(covariance, error)) / len(error)


def render_page(runs: Sequence[Run], circumstances: dict[str, str]) -> str:
    """Render the page."""
    rows = []
    for table in list_distinct(run.table for run in runs):
        mine = [run for run in runs if run.table == table]
        means = [np.mean([getattr(run, name) for run in mine]) for name in COLUMNS]
        rows.append(f"| {table} | {' | '.join(format_three_digits(float(mean)) for mean in means)} |")
    return PAGE.format(
        text=wrap_paragraph(TEXT), circumstances=wrap_paragraph(describe(circumstances)), rows="\n".join(rows)
    )


def main() -> None:
    """Measures every table, then writes runs and page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=PAGES / "merged-noise.csv", help="the CSV file")
    options = parser.parse_args()
    runs = list[Run]()
    for name, bound, draw in draw_tables():
        try:
            whole, parts = deal(name, draw(), bound, BLOCKS)
        except MissingData as missing:
            print(missing)
            continue
        for seed in range(SEEDS):
            runs.append(measure(whole, parts, seed))
            print(runs[-1], flush=True)
    write_lines(options.out, runs)
    options.out.with_suffix(".md").write_text(render_page(runs, describe_environment()))


if __name__ == "__main__":
    main()
