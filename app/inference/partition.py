"""A query in parts: which units each part takes, and the exact sum over some units, read from the table as needed.

Contributions are computed in blocks of units. Parts begin where blocks begin, so that every unit meets the same
neighbours in a block however a query is split, and sums of parts are bit-identical to the sum of the whole.
"""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from app.inference.design import Design
from app.inference.protocol import DeclaredFacts, Integers, MechanismPlan, Model, Question, RowSource
from app.inference.questions.blocks import BLOCK
from app.privacy.events import PoissonSampledEvent, flatten

CHUNK_ROWS = 32 * BLOCK
"""Rows that are read together, at most, unless one unit has more."""

Slots = range | NDArray[np.int64]
"""Units: consecutive ones, or sorted and unique ones."""

Summation = Callable[[Question, Slots], Integers]
"""Carries out the sum over the units of a query somewhere, exactly. A fault among the rows is an exception."""


def largest_query(plan: MechanismPlan, facts: DeclaredFacts) -> float:
    """Rows that the largest query of a plan is expected to read, at most."""
    rates = [
        event.sampling_rate if isinstance(event, PoissonSampledEvent) else 1.0 for event, _ in flatten(plan.events)
    ]
    return max(rates, default=0.0) * facts.slots * facts.rows_per_unit


def chunk_units(rows_per_unit: int) -> int:
    """Units that are read and summed together: a whole number of blocks."""
    block = max(1, BLOCK // rows_per_unit)
    return max(1, CHUNK_ROWS // (block * rows_per_unit)) * block


def cuts(units: int, rows_per_unit: int, parts: int) -> list[int]:
    """Where at most ``parts`` parts of ``units`` units begin, nearly equal, and where the last one ends."""
    chunk = chunk_units(rows_per_unit)
    chunks = -(-units // chunk)
    count = max(1, min(parts, chunks))
    return [min(units, chunk * (chunks * part // count)) for part in range(count)] + [units]


def partial_sum(question: Question, model: Model, design: Design, source: RowSource, slots: Slots) -> Integers:
    """The exact sum over the units at ``slots``, in bounded memory.

    Row zone: total in what the rows hold; only ``source`` may fail, for reasons of its own.
    """
    each, chunk = source.rows_per_slot, chunk_units(source.rows_per_slot)
    total: Integers | None = None
    for start in range(0, max(1, len(slots)), chunk):
        x, y, present = design.encode(source.gather(_indices(slots[start : start + chunk])))
        part = question.sum(model, model.fold(x, y), present, each)
        total = part if total is None else total + part
    assert total is not None
    return total


def _indices(slots: Slots) -> NDArray[np.int64]:
    return np.arange(slots.start, slots.stop) if isinstance(slots, range) else slots.astype(np.int64, copy=False)
