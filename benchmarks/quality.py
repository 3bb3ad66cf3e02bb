"""Distance of DP-PSVI's posterior from the full one, at its defaults: ``make quality``.

KL between Laplace approximations, coreset against full data, in nats and as a share of the prior's; median of five
runs. Noise is rounded floating point, which has the same effect on quality as the discrete Gaussian and is faster.
"""

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace

import numpy as np
from rich.console import Console
from rich.table import Table
from scipy.special import expit

from app.inference.core.model import Array64
from benchmarks.adult import MissingData
from benchmarks.cases import Case, make_logistic
from benchmarks.designs import Rows
from benchmarks.experiments.paper_tables import make_small_rows
from benchmarks.measures import compute_prior_divergence, fit_posterior
from benchmarks.runs import Job, make_seeded_release
from benchmarks.sources import ArrayRows
from support.divergence import compute_divergence

METHOD, SIZE, RUNS = "dp-psvi", 50, 5
EPSILONS, DELTA = (0.3, 1.0, 2.0), 1e-6
SPARE_SLOTS = 1.02


def list_cases() -> Iterator[Case]:
    """Synthetic designs, plain and heavy-tailed, and a table that needs a data file."""
    rng = np.random.default_rng(0)
    for n, d in ((20_000, 9), (50_000, 30)):
        yield _case("normal", _draw_labels(rng, np.clip(rng.standard_normal((n, d)) / 3, -1, 1)))
    heavy = np.clip(rng.standard_t(2.5, (30_000, 12)) / 20, -1, 1)
    heavy[:, 8:] = np.where(rng.random((30_000, 4)) < (0.3, 0.1, 0.02, 0.005), 1.0, -1.0)
    yield _case("heavy-tailed", _draw_labels(rng, heavy))
    with suppress(MissingData):
        yield _case("phishing", make_small_rows("phishing")[0])


def _draw_labels(rng: np.random.Generator, x: Array64) -> Rows:
    theta = rng.standard_normal(x.shape[1]) * 2
    return Rows(x, (rng.random(len(x)) < expit(x @ theta - 0.5)).astype(np.float64))


def _case(name: str, rows: Rows) -> Case:
    """A case with columns within [-1, 1] and a few empty slots."""
    n, d = rows.x.shape
    case, slots = make_logistic(f"{name} {n:,} x {d}", rows, bound=1.0), int(n * SPARE_SLOTS)
    return replace(case, facts=replace(case.facts, slots=slots, delta=DELTA), source=ArrayRows(*rows, slots))


def measure_nats(case: Case, epsilon: float, seed: int) -> float:
    """KL from one private pseudocoreset's posterior to the full one."""
    assert case.exact is not None
    release = make_seeded_release(Job(case, METHOD, SIZE, seed, epsilon=epsilon))
    return compute_divergence(fit_posterior(case, release), case.exact)


def render_cells(case: Case) -> Iterator[str]:
    """The cells of a line of the table."""
    prior = compute_prior_divergence(case)
    yield from (case.name, f"{prior:.0f}")
    for epsilon in EPSILONS:
        values = [measure_nats(case, epsilon, seed) for seed in range(RUNS)]
        yield from (f"{np.median(values):.0f} ({max(values):.0f})", f"{np.median(values) / prior:.4f}")


def main() -> None:
    """Prints the table."""
    table = Table(title=f"KL to the full posterior, M={SIZE}, median (worst) of {RUNS}")
    table.add_column("data")
    table.add_column("prior", justify="right")
    for epsilon in EPSILONS:
        table.add_column(f"ε={epsilon:g}", justify="right")
        table.add_column("share", justify="right")
    for case in list_cases():
        table.add_row(*render_cells(case))
    Console(width=110).print(table)


if __name__ == "__main__":
    main()
