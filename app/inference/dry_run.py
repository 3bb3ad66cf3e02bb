"""A dry run: a plan in short, carried out on a table of null rows through the oracle of real runs.

A query's shape depends on the request and the declaration, and on no row. So whatever fails here would fail on every
table, and is found before anything is charged. The noise is real; the answers are discarded.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from app.inference.core.facts import Column, DeclaredFacts
from app.inference.core.plan import MechanismPlan
from app.inference.core.problems import problem_for
from app.inference.core.row_source import PRESENT
from app.inference.private_zone.mechanisms import DiscreteGaussian
from app.inference.private_zone.oracle import ClippedGaussianOracle
from app.inference.private_zone.rng import monte_carlo_generator, sampling_generator
from app.inference.registry import private_method

SLOTS: Final = 2
ROWS_PER_UNIT: Final = 2
"""Null rows of a unit at most: shapes tell one row from several, and no more."""
LARGE: Final = 32
"""Parameters: the queries of a dry run of so many take about 0.05 s."""


class NullRows:
    """A table without a row, of ``facts.slots`` units."""

    def __init__(self, facts: DeclaredFacts) -> None:
        self.slots, self.rows_per_slot = facts.slots, facts.rows_per_unit
        self._columns: tuple[Column, ...] = facts.columns

    def gather(self, indices: NDArray[np.int64]) -> Mapping[str, NDArray[Any]]:
        """As :meth:`app.inference.core.row_source.RowSource.gather`: zeros, of which nothing is present."""
        rows = len(indices) * self.rows_per_slot
        types = {column.name: np.uint16 if column.type == "categorical" else np.float64 for column in self._columns}
        values: dict[str, NDArray[Any]] = {name: np.zeros(rows, dtype=kind) for name, kind in types.items()}
        return values | {PRESENT: np.zeros(rows, dtype=np.uint8)}


def carry_out(plan: MechanismPlan, facts: DeclaredFacts, *, to_the_end: bool) -> None:
    """Begin ``plan`` as it is, then ask every kind of its queries.

    ``to_the_end``: whether to take the last step too, which fits the points and may take seconds, and to release them.

    Raises:
        Exception: whatever a plan meets that cannot be carried out on any table.
    """
    method, rng = private_method(plan.method), monte_carlo_generator()
    method.init(plan, facts, rng)
    short = method.shorten(plan, facts)
    few = _of_few_rows(facts)
    oracle = ClippedGaussianOracle(
        problem_for(plan.model, few).model,
        short,
        few,
        NullRows(few),
        noise=DiscreteGaussian(),
        sampling=sampling_generator(),
    )
    state = method.init(short, facts, rng)
    for _ in range(short.steps if to_the_end else short.steps - 1):
        state = method.step(rng, state, oracle)
    if to_the_end:
        method.finish(state)


def is_large(plan: MechanismPlan, facts: DeclaredFacts) -> bool:
    """Whether a dry run takes longer than a price may."""
    return problem_for(plan.model, facts).model.dimension > LARGE


def _of_few_rows(facts: DeclaredFacts) -> DeclaredFacts:
    unit = dict(facts.unit)
    if unit["kind"] == "column":
        unit["max_rows"] = min(facts.rows_per_unit, ROWS_PER_UNIT)
    return replace(facts, slots=min(facts.slots, SLOTS), unit=unit)
