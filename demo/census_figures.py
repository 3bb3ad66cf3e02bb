"""Results of the census command, as a CSV file, a page and a table."""

import csv
import statistics
import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import astuple, dataclass, fields
from pathlib import Path
from typing import Final

from rich.table import Table

HEADINGS: Final = ("epsilon", "runs", "median gap", "worst gap", "median KL", "trusted", "seconds")
_PAGE: Final = """# Census income, all columns, through the HTTP API

Written by `make adult`. Releases of `{method}`, {size} points each: logistic regression on all 14 features (101 design
columns) under N(0, 1) priors, δ = {delta:g}. The *gap* compares the mean log-likelihood of the test rows: the value
under the posterior of the full table, minus the value under that of a release, in nats per row. KL is to the full
posterior, in nats. *Trusted* counts releases with `trusted: true`. *Seconds* are from the submission to the download,
on a shared core. Random numbers have no seed, so a repetition differs. Every release: [{name}.csv]({name}.csv).

{measured_on}

{table}
"""


@dataclass(frozen=True, slots=True)
class Result:
    """One release.

    ``gap`` is the full posterior's mean held-out log-likelihood less that of the release, in nats.
    """

    epsilon: float
    run: int
    gap: float
    log_likelihood: float
    kl: float
    trusted: bool
    seconds: float


def write_csv(path: Path, results: Sequence[Result]) -> None:
    """Writes one line for each release."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", newline="") as stream:
        writer = csv.writer(stream)
        writer.writerow([field.name for field in fields(Result)])
        for result in results:
            writer.writerow([f"{value:.6g}" if isinstance(value, float) else value for value in astuple(result)])


def write_page(
    path: Path, method: str, size: int, delta: float, results: Sequence[Result], *, measured_on: str
) -> None:
    """Writes the table of :func:`summarize` as a page. ``measured_on`` is a sentence about the machine."""
    rows = [HEADINGS, tuple("---:" for _ in HEADINGS), *_figures(results)]
    table = "\n".join(f"| {' | '.join(row)} |" for row in rows)
    text = textwrap.fill(measured_on, 120, break_on_hyphens=False)
    path.write_text(_PAGE.format(method=method, size=size, delta=delta, name=path.stem, measured_on=text, table=table))


def summarize(results: Sequence[Result]) -> Table:
    """A table of medians and worst values for each epsilon."""
    table = Table(*HEADINGS, title="Held-out log-likelihood per row that a release loses to the full table")
    for row in _figures(results):
        table.add_row(*row)
    return table


def _figures(results: Sequence[Result]) -> Iterator[tuple[str, ...]]:
    for epsilon in sorted({result.epsilon for result in results}, reverse=True):
        selected = [result for result in results if result.epsilon == epsilon]
        gaps, kls = [result.gap for result in selected], [result.kl for result in selected]
        seconds = statistics.median(result.seconds for result in selected)
        trusted = sum(result.trusted for result in selected)
        figures = (f"{statistics.median(gaps):.4f}", f"{max(gaps):.4f}", f"{statistics.median(kls):.0f}")
        yield f"{epsilon:g}", str(len(selected)), *figures, str(trusted), f"{seconds:.1f}"
