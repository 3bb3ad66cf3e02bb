"""What the census command measured, as a CSV file, as a page and as a table."""

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
columns) under N(0, 1) priors, δ = {delta:g}. The gap is what the full table's posterior exceeds a release's by in mean
log-likelihood of the test rows, in nats a row; KL is to the full posterior, in nats; trusted counts releases that trust
themselves; seconds run from the order to the download, on a shared core. Coins cannot be seeded, so a repetition
differs. Every release: [{name}.csv]({name}.csv).

{measured_on}

{table}
"""


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


def write(path: Path, found: Sequence[Result]) -> None:
    """One line a release."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", newline="") as stream:
        writer = csv.writer(stream)
        writer.writerow([field.name for field in fields(Result)])
        for result in found:
            writer.writerow([f"{value:.6g}" if isinstance(value, float) else value for value in astuple(result)])


def page(path: Path, method: str, size: int, delta: float, found: Sequence[Result], *, measured_on: str) -> None:
    """The same as :func:`summary`, to be read beside the CSV file; ``measured_on`` is a sentence."""
    rows = [HEADINGS, tuple("---:" for _ in HEADINGS), *_figures(found)]
    table = "\n".join(f"| {' | '.join(row)} |" for row in rows)
    text = textwrap.fill(measured_on, 120, break_on_hyphens=False)
    path.write_text(_PAGE.format(method=method, size=size, delta=delta, name=path.stem, measured_on=text, table=table))


def summary(found: Sequence[Result]) -> Table:
    """Median and worst, for each epsilon."""
    table = Table(*HEADINGS, title="Held-out log-likelihood per row that a release loses to the full table")
    for row in _figures(found):
        table.add_row(*row)
    return table


def _figures(found: Sequence[Result]) -> Iterator[tuple[str, ...]]:
    for epsilon in sorted({result.epsilon for result in found}, reverse=True):
        chosen = [result for result in found if result.epsilon == epsilon]
        gaps, kls = [result.gap for result in chosen], [result.kl for result in chosen]
        seconds = statistics.median(result.seconds for result in chosen)
        trusted = sum(result.trusted for result in chosen)
        figures = (f"{statistics.median(gaps):.4f}", f"{max(gaps):.4f}", f"{statistics.median(kls):.0f}")
        yield f"{epsilon:g}", str(len(chosen)), *figures, str(trusted), f"{seconds:.1f}"
