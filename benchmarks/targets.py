"""Medians compared with the targets of an experiment."""

import math
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from benchmarks.experiment import AXES, Experiment
from benchmarks.records import FINISHED, Record
from benchmarks.summaries import (
    Summary,
    choose,
    format_number,
    format_place,
    list_distinct,
    list_places,
    render_rows,
    summarise,
)


class Cell(NamedTuple):
    """The runs of a data set at one place, and the largest acceptable median."""

    data: str
    place: str
    target: float
    found: Summary

    @property
    def holds(self) -> bool:
        """Whether the median is acceptable."""
        return self.found.median <= self.target


def list_cells(experiment: Experiment, records: Sequence[Record]) -> Iterator[Cell]:
    """List the places with a target and finished runs."""
    name = experiment.quantities[0].name
    for data in list_distinct(record.data for record in records):
        axis, of_data = experiment.axis(data), choose(records, data=data)
        for place in list_places(of_data, axis):
            here = choose(of_data, **{axis: place})
            target = summarise(choose(here, method=experiment.target), name)
            found = summarise(choose(here, outcome=FINISHED), name)
            if target is not None and found is not None and math.isfinite(target.median):
                yield Cell(data, format_place(axis, place), target.median, found)


def render_targets(experiment: Experiment, records: Sequence[Record]) -> str:
    """Render the count of medians within the target, and a table of the others; empty without a target."""
    cells = list(list_cells(experiment, records)) if experiment.target else []
    if not cells:
        return ""
    missed = [cell for cell in cells if not cell.holds]
    least = min(cell.found.runs for cell in cells)
    text = (
        f"Of {len(cells)} medians with a target, {len(cells) - len(missed)} are not above *{experiment.target}*, by at "
        f"least {least} runs each."
    )
    if not missed:
        return f"{text}\n"
    label = experiment.quantities[0].label
    head = ["data", AXES[experiment.axis(missed[0].data)], experiment.target, f"median {label}", "quartiles", "runs"]
    rows = [
        [
            cell.data,
            cell.place,
            format_number(cell.target),
            format_number(cell.found.median),
            f"{format_number(cell.found.lower)} to {format_number(cell.found.upper)}",
            str(cell.found.runs),
        ]
        for cell in missed
    ]
    return f"{text} **The others miss it:**\n\n{render_rows(head, rows)}"
