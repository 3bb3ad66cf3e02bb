"""Writes ``docs/benchmarks/README.md`` from the CSV files beside it."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from benchmarks.environment import described
from benchmarks.experiment import Experiment
from benchmarks.records import read
from benchmarks.summaries import markdown, paragraph

INTRODUCTION: Final = """# Benchmarks

Written by `make papers`, `make private-table`, `make unseen` and `make scaling` from the CSV files beside it, one line
a run; edit the commands, not this page. `python -m benchmarks.papers --help` runs one experiment, or one method of it.

KL is that of the coreset's posterior to the full one, in nats, between Laplace approximations with full covariance
(exact for normal likelihoods), and is also given over the prior's. Held-out figures are posterior predictive: exact
for normal likelihoods, in the probit approximation (MacKay 1992) for logistic regression. Private methods run straight
on the core at δ = 1/N, as in the papers; the service refuses a δ so large. Times are processor time of one core,
without making rows; memory is what a run adds to a process that holds the table. Unless said otherwise, seeds change
the method's coins, and the data where they are generated for each seed; private noise comes from the operating system
and has no seed. Figures draw values below 1e-6, which are rounding, at 1e-6.
"""


def write(folder: Path, experiments: Sequence[Experiment]) -> Path:
    """A section for each experiment that has been run."""
    sections = [_section(folder, each) for each in experiments if (folder / f"{each.name}.csv").exists()]
    path = folder / "README.md"
    path.write_text("\n".join([INTRODUCTION, *_other_pages(folder, path), *sections]))
    return path


def _other_pages(folder: Path, page: Path) -> list[str]:
    """Links to what other commands have written here."""
    titles = {other.name: other.read_text().splitlines()[0].lstrip("# ") for other in sorted(folder.glob("*.md"))}
    links = [f"- [{title}]({name})\n" for name, title in titles.items() if name != page.name]
    return ["Other pages:\n\n" + "".join(links)] if links else []


def _section(folder: Path, experiment: Experiment) -> str:
    environment = json.loads((folder / f"{experiment.name}.json").read_text())
    name, tables = experiment.name, markdown(experiment, read(folder / f"{experiment.name}.csv"))
    head = f"## {experiment.title}\n\n{paragraph(experiment.text)}\n\n![{experiment.title}]({name}.png)\n"
    return f"{head}\nEvery run: [{name}.csv]({name}.csv). {described(environment)}\n\n{tables}"
