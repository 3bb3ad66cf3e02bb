"""Writes ``docs/benchmarks/README.md`` from the CSV files in the same folder."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from benchmarks.environment import describe
from benchmarks.experiment import Experiment
from benchmarks.records import read
from benchmarks.summaries import render_tables, wrap_paragraph

INTRODUCTION: Final = """# Benchmarks

Written by `make papers`, `make private-table`, `make unseen` and `make scaling`. Edit the commands, not this page.
Each table shows medians over seeds; its CSV file has every run, with held-out accuracy and log-likelihood,
processor time and memory. `python -m benchmarks.papers --help` runs one experiment, or one method of it.

- KL is from the posterior of the coreset to the full posterior, in nats. Both are Laplace approximations with full
  covariance; these are exact for normal likelihoods.
- Private methods run on the core at δ = 1/N, as in the papers. The service refuses such a large δ.
- Seeds change the random numbers of the method, and the data where they are generated. Private noise has no seed.
- Figures draw values below 1e-6 at 1e-6; such values are rounding errors.
- Every page states its commit. Results of `dp-psvi-surrogate` before commit 4753d8e4cb (2026-11-26) are of its first
  engine, which is deleted ([ADR 46](../adr/0046-one-belief-of-the-rows.md)). A stated `{"version": 2}` means an early
  form of the present engine.
"""


def write(folder: Path, experiments: Sequence[Experiment]) -> Path:
    """Writes a section for each experiment that has been run."""
    sections = [_section(folder, each) for each in experiments if (folder / f"{each.name}.csv").exists()]
    path = folder / "README.md"
    path.write_text("\n".join([INTRODUCTION, *_other_pages(folder, path), *sections]))
    return path


def _other_pages(folder: Path, page: Path) -> list[str]:
    """Links to the pages that other commands write here."""
    titles = {other.name: other.read_text().splitlines()[0].lstrip("# ") for other in sorted(folder.glob("*.md"))}
    links = [f"- [{title}]({name})\n" for name, title in titles.items() if name != page.name]
    return ["Other pages:\n\n" + "".join(links)] if links else []


def _section(folder: Path, experiment: Experiment) -> str:
    environment = json.loads((folder / f"{experiment.name}.json").read_text())
    name, body = experiment.name, render_tables(experiment, read(folder / f"{experiment.name}.csv"))
    head = f"## {experiment.title}\n\n{wrap_paragraph(experiment.text)}\n\n![{experiment.title}]({name}.png)\n"
    return f"{head}\nEvery run: [{name}.csv]({name}.csv). {describe(environment)}\n\n{body}"
