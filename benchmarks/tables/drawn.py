"""Drawn tables: declared columns, rows in slots, and the model of a request."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from app.inference.core.facts import Column, DeclaredFacts
from app.inference.core.model import Array64
from app.inference.core.plan import ModelSpec, PriorSpec
from app.inference.core.row_source import PRESENT
from benchmarks.cases import Case
from support.table import Table

Values = NDArray[Any]
_LARGEST_DELTA: Final = 1e-6
_DEFAULT_PRIOR: Final = PriorSpec()
_PRIORS: Final = (_DEFAULT_PRIOR, PriorSpec(scale=2.5), PriorSpec(scale=10.0), PriorSpec(degrees_of_freedom=4.0))
_WITH_MEANS: Final = 1 / 6
"""Share of drawn priors whose means are not zero."""


@dataclass(frozen=True, slots=True, eq=False)
class Features:
    """Feature columns with one value for each row, in the table's units.

    Categories are codes in declared order. ``design`` names the law of the columns.
    """

    design: str
    columns: tuple[Column, ...]
    values: tuple[Values, ...]

    @property
    def rows(self) -> int:
        """The number of rows."""
        return len(self.values[0])


@dataclass(frozen=True, slots=True, eq=False)
class Target:
    """A target column with one value for each row.

    ``column`` is None for a family without a target. ``noise_scale``, ``dispersion`` and ``degrees_of_freedom`` are
    stated to the model if they are not None.
    """

    family: str
    column: Column | None
    values: Values
    noise_scale: float | None = None
    dispersion: float | None = None
    degrees_of_freedom: float | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Drawn:
    """A table of a kind, ready for :class:`benchmarks.runs.Job`.

    ``what`` describes the draw in words. ``case`` has no exact posterior yet.
    """

    kind: str
    what: str
    design: str
    case: Case


def draw_prior(rng: np.random.Generator, columns: Sequence[Column]) -> PriorSpec:
    """Draw the prior of a request: half of the time the default scale, and one time in six means of slopes."""
    prior = _PRIORS[rng.choice(len(_PRIORS), p=[0.5, 0.2, 0.2, 0.1])]
    if rng.random() >= _WITH_MEANS:
        return prior
    return replace(prior, mean={each.name: float(prior.scale * rng.standard_normal()) for each in columns})


def draw_counts(rng: np.random.Generator, rows: int) -> NDArray[np.int64]:
    """Draw the number of rows of each unit; most tables have units of one row."""
    if rng.random() >= 0.12:
        return np.ones(rows, dtype=np.int64)
    counts = rng.integers(1, int(rng.choice([2, 3, 5, 10])) + 1, size=rows)
    ends = np.cumsum(counts)
    kept = int(np.searchsorted(ends, rows)) + 1
    counts = counts[:kept].copy()
    counts[-1] -= ends[kept - 1] - rows
    return counts


def draw_slots(rng: np.random.Generator, units: int) -> int:
    """Draw the number of slots for ``units`` units; half of the tables have empty slots."""
    spare = float(rng.choice([1.0, 1.02, 1.25, 2.0], p=[0.5, 0.2, 0.2, 0.1]))
    return max(int(np.ceil(units * spare)), 1)


def assemble(
    features: Features,
    target: Target,
    *,
    counts: NDArray[np.int64] | None = None,
    slots: int | None = None,
    prior: PriorSpec = _DEFAULT_PRIOR,
) -> Case:
    """Make a case from features and targets.

    Values are clamped to their bounds, as a sealed table's are. ``delta`` is one that the service accepts.

    Args:
        features: of the rows.
        target: of the rows.
        counts: the number of rows of each unit, in order; by default one.
        slots: the declared number of units, by default that of ``counts``.
        prior: of the request.
    """
    counts = np.ones(features.rows, dtype=np.int64) if counts is None else counts
    slots, each = len(counts) if slots is None else slots, max(int(counts.max(initial=1)), 1)
    columns = (*features.columns, *(() if target.column is None else (target.column,)))
    values = (*features.values, *(() if target.column is None else (target.values,)))
    places = np.repeat(np.arange(len(counts)) * each, counts) + _count_within(counts)
    table = {
        column.name: _place(column, row_values, places, slots * each)
        for column, row_values in zip(columns, values, strict=True)
    }
    present = np.zeros(slots * each, dtype=np.uint8)
    present[places] = 1
    unit: Mapping[str, Any] = {"kind": "row"} if each == 1 else {"kind": "column", "column": "unit", "max_rows": each}
    facts = DeclaredFacts(columns, slots, unit, "private", min(_LARGEST_DELTA, 0.1 / slots))
    names = tuple(column.name for column in features.columns)
    name = None if target.column is None else target.column.name
    spec = ModelSpec(
        target.family, names, name, prior, target.noise_scale, target.degrees_of_freedom, target.dispersion
    )
    return Case("", facts, spec, Table({**table, PRESENT: present}, each))


def name_case(drawn: Drawn, name: str) -> Drawn:
    """Give the case a name; calibrated noise is cached by it."""
    return replace(drawn, case=replace(drawn.case, name=name))


def _count_within(counts: NDArray[np.int64]) -> NDArray[np.int64]:
    """Number the rows of each unit from zero."""
    return np.arange(int(counts.sum())) - np.repeat(np.cumsum(counts) - counts, counts)


def _place(column: Column, values: Values, places: NDArray[np.int64], length: int) -> Values:
    if column.lower is not None and column.upper is not None:
        values = np.clip(values, column.lower, column.upper)
    placed = np.zeros(length, dtype=np.uint16 if column.type == "categorical" else np.float64)
    placed[places] = values
    return placed


def compute_coordinates(features: Features) -> Array64:
    """Compute design coordinates ``(n, p)`` without an intercept."""
    parts: Sequence[Array64] = [
        _compute_column(column, values) for column, values in zip(features.columns, features.values, strict=True)
    ]
    return np.hstack(parts) if parts else np.zeros((0, 0))


def _compute_column(column: Column, values: Values) -> Array64:
    if column.type == "categorical":
        return np.asarray(values[:, None] == np.arange(1, len(column.categories)), dtype=np.float64)
    lower, upper = (0.0, 1.0) if column.lower is None or column.upper is None else (column.lower, column.upper)
    half = (upper - lower) / 2 or 1.0
    return np.asarray((np.clip(values, lower, upper) - (lower + upper) / 2) / half, dtype=np.float64)[:, None]
