"""Quality by processor time (Bayesian Pseudocoresets, 2020, supplement, Fig. 7), from other experiments' runs."""

import math
from pathlib import Path
from typing import Final

import numpy as np

from benchmarks.plots import COLOURS, MARKERS, STYLES, add_legend, open_figure
from benchmarks.records import FINISHED, Record, read
from benchmarks.study import Study
from benchmarks.summaries import LINES, choose, find_place, format_number, list_distinct, list_lines, render_rows

SOURCES: Final = ("logistic-small", "logistic-large")
_LEAST: Final = 1e-6


def _read(path: Path) -> list[Record]:
    files = [path.parent / f"{name}.csv" for name in SOURCES]
    records = [record for file in files if file.exists() for record in read(file)]
    return [record for record in records if record.outcome == FINISHED and not math.isnan(record.kl)]


def _list_points(records: list[Record], line: str) -> list[tuple[int, float, float]]:
    """Size, median seconds and median KL."""
    sizes = sorted({record.size for record in choose(records, method=line)})
    runs = [(size, choose(records, method=line, size=size)) for size in sizes]
    return [
        (size, float(np.median([run.seconds for run in each])), float(np.median([run.kl for run in each])))
        for size, each in runs
    ]


def draw(path: Path, picture: Path) -> None:
    """Draw the median KL over the median time; each marker is a number of points."""
    records = _read(path)
    names = list_distinct(record.data for record in records)
    rows = -(-len(names) // 2)
    with open_figure(picture, "KL by processor time", (10.5, 3.4 * rows + 1.0), (rows, 2)) as (figure, panels):
        for axes, name in zip(panels, names, strict=False):
            of_data = choose(records, data=name)
            for line in list_lines(of_data):
                place = find_place(line)
                if place < 0:
                    continue
                index, dashes = STYLES[LINES[place]]
                _, seconds, kl = zip(*_list_points(of_data, line), strict=True)
                axes.plot(
                    seconds,
                    np.maximum(kl, _LEAST),
                    color=COLOURS[index % len(COLOURS)],
                    marker=MARKERS[index % len(MARKERS)],
                    ls=dashes,
                    ms=4,
                    lw=1.3,
                    label=line,
                )
            axes.set(xscale="log", yscale="log", xlabel="processor time (s)", ylabel="KL to the full posterior (nats)")
            axes.set_title(name, loc="left", fontsize=10)
            axes.grid(which="major", color="#e5e7eb", lw=0.6)
        for axes in panels[len(names) :]:
            axes.set_axis_off()
        add_legend(figure, panels)


def tabulate(path: Path) -> str:
    """Show seconds and KL at the largest number of points."""
    records, rows = _read(path), list[list[str]]()
    for name in list_distinct(record.data for record in records):
        of_data = choose(records, data=name)
        for line in list_lines(of_data):
            size, seconds, kl = _list_points(of_data, line)[-1]
            rows.append([name, line, str(size), format_number(seconds), format_number(kl)])
    return render_rows(["data", "method", "M", "median seconds", "median KL (nats)"], rows)


STUDY: Final = Study(
    "cpu-time",
    "Processor time",
    "The runs of both logistic experiments. Each marker is a number of points. Time is without that for reading rows.",
    None,
    draw,
    tabulate,
    SOURCES,
)
