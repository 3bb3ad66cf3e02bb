"""Census income with all its columns through the HTTP API: ``make adult``.

Starts a house on the loopback address, uploads the training rows, buys releases from one account, fits each with the
SDK, and sets its predictions for the test rows against those of the full table's posterior, which is computed here from
the training file and never leaves. Coins cannot be seeded: every run differs.
"""

import argparse
import csv
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import astuple, dataclass, fields
from pathlib import Path
from typing import Final

import httpx
import numpy as np
from corevault import Client, Gaussian, Pseudocoreset, logistic_laplace
from corevault.resources.jobs import DEFAULT_METHOD
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table

from demo import census, owner
from demo.failure import DemoFailed
from demo.server import Server, running_server
from demo.table import Tables

EPSILONS: Final = (1.0, 0.2)
BUDGET, DELTA, SIZE = 8.0, 1e-6, 150
RESULTS: Final = Path("docs") / "benchmarks" / "adult-http.csv"
HEADINGS: Final = ("epsilon", "runs", "median gap", "worst gap", "median KL", "trusted", "seconds")
_LEAST_PROBABILITY = 1e-12
_JOB_SECONDS = 600.0

Array = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Result:
    """One release. ``gap`` is what the full posterior's mean held-out log-likelihood exceeds this one's by, in nats."""

    epsilon: float
    run: int
    gap: float
    log_likelihood: float
    kl: float
    trusted: bool
    seconds: float


def main() -> int:
    """Runs everything; 1 where a file is missing or a step failed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=20, help="releases for each epsilon")
    parser.add_argument("--method", default=DEFAULT_METHOD)
    parser.add_argument("--results", type=Path, default=RESULTS, help="the CSV file to write")
    chosen, console = parser.parse_args(), Console(width=110)
    if gone := census.missing():
        console.print("This needs files that are not part of the repository: " + ", ".join(map(str, gone)))
        return 1
    try:
        with tempfile.TemporaryDirectory(prefix="corevault-adult-") as folder, running_server(Path(folder)) as server:
            found = list(measured(console, server, chosen.method, chosen.runs))
    except DemoFailed as error:
        console.print(f"Failed: {error}", markup=False)
        return 1
    write(chosen.results, found)
    page(chosen.results.with_suffix(".md"), chosen.method, found)
    console.print(summary(found), f"Each release is in {chosen.results}", sep="\n")
    return 0


def measured(console: Console, server: Server, method: str, runs: int) -> Iterator[Result]:
    """Buys and judges ``runs`` releases for each epsilon."""
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
                core, seconds = bought(client, dataset.id, method, epsilon)
                judge = judge or Judge(core, tables)
                yield (found := judge.result(core, epsilon, run, seconds))
                console.print(f"epsilon {epsilon:g}, run {run + 1}: gap {found.gap:.4f}, KL {found.kl:.0f}")


def bought(client: Client, dataset_id: str, method: str, epsilon: float) -> tuple[Pseudocoreset, float]:
    """A release and the seconds from the order to the download."""
    started = time.monotonic()
    job = client.jobs.submit(dataset_id, census.MODEL, size=SIZE, method=method, epsilon=epsilon)
    release_id = client.jobs.wait(job, timeout_seconds=_JOB_SECONDS).release_id
    return client.releases.download(str(release_id)), time.monotonic() - started


class Judge:
    """What the full table says, and the test rows; ``core`` names the design."""

    def __init__(self, core: Pseudocoreset, tables: Tables) -> None:
        target = tables.train[census.TARGET].to_numpy(dtype=np.float64)
        x = core.design_matrix(tables.train)
        self._full = logistic_laplace(x, target, prior_scale=core.prior_scale, names=core.columns)
        self._x = core.design_matrix(tables.held_out)
        self._seen = tables.held_out[census.TARGET].to_numpy(dtype=np.float64) == 1
        self._best = self._log_likelihood(self._full)

    def result(self, core: Pseudocoreset, epsilon: float, run: int, seconds: float) -> Result:
        """How far the release's posterior is from the full one."""
        belief = core.laplace()
        reached = self._log_likelihood(belief)
        trusted = bool((core.release.diagnostics or {}).get("trusted", False))
        return Result(epsilon, run, self._best - reached, reached, belief.kl(self._full), trusted, seconds)

    def _log_likelihood(self, belief: Gaussian) -> float:
        probability = belief.predict_probability(self._x)
        said = np.where(self._seen, probability, 1 - probability)
        return float(np.mean(np.log(np.maximum(said, _LEAST_PROBABILITY))))


def write(path: Path, found: list[Result]) -> None:
    """One line a release."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", newline="") as stream:
        writer = csv.writer(stream)
        writer.writerow([field.name for field in fields(Result)])
        for result in found:
            writer.writerow([f"{value:.6g}" if isinstance(value, float) else value for value in astuple(result)])


def page(path: Path, method: str, found: list[Result]) -> None:
    """The same as :func:`summary`, to be read beside the CSV file."""
    rows = [HEADINGS, tuple("---:" for _ in HEADINGS), *_figures(found)]
    table = "\n".join(f"| {' | '.join(row)} |" for row in rows)
    path.write_text(
        f"# Census income, all columns, through the HTTP API\n\nWritten by `make adult`. Releases of `{method}`, {SIZE} "
        f"points each, logistic regression on {len(census.SCHEMA.names) - 1} declared columns in {census.SLOTS:,} slots, "
        f"δ = {DELTA:g}. The gap is what the full table's posterior exceeds a release's by in mean log-likelihood of the "
        f"test rows, in nats a row; KL is to the full posterior, in nats; trusted counts releases that trust themselves; "
        f"seconds run from the order to the download.\nCoins cannot be seeded, so a repetition differs. Every release: "
        f"[{path.stem}.csv]({path.stem}.csv).\n\n{table}\n"
    )


def summary(found: list[Result]) -> Table:
    """Median and worst, for each epsilon."""
    table = Table(*HEADINGS, title="Held-out log-likelihood per row that a release loses to the full table")
    for row in _figures(found):
        table.add_row(*row)
    return table


def _figures(found: list[Result]) -> Iterator[tuple[str, ...]]:
    for epsilon in EPSILONS:
        chosen = [result for result in found if result.epsilon == epsilon]
        gaps, kls = [result.gap for result in chosen], [result.kl for result in chosen]
        seconds = statistics.median(result.seconds for result in chosen)
        trusted = sum(result.trusted for result in chosen)
        figures = (f"{statistics.median(gaps):.4f}", f"{max(gaps):.4f}", f"{statistics.median(kls):.0f}")
        yield f"{epsilon:g}", str(len(chosen)), *figures, str(trusted), f"{seconds:.1f}"


def _client(server: Server, key: str) -> Client:
    return Client(server.base_url, key, transport=httpx.HTTPTransport())


if __name__ == "__main__":
    sys.exit(main())
