"""The experiments of the papers and of this project: ``python -m benchmarks.papers NAME...``.

Each run is a line of ``docs/benchmarks/NAME.csv``. Figures and tables depend on these files only, so ``--render`` makes
them without a run. ``--only`` measures one method again, and keeps the lines of the others. ``--resume`` continues
experiments that were stopped. ``--quick`` runs a few small cells into a temporary folder, as a check of the command.
"""

import os

os.environ |= {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}

import argparse
import sys
import tempfile
from pathlib import Path
from typing import Final

from benchmarks import papers_page, readme
from benchmarks.adult import MissingData
from benchmarks.environment import PAGES, write_environment
from benchmarks.experiment import Experiment
from benchmarks.experiments import (
    bound,
    composition,
    cpu_time,
    gaussian_mean,
    incremental,
    influence,
    linear_regression,
    logistic,
    other_residuals,
    outliers,
    privacy_sweep,
    private_sizes,
    private_table,
    progression,
    projections,
    psvi_iterations,
    robust_logistic,
    scaling,
    unseen,
)
from benchmarks.plots import draw
from benchmarks.records import REFERENCE, Record, format_text, open_sink, read, read_stopped
from benchmarks.runs import Job, execute
from benchmarks.study import Study
from benchmarks.tables.real import MissingPackage

EXPERIMENTS: Final = (
    gaussian_mean.EXPERIMENT,
    linear_regression.EXPERIMENT,
    projections.EXPERIMENT,
    logistic.SMALL_EXPERIMENT,
    logistic.LARGE_EXPERIMENT,
    psvi_iterations.EXPERIMENT,
    privacy_sweep.EXPERIMENT,
    private_sizes.EXPERIMENT,
    outliers.EXPERIMENT,
    robust_logistic.EXPERIMENT,
    private_table.EXPERIMENT,
    other_residuals.EXPERIMENT,
    unseen.EXPERIMENT,
    scaling.EXPERIMENT,
)
STUDIES: Final = (
    influence.STUDY,
    composition.STUDY,
    progression.STUDY,
    bound.STUDY,
    incremental.STUDY,
    cpu_time.STUDY,
    outliers.STUDY,
)
PAPERS: Final = (
    *(
        "influence",
        "composition",
        "progression",
        "bound",
        "gaussian-mean",
        "linear-regression",
        "projections",
        "logistic-small",
        "incremental",
    ),
    *("logistic-large", "psvi-iterations", "privacy-sweep", "private-sizes"),
    *("outliers", "outlier-points", "robust-logistic"),
)
"""The experiments and studies of the papers, in the order of their figures."""


def measure(experiment: Experiment, folder: Path, *, quick: bool, only: str | None, resume: bool = False) -> None:
    """Runs an experiment and writes each line at once.

    With ``only``, keeps the lines of other methods. With ``resume``, keeps the lines of a stopped run.
    """
    path = folder / f"{experiment.name}.csv"
    old = [record for record in read(path) if record.method != only] if only and path.exists() else []
    old += read_stopped(path) if resume else []
    old = [record for record in old if record.outcome != REFERENCE]
    done = {_name_run(record) for record in old if record.method != only} if resume else set()
    with open_sink(path, old) as sink:
        for each in experiment.work(quick):
            if isinstance(each, Record):
                sink(each)
            elif only in {None, each.label or each.method} and _name_job(each) not in done:
                sink(_execute(each))
    write_environment(folder / f"{experiment.name}.json", only)


_Run = tuple[str, str, int, str, int]


def _name_run(record: Record) -> _Run:
    return record.data, record.method, record.size, format_text(record.epsilon), record.seed


def _name_job(job: Job) -> _Run:
    return job.case.name, job.label or job.method, job.size, format_text(job.epsilon), job.seed


def _execute(job: Job) -> Record:
    record = execute(job)
    print(
        f"{record.data}, {record.method}, M = {record.size}, ε = {record.epsilon:g}, seed {record.seed}: "
        f"KL {record.kl:.4g}, {record.seconds:.2f} s, {record.peak_mib:.0f} MiB, {record.outcome}",
        flush=True,
    )
    return record


def render(folder: Path) -> None:
    """Writes the figure of every experiment with runs, and the page of tables."""
    for experiment in EXPERIMENTS:
        if (folder / f"{experiment.name}.csv").exists():
            draw(experiment, read(folder / f"{experiment.name}.csv"), folder / f"{experiment.name}.png")
    for study in STUDIES:
        if all((folder / f"{name}.csv").exists() for name in study.files):
            study.draw(folder / f"{study.name}.csv", folder / f"{study.name}.png")
    print(readme.write(folder, EXPERIMENTS, STUDIES))
    print(papers_page.write(folder, (folder.parent if folder == PAGES else folder) / "papers.md"))


def main() -> int:
    """Runs the named experiments, then writes figures and tables."""
    names = [each.name for each in (*EXPERIMENTS, *STUDIES) if not isinstance(each, Study) or each.measure]
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(names)}; papers: all of the papers")
    parser.add_argument("--quick", action="store_true", help="a few small cells, into a temporary folder")
    parser.add_argument("--only", metavar="METHOD", help="runs of this method alone, by its name in the tables")
    parser.add_argument("--resume", action="store_true", help="keep the runs of a stopped experiment")
    parser.add_argument("--render", action="store_true", help="write figures and tables of the existing runs")
    arguments = parser.parse_args()
    if arguments.names == ["papers"]:
        arguments.names = list(PAPERS)
    if not set(arguments.names) <= set(names) or bool(arguments.names) == arguments.render:
        parser.error(f"name experiments of {', '.join(names)}, or --render alone")
    folder = Path(tempfile.mkdtemp(prefix="corevault-benchmarks-")) if arguments.quick else PAGES
    failed = False
    try:
        for experiment in (each for each in EXPERIMENTS if each.name in arguments.names):
            measure(experiment, folder, quick=arguments.quick, only=arguments.only, resume=arguments.resume)
        for study in (each for each in STUDIES if each.name in arguments.names):
            assert study.measure is not None
            study.measure(folder / f"{study.name}.csv", quick=arguments.quick)
            write_environment(folder / f"{study.name}.json")
    except (MissingData, MissingPackage) as missing:
        print(missing, file=sys.stderr)
        failed = True
    render(folder)
    return int(failed)


if __name__ == "__main__":
    raise SystemExit(main())
