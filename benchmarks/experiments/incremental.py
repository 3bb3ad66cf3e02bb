"""Incremental PSVI by rounds and by points (Bayesian Pseudocoresets, 2020, supplement, Fig. 8)."""

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np

from app.inference.core.plan import PlanRequest
from app.inference.methods.psvi.greedy import ALL, NEWEST, NONE, Built, iterate_rounds
from app.inference.post.laplace import fit_laplace
from app.inference.registry import find_method
from benchmarks.cases import Case
from benchmarks.environment import find_commit
from benchmarks.experiments.paper_tables import list_small, make_small
from benchmarks.figures import read_lines, write_lines
from benchmarks.plots import COLOURS, open_figure
from benchmarks.records import Record
from benchmarks.runs import Job, execute
from benchmarks.study import Study
from benchmarks.summaries import NOTHING, format_number, render_rows
from support.divergence import compute_divergence

ROUNDS, SEEDS, BATCH = 100, 3, 256
SHOWN: Final = (1, 2, 3, 4, 5, 7, 10, 15, 20, 30, 40, 50, 60, 70, 80, 90, 100)
IN_TABLE: Final = (2, 5, 10, 20, 50, 100)
SIZES: Final = (2, 5, 10, 20, 50)
OF_ONE_SIZE: Final = ", a run for each M"
"""Added to the label of a method whose runs end at M."""
Variant = tuple[str, Mapping[str, Any], slice, str]
"""Method, parameters, points that move, and label."""
GREEDY: Final[tuple[Variant, ...]] = (
    ("incremental-psvi", {}, ALL, "incremental PSVI"),
    ("incremental-psvi", {"moving": "newest"}, NEWEST, "incremental PSVI, newest point"),
    ("sparse-vi", {}, NONE, "SparseVI"),
)
OTHERS: Final = (("giga", {"weighting": "optimal"}, "GIGA, optimal"),)
_ENDED: Final = frozenset(label for *_, label in OTHERS)
"""Methods without rounds: each line is the end of a run."""
_STYLES: Final = {
    "incremental PSVI": (6, "-"),
    "incremental PSVI, newest point": (1, "-"),
    "SparseVI": (2, "-"),
    "GIGA, optimal": (3, "-"),
}


@dataclass(frozen=True, slots=True)
class Line:
    """A pseudocoreset during its construction.

    ``batch`` is the number of rows in each gradient, 0 for all. ``points`` are those with a weight. ``kl`` is in nats,
    and ``seconds`` of processor time are since the start.
    """

    data: str
    method: str
    batch: int
    seed: int
    round: int
    points: int
    kl: float
    seconds: float
    commit: str


def measure(path: Path, *, quick: bool) -> None:
    """Follow every method through its rounds."""
    lines = list[Line]()
    for case in map(make_small, list_small()[-1:] if quick else list_small()):
        for seed in range(1 if quick else SEEDS):
            for variant in GREEDY:
                for batch in (0, BATCH):
                    lines += _follow(case, variant, batch, seed, 4 if quick else ROUNDS)
            lines += _measure_sizes(case, seed, SIZES[:2] if quick else SIZES)
            for method, parameters, label in OTHERS:
                for size in SHOWN[:3] if quick else SHOWN:
                    lines.append(_convert(execute(Job(case, method, size, seed, parameters, label=label))))
        print(f"{case.name}: {len(lines)} lines", flush=True)
        write_lines(path, lines, Line)


def _measure_sizes(case: Case, seed: int, sizes: Sequence[int]) -> Iterator[Line]:
    """Yield the end of a run for each size. The unit of weights, N/M, follows the size."""
    for method, parameters, _, label in GREEDY:
        for size in sizes:
            yield _convert(execute(Job(case, method, size, seed, parameters, label=label + OF_ONE_SIZE)))


def _follow(case: Case, variant: Variant, batch: int, seed: int, rounds: int) -> Iterator[Line]:
    method, parameters, moving, label = variant
    chosen = {**parameters, **({"minibatch": batch} if batch else {})}
    plan = find_method(method).plan(PlanRequest(method, rounds, case.spec, chosen), case.public)
    start = time.process_time()
    spent = 0.0
    for done, built in enumerate(iterate_rounds(plan, case.public, case.source, np.random.default_rng(seed), moving)):
        spent += time.process_time() - start
        if done in SHOWN:
            count = int(np.count_nonzero(built.points.weights))
            yield Line(case.name, label, batch, seed, done, count, _compute_kl(case, built), spent, find_commit())
        start = time.process_time()


