"""Medians and quartiles of runs, as tables in Markdown: no figure in a document is typed by hand."""

import math
import textwrap
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from benchmarks.experiment import AXES, EPSILON, Experiment, Quantity
from benchmarks.records import FINISHED, REFERENCE, Record

NO_NOISE = "no noise"
NOTHING = "–"
_WIDTH: Final = 120
_WORDS: Final = {3: "three", 18: "eighteen", 100: "a hundred"}
LINES: Final = (
    "dp-psvi-surrogate",
    "PSVI",
    "SparseVI",
    "GIGA, optimal",
    "GIGA, realistic",
    "uniform",
    "dp-psvi, clamped",
    "dp-psvi",
    "dp-vi",
    "dp-vi, published settings",
    "incremental PSVI",
    "Frank–Wolfe, optimal",
    "OMP, optimal",
)
"""The order of methods in every table and figure, whichever of them was measured last."""


@dataclass(frozen=True, slots=True)
class Summary:
    """Quartiles over seeds of one quantity; ``lower`` is ``upper`` for a reference."""

    lower: float
    median: float
    upper: float
    runs: int


def distinct(values: Iterable[str]) -> list[str]:
    """In order of appearance."""
    return list(dict.fromkeys(values))


def place_of(line: str) -> int:
    """Where ``line`` stands in :data:`LINES`, whatever its epsilon; -1 for references and others, which come first."""
    name = line.split(", ε", maxsplit=1)[0]
    return LINES.index(name) if name in LINES else -1


def lines(records: Iterable[Record]) -> list[str]:
    """The methods and references among ``records``, in order."""
    return sorted(distinct(record.method for record in records), key=place_of)


def chosen(records: Sequence[Record], **wanted: object) -> list[Record]:
    """The records that have all of these values."""
    return [record for record in records if all(getattr(record, name) == value for name, value in wanted.items())]


def summary(records: Sequence[Record], name: str) -> Summary | None:
    """Of the runs that have the quantity; None if there is none."""
    values = [float(getattr(record, name)) for record in records]
    values = [value for value in values if not math.isnan(value)]
    if not values:
        return None
    lower, median, upper = np.quantile(values, (0.25, 0.5, 0.75))
    return Summary(float(lower), float(median), float(upper), len(values))


def places(records: Sequence[Record], axis: str) -> list[float]:
    """The values of ``axis``, in order."""
    found = {float(getattr(record, axis)) for record in records}
    return sorted(value for value in found if not math.isnan(value))


def markdown(experiment: Experiment, records: Sequence[Record]) -> str:
    """A table for each data set and quantity that any run has."""
    parts = []
    for data in distinct(record.data for record in records):
        rows = chosen(records, data=data)
        parts.append(f"### {data}\n\n{_facts(rows)}\n")
        parts += [_table(rows, experiment.axis(data), each) for each in experiment.quantities if _known(rows, each)]
        if experiment.floor:
            parts.append(_over(rows, experiment.axis(data), experiment.floor))
    return "\n".join(parts)


def _facts(records: Sequence[Record]) -> str:
    runs = [record for record in records if record.outcome != REFERENCE]
    seeds = len({record.seed for record in runs})
    unfinished = sum(record.outcome != FINISHED for record in runs)
    sentence = f"{len(runs)} runs, {seeds} seeds: median (lower quartile – upper quartile)."
    full = next((record for record in runs if not math.isnan(record.full_log_likelihood)), None)
    if full is not None:
        accuracy = "" if math.isnan(full.full_accuracy) else f"accuracy {full.full_accuracy:.4f}, "
        sentence += f" Full posterior, held out: {accuracy}log-likelihood {full.full_log_likelihood:.4f}."
    return sentence + (f" {unfinished} did not finish." if unfinished else "")


def _known(records: Sequence[Record], quantity: Quantity) -> bool:
    return summary([record for record in records if record.outcome != REFERENCE], quantity.name) is not None


def _table(records: Sequence[Record], axis: str, quantity: Quantity) -> str:
    across = places(records, axis)
    head = [f"{quantity.label}, by {AXES[axis]}", *(place(axis, value) for value in across)]
    table = [head, ["---", *["---:"] * len(across)]]
    for line in lines(records):
        cells = [cell(chosen(records, method=line, **{axis: value}), quantity) for value in across]
        if any(text != NOTHING for text in cells):
            table.append([line, *cells])
    return "".join(f"| {' | '.join(row)} |\n" for row in table)


def _over(records: Sequence[Record], axis: str, floor: str) -> str:
    """Medians of KL over those of the reference ``floor``, by method."""
    floors = {value: summary(chosen(records, method=floor, **{axis: value}), "kl") for value in places(records, axis)}
    across = {value: found.median for value, found in floors.items() if found is not None}
    lines = [
        [f"median KL over the {floor}, by {AXES[axis]}", *(place(axis, value) for value in across)],
        ["---", *["---:"] * len(across)],
    ]
    for line in distinct(record.method for record in records if record.outcome != REFERENCE):
        found = [summary(chosen(records, method=line, **{axis: value}), "kl") for value in across]
        cells = [
            NOTHING if each is None else number(each.median / least)
            for each, least in zip(found, across.values(), strict=True)
        ]
        lines.append([line, *cells])
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def place(axis: str, value: float) -> str:
    """How a place on an axis is written."""
    if axis == EPSILON:
        return NO_NOISE if math.isinf(value) else f"{value:g}"
    return f"{value:,.0f}"


def cell(records: Sequence[Record], quantity: Quantity) -> str:
    """Quartiles, or why there are none."""
    found = summary(records, quantity.name)
    stopped = [record for record in records if record.outcome not in {FINISHED, REFERENCE}]
    if found is None:
        return stopped[0].outcome if stopped else NOTHING

    def shown(value: float) -> str:
        return number(value) if quantity.logarithmic else f"{value:.4f}"

    text = shown(found.median)
    if found.runs > 1:
        text += f" ({shown(found.lower)} – {shown(found.upper)})"
    return text + (f"; {len(stopped)} of {len(records)} not finished" if stopped else "")


def paragraph(text: str) -> str:
    """``text`` in lines as long as those of our pages."""
    return textwrap.fill(text, _WIDTH, break_on_hyphens=False)


def in_words(count: int) -> str:
    """As prose says it, where it would not say digits."""
    return _WORDS.get(count, f"{count:,}")


def number(value: float) -> str:
    """Three digits, zeros at the end included, and a comma at each thousand: to be read beside others."""
    if value == 0:
        return "0"
    if 0.001 <= abs(value) < 100:
        return f"{value:.{max(0, 2 - math.floor(math.log10(abs(value))))}f}"
    return f"{value:,.0f}" if 100 <= abs(value) < 1e7 else f"{value:.1e}"
