"""Census income with all its columns through the HTTP API: ``make adult``.

Starts a server on the loopback address, uploads the training rows and buys releases from one account. Fits each release
with the SDK, and compares its predictions for the test rows with predictions of the full table's posterior. The
latter is computed here from the training file and never uploaded. The server's noise has no seed, so every run differs.
"""

import argparse
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import httpx
import numpy as np
from corevault import Client, Gaussian, Pseudocoreset, logistic_laplace
from corevault.resources.jobs import DEFAULT_METHOD
from numpy.typing import NDArray
from rich.console import Console

from benchmarks.environment import describe, describe_environment
from demo import census, owner
from demo.census_figures import Result, summarize, write_csv, write_page
from demo.failure import DemoFailed
from demo.server import Server, run_server
from demo.table import Tables

EPSILONS: Final = (1.0, 0.2)
BUDGET, DELTA, SIZE = 8.0, 1e-6, 150
RESULTS: Final = Path("docs") / "benchmarks" / "adult-http.csv"
_LEAST_PROBABILITY = 1e-12
_JOB_SECONDS = 600.0

Array = NDArray[np.float64]


def main() -> int:
    """Runs the measurement; returns 1 if a file is missing or a step failed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=20, help="releases for each epsilon")
    parser.add_argument("--method", default=DEFAULT_METHOD)
    parser.add_argument("--results", type=Path, default=RESULTS, help="the CSV file to write")
    options, console = parser.parse_args(), Console(width=110)
    if missing := census.list_missing():
        console.print("These files are missing; they are not part of the repository: " + ", ".join(map(str, missing)))
        return 1
    try:
        with tempfile.TemporaryDirectory(prefix="corevault-adult-") as folder, run_server(Path(folder)) as server:
            results = list(measure(console, server, options.method, options.runs))
    except DemoFailed as error:
        console.print(f"Failed: {error}", markup=False)
        return 1
    write_csv(options.results, results)
    page = options.results.with_suffix(".md")
    write_page(page, options.method, SIZE, DELTA, results, measured_on=describe(describe_environment()))
    console.print(summarize(results), f"Each release is in {options.results}", sep="\n")
    return 0


def measure(console: Console, server: Server, method: str, runs: int) -> Iterator[Result]:
    """Buys and measures ``runs`` releases for each epsilon."""
    tables = census.load()
    with _client(server, server.admin_key) as admin:
        key = owner.make_keys(admin).owner
    with _client(server, key) as client:
        dataset = client.datasets.create("adult", census.SCHEMA, slots=census.SLOTS, epsilon=BUDGET, delta=DELTA)
        client.datasets.upload(dataset.id, tables.train)
        client.datasets.wait_until_ready(dataset.id)
        judge: Judge | None = None
        for epsilon in EPSILONS:
            for run in range(runs):
                core, seconds = buy(client, dataset.id, method, epsilon)
                judge = judge or Judge(core, tables)
                yield (result := judge.measure(core, epsilon, run, seconds))
                console.print(f"epsilon {epsilon:g}, run {run + 1}: gap {result.gap:.4f}, KL {result.kl:.0f}")


def buy(client: Client, dataset_id: str, method: str, epsilon: float) -> tuple[Pseudocoreset, float]:
    """A release, and the seconds from its submission to its download."""
    started = time.monotonic()
    job = client.jobs.submit(dataset_id, census.MODEL, size=SIZE, method=method, epsilon=epsilon)
    release_id = client.jobs.wait(job, timeout_seconds=_JOB_SECONDS).release_id
    return client.releases.download(str(release_id)), time.monotonic() - started


class Judge:
    """The full table's posterior and the test rows, in the design of ``core``."""

    def __init__(self, core: Pseudocoreset, tables: Tables) -> None:
        target = tables.train[census.TARGET].to_numpy(dtype=np.float64)
        x = core.design_matrix(tables.train)
        self._full = logistic_laplace(x, target, prior_scale=core.prior_scale, names=core.columns)
        self._x = core.design_matrix(tables.held_out)
        self._is_positive = tables.held_out[census.TARGET].to_numpy(dtype=np.float64) == 1
        self._best = self._log_likelihood(self._full)

    def measure(self, core: Pseudocoreset, epsilon: float, run: int, seconds: float) -> Result:
        """The distance of the release's posterior from the full table's."""
        belief = core.laplace(noise=False)  # so that KL and gap compare the points alone with the full table
        log_likelihood = self._log_likelihood(belief)
        trusted = bool((core.release.diagnostics or {}).get("trusted", False))
        return Result(
            epsilon, run, self._best - log_likelihood, log_likelihood, belief.kl(self._full), trusted, seconds
        )

    def _log_likelihood(self, belief: Gaussian) -> float:
        probability = belief.predict_probability(self._x)
        of_label = np.where(self._is_positive, probability, 1 - probability)
        return float(np.mean(np.log(np.maximum(of_label, _LEAST_PROBABILITY))))


def _client(server: Server, key: str) -> Client:
    return Client(server.base_url, key, transport=httpx.HTTPTransport())


if __name__ == "__main__":
    sys.exit(main())