def _compute_kl(case: Case, built: Built) -> float:
    model, _, prior = built.problem
    points = built.points
    rows = model.fold(points.u, points.y)
    assert case.exact is not None
    return compute_divergence(fit_laplace(model, rows, points.weights, prior, np.zeros(model.dimension)), case.exact)


def _convert(record: Record) -> Line:
    return Line(
        record.data, record.method, 0, record.seed, record.size, record.size, record.kl, record.seconds, record.commit
    )


def draw(path: Path, picture: Path) -> None:
    """Draw medians and quartiles of the KL, one row of panels a table.

    Left: by rounds. Right: at the ends of runs for each M.
    """
    lines = read_lines(path, Line)
    names = list(dict.fromkeys(line.data for line in lines))
    with open_figure(picture, "Incremental construction", (10.5, 3.3 * len(names) + 0.7), (len(names), 2)) as (
        figure,
        panels,
    ):
        for index, name in enumerate(names):
            texts = ("round of a run with M = 100", "M of the run")
            for axes, suffix, text in zip(panels[2 * index :], ("", OF_ONE_SIZE), texts, strict=False):
                _draw_panel(axes, [line for line in lines if line.data == name], suffix)
                axes.set(xscale="log", yscale="log", xlabel=text, ylabel="KL to the full posterior (nats)")
                axes.set_title(name, loc="left", fontsize=10)
                axes.grid(which="major", color="#e5e7eb", lw=0.6)
        handles, labels = panels[0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside lower center", ncols=4, frameon=False)


def _draw_panel(axes: Any, lines: Sequence[Line], suffix: str) -> None:
    for label, (colour, dashes) in _STYLES.items():
        own = label if label in _ENDED else label + suffix
        for batch in (0, BATCH):
            runs = [line for line in lines if line.method == own and line.batch == batch]
            at = sorted({line.round for line in runs})
            values = [[line.kl for line in runs if line.round == place] for place in at]
            if not at:
                continue
            name = label if not batch else f"{label}, B = {BATCH}"
            style = {"color": COLOURS[colour], "ls": "--" if batch else dashes, "lw": 1.4, "label": name}
            axes.plot(at, [np.median(each) for each in values], **style)
            low, high = ([np.quantile(each, share) for each in values] for share in (0.25, 0.75))
            axes.fill_between(at, low, high, color=COLOURS[colour], alpha=0.15, lw=0)


def tabulate(path: Path) -> str:
    """Show medians by rounds, and the seconds of all rounds."""
    lines = read_lines(path, Line)
    rows = list[list[str]]()
    for name, label, batch in dict.fromkeys((line.data, line.method, line.batch) for line in lines):
        runs = [line for line in lines if (line.data, line.method, line.batch) == (name, label, batch)]
        cells = [_show_median([run.kl for run in runs if run.round == at]) for at in IN_TABLE]
        seconds = _show_median([run.seconds for run in runs if run.round == ROUNDS])
        rows.append([name, label if not batch else f"{label}, B = {batch}", *cells, seconds])
    return render_rows(["data", "median KL (nats), by round", *map(str, IN_TABLE), f"seconds of {ROUNDS}"], rows)


def _show_median(values: Sequence[float]) -> str:
    return format_number(float(np.median(values))) if values else NOTHING


STUDY: Final = Study(
    "incremental",
    "Incremental construction",
    f"Tables as in the small logistic experiment, {ROUNDS} rounds of 100 steps each. *Newest point*: as in the paper, "
    "only the point that was added last moves. Otherwise all points move, which is the default. Dashed lines have "
    f"gradients on B = {BATCH} rows. A round may add no point. Left: by rounds of a run that ends at M = {ROUNDS}. The "
    "unit of weights is N/M, so after few rounds the weights are too small together. Right: the ends of runs for each "
    "M. Bands are quartiles.",
    measure,
    draw,
    tabulate,
)
