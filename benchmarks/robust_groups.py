"""The part about groups of ``make robust``: tables and picture of whole groups that methods choose."""

import math
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import matplotlib as mpl
import numpy as np

mpl.use("Agg")

import matplotlib.pyplot as plt

from benchmarks.figures import format_three_digits
from benchmarks.group_tables import GROUPED_BY
from benchmarks.plots import COLOURS, MARKERS
from benchmarks.robust_runs import SEPARATOR, Line

CHOSEN: Final = "beta-cores, groups"
_MOST: Final = 10
"""Groups of a run whose attributes are counted."""


def median(lines: Sequence[Line], name: str) -> float:
    """Compute the median of one figure of the runs."""
    return float(np.median([getattr(line, name) for line in lines]))


def group_lines(lines: Sequence[Line]) -> dict[tuple[float, str, int], list[Line]]:
    """Group the runs by share of wrong rows, choice and number of sets."""
    found: dict[tuple[float, str, int], list[Line]] = {}
    for line in lines:
        if line.part == "groups":
            found.setdefault((line.wrong, line.method, line.sets), []).append(line)
    return dict(sorted(found.items(), key=lambda item: (-item[0][0], *item[0][1:])))


def render_groups(lines: Sequence[Line]) -> str:
    """Render a row of the table for each setting."""
    rows = []
    for (wrong, choice, sets), runs in group_lines(lines).items():
        share = median(runs, "chosen")
        rows.append(
            f"| {wrong:.0%} | {choice} | {sets} | {runs[0].beta:g} | {median(runs, 'accuracy'):.4f} | "
            f"{'–' if math.isnan(share) else f'{share:.0%}'} | {median(runs, 'rows'):,.0f} | {len(runs)} | "
            f"{format_three_digits(median(runs, 'seconds'))} |"
        )
    return "\n".join(rows)


def render_attributes(lines: Sequence[Line]) -> str:
    """Render how often beta-cores choose each attribute on a table with outliers."""
    runs = [line for line in lines if (line.part, line.method, line.sets) == ("groups", CHOSEN, _MOST) and line.wrong]
    counts: Counter[tuple[str, str]] = Counter()
    for line in runs:
        for label in line.labels.split(SEPARATOR):
            counts.update((name, value) for name, _, value in (part.partition("=") for part in label.split(", ")))
    rows = []
    for name in GROUPED_BY:
        values = sorted(((count, value) for (column, value), count in counts.items() if column == name), reverse=True)
        rows.append(f"| {name} | {', '.join(f'{value} ({count})' for count, value in values)} |")
    return "\n".join(rows)


def draw_groups(lines: Sequence[Line], path: Path) -> None:
    """Draw accuracies by the number of sets and by that of points.

    The upper panels are of the table with outliers, and the lower ones of that without.
    """
    groups = group_lines(lines)
    shares = sorted({wrong for wrong, *_ in groups}, reverse=True)
    size = (9, 3.4 * len(shares))
    figure, panels = plt.subplots(len(shares), 2, figsize=size, squeeze=False, sharey=True, layout="constrained")
    for row, share in zip(panels, shares, strict=True):
        for place, choice in enumerate(dict.fromkeys(name for wrong, name, _ in groups if wrong == share)):
            runs = [found for (wrong, name, _), found in groups.items() if (wrong, name) == (share, choice)]
            accuracy = [median(found, "accuracy") for found in runs]
            style = {"marker": MARKERS[place], "color": COLOURS[place], "lw": 1.3}
            for panel, name in zip(row, ("sets", "rows"), strict=True):
                panel.plot([median(found, name) for found in runs], accuracy, label=choice, **style)
        row[0].set(xlabel="groups or batches", ylabel="accuracy on clean rows")
        row[1].set(xlabel="points", xscale="log")
        row[0].set_title(f"{share:.0%} outliers" if share else "no outliers", loc="left", fontsize=10)
    panels[0][0].legend(loc="lower right", fontsize=8)
    figure.savefig(path, dpi=110)
    plt.close(figure)
