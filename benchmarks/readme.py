"""Writes ``docs/benchmarks/README.md`` from the CSV files in the same folder."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from benchmarks.environment import describe
from benchmarks.experiment import Experiment
from benchmarks.records import read
from benchmarks.study import Study
from benchmarks.summaries import render_tables, wrap_paragraph
from benchmarks.targets import render_targets

INTRODUCTION: Final = """# Benchmarks

Written by `make papers`, `make private-table`, `make other-residuals`, `make unseen` and `make scaling`. Edit the
commands, not this page. Each table shows medians over seeds. Its CSV file has every run, with accuracy and
log-likelihood on held-out rows, processor time and memory. `python -m benchmarks.papers --help` shows how to run one
experiment, or one method of it.

- KL is from the posterior of the coreset to the full posterior, in nats. Both are Laplace approximations with full
  covariance; these are exact for normal likelihoods.
- Private methods run without the service, at δ = 1/N as in the papers. The service refuses such a large δ.
- A seed decides the random numbers of the method, and the data if they are generated. Private noise has no seed.
- Pictures show values below 1e-6 at 1e-6; such values are rounding errors.
- GIGA, Frank-Wolfe and OMP use vectors of log-likelihoods at draws of parameters. *Optimal*: the draws are from the
  full posterior. *Realistic*: they are from a guess between the prior and the full posterior.
- N is the number of rows, D of parameters, M of points and T of iterations. B is the size of a batch.
- Pages state the commit of their measurements, except the page about a table that does not fit into memory. Results of
  `dp-psvi-surrogate` before commit 4753d8e4cb (2026-11-26) are of its first engine, which is deleted
  ([ADR 46](../adr/0046-one-belief-of-the-rows.md)). Results of `dp-psvi-surrogate:{"version": 2}` are of an early form
  of the present engine.
- Results of `make unseen` and `make adult` were of the first engine. They are removed until these commands run
  again.
"""


def write(folder: Path, experiments: Sequence[Experiment], studies: Sequence[Study] = ()) -> Path:
    """Writes a section for each experiment and study that has been run."""
    sections = [_section(folder, each) for each in experiments if (folder / f"{each.name}.csv").exists()]
    sections += [
        _describe_study(folder, each)
        for each in studies
        if all((folder / f"{name}.csv").exists() for name in each.files)
    ]
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
    name, records = experiment.name, read(folder / f"{experiment.name}.csv")
    parts = [render_targets(experiment, records), render_tables(experiment, records)]
    body = "\n".join(part for part in parts if part)
    head = f"## {experiment.title}\n\n{wrap_paragraph(experiment.text)}\n\n![{experiment.title}]({name}.png)\n"
    return f"{head}\nEvery run: [{name}.csv]({name}.csv). {describe(environment)}\n\n{body}"


def _describe_study(folder: Path, study: Study) -> str:
    name = study.name
    links = ", ".join(f"[{each}.csv]({each}.csv)" for each in study.files)
    head = f"## {study.title}\n\n{wrap_paragraph(study.text)}\n\n![{study.title}]({name}.png)\n"
    file = folder / f"{name}.json"
    circumstances = f" {describe(json.loads(file.read_text()))}" if file.exists() else ""
    return f"{head}\nEvery run: {links}.{circumstances}\n\n{study.tabulate(folder / f'{name}.csv')}"
