"""Medians of runs as tables in Markdown. No document has figures typed by hand."""

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
_MOST_PLACES: Final = 5
_WORDS: Final = {3: "three", 18: "eighteen", 100: "a hundred"}
LINES: Final = (
    "dp-psvi-surrogate",
    "PSVI",
    "PSVI, published steps",
    "PSVI, Algorithm 1",
    "SparseVI",
    "GIGA, optimal",
    "GIGA, realistic",
    "uniform",
    "dp-psvi, clamped",
    "dp-psvi, published settings",
    "dp-psvi",
    "dp-vi",
    "dp-vi, published settings",
    "incremental PSVI",
    "Frank–Wolfe, optimal",
    "OMP, optimal",
    "β-Cores",
    "β-Cores, β = 0.1",
    "β-Cores, β = 0.2",
    "β-Cores, β = 0.3",
    "β-Cores, β = 0.5",
    "β-Cores, β = 0.9",
)
"""The order of methods in every table and figure."""


@dataclass(frozen=True, slots=True)
class Summary:
    """Quartiles over seeds of one quantity; ``lower`` is ``upper`` for a reference."""

    lower: float
    median: float
    upper: float
    runs: int


def list_distinct(values: Iterable[str]) -> list[str]:
    """The distinct values, in order of appearance."""
    return list(dict.fromkeys(values))


def find_place(line: str) -> int:
    """The index of ``line`` in :data:`LINES`, without its epsilon; -1 for references and others, which come first."""
    name = line.split(", ε", maxsplit=1)[0]
    return LINES.index(name) if name in LINES else -1


def list_lines(records: Iterable[Record]) -> list[str]:
    """The methods and references among ``records``, in order."""
    return sorted(list_distinct(record.method for record in records), key=find_place)


def choose(records: Sequence[Record], **values: object) -> list[Record]:
    """The records with all of these values."""
    return [record for record in records if all(getattr(record, name) == value for name, value in values.items())]


def summarise(records: Sequence[Record], name: str) -> Summary | None:
    """The summary of the runs with the quantity; None without such a run."""
    values = [float(getattr(record, name)) for record in records]
    values = [value for value in values if not math.isnan(value)]
    if not values:
        return None
    lower, median, upper = np.quantile(values, (0.25, 0.5, 0.75))
    return Summary(float(lower), float(median), float(upper), len(values))


def list_places(records: Sequence[Record], axis: str) -> list[float]:
    """The values of ``axis``, in order."""
    values = {float(getattr(record, axis)) for record in records}
    return sorted(value for value in values if not math.isnan(value))


def render_tables(experiment: Experiment, records: Sequence[Record]) -> str:
    """The medians of the first quantity in Markdown. Data sets with the same places share a table.

    If the experiment names a floor, the medians are divided by the median of that reference.
    """
    groups: dict[tuple[str, ...], list[str]] = {}
    for data in list_distinct(record.data for record in records):
        axis = experiment.axis(data)
        shown = thin_out(list_places(choose(records, data=data), axis))
        groups.setdefault((axis, *(format_place(axis, value) for value in shown)), []).append(data)
    return "\n".join(
        _table(experiment, head, [each for each in records if each.data in names]) for head, names in groups.items()
    )


def thin_out(values: Sequence[float]) -> list[float]:
    """At most five of the values: the first, the last, and some between them."""
    if len(values) <= _MOST_PLACES:
        return list(values)
    steps = np.linspace(0, len(values) - 1, _MOST_PLACES).round().astype(int)
    return [values[step] for step in steps]


def _table(experiment: Experiment, head: Sequence[str], records: Sequence[Record]) -> str:
    quantity = experiment.quantities[0]
    label = f"median {quantity.label} over the {experiment.floor}" if experiment.floor else f"median {quantity.label}"
    rows = [["data", f"{label}, by {AXES[head[0]]}", *head[1:]], ["---", "---", *["---:"] * (len(head) - 1)]]
    for data in list_distinct(record.data for record in records):
        of_data = choose(records, data=data)
        for line in list_lines(of_data):
            cells = [_cell(experiment, head[0], of_data, line, at) for at in head[1:]]
            if any(text != NOTHING for text in cells):
                rows.append([data, line, *cells])
    return _join(rows)


def render_rows(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table in Markdown. Columns are aligned to the right if all their cells are numbers."""
    right = [all(row[index][:1].isdigit() or row[index] == NOTHING for row in rows) for index in range(len(head))]
    return _join([head, ["---:" if each else "---" for each in right], *rows])


def _join(rows: Iterable[Sequence[str]]) -> str:
    return "".join(f"| {' | '.join(row)} |\n" for row in rows)


def _cell(experiment: Experiment, axis: str, records: Sequence[Record], line: str, at: str) -> str:
    quantity, here = (
        experiment.quantities[0],
        [each for each in records if format_place(axis, getattr(each, axis)) == at],
    )
    runs = choose(here, method=line)
    result = summarise(runs, quantity.name)
    if not experiment.floor or result is None:
        return render_cell(runs, quantity)
    floor = summarise(choose(here, method=experiment.floor), quantity.name)
    return NOTHING if floor is None or line == experiment.floor else format_number(result.median / floor.median)


def format_place(axis: str, value: float) -> str:
    """The text of a place on an axis."""
    if axis == EPSILON:
        return NO_NOISE if math.isinf(value) else f"{value:g}"
    return f"{value:,.0f}"


def render_cell(records: Sequence[Record], quantity: Quantity) -> str:
    """The median, or the reason why it is missing."""
    result = summarise(records, quantity.name)
    stopped = [record for record in records if record.outcome not in {FINISHED, REFERENCE}]
    if result is None:
        return stopped[0].outcome if stopped else NOTHING
    text = format_number(result.median) if quantity.logarithmic else f"{result.median:.4f}"
    return text + (f"; {len(stopped)} of {len(records)} not finished" if stopped else "")


def wrap_paragraph(text: str) -> str:
    """``text`` in lines of at most 120 characters."""
    return textwrap.fill(text, _WIDTH, break_on_hyphens=False)


def spell_count(count: int) -> str:
    """``count`` as a word, if there is one here, else in digits."""
    return _WORDS.get(count, f"{count:,}")


def format_number(value: float) -> str:
    """``value`` with three digits, trailing zeros and commas at thousands, for readers."""
    if value == 0:
        return "0"
    if 0.001 <= abs(value) < 100:
        return f"{value:.{max(0, 2 - math.floor(math.log10(abs(value))))}f}"
    return f"{value:,.0f}" if 100 <= abs(value) < 1e7 else f"{value:.1e}"
