"""Unencrypted tables of any declaration, for runners in place of the enclave's tables."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray

from app.inference.core.facts import Column, DeclaredFacts
from app.inference.core.row_source import PRESENT, RowSource
from workers.assignments import Assignment


class DeclaredRows:
    """Random rows within a declaration, in the enclave's format; ``share`` of them are present."""

    def __init__(self, facts: DeclaredFacts, *, share: float = 1.0, extreme: bool = False, state: int = 3) -> None:
        self.slots, self.rows_per_slot = facts.slots, facts.rows_per_unit
        rng = np.random.Generator(np.random.PCG64(state))
        count = self.slots * self.rows_per_slot
        present = rng.random(count) < share
        values = {column.name: _values(rng, column, count, extreme=extreme) for column in facts.columns}
        self._table: dict[str, NDArray[Any]] = {name: each * present for name, each in values.items()}
        self._table[PRESENT] = present.astype(np.uint8)

    def gather(self, indices: NDArray[np.int64]) -> Mapping[str, NDArray[Any]]:
        rows = (indices[:, None] * self.rows_per_slot + np.arange(self.rows_per_slot)).ravel()
        return {name: values[rows] for name, values in self._table.items()}


def _values(rng: np.random.Generator, column: Column, count: int, *, extreme: bool) -> NDArray[Any]:
    if column.type == "categorical":
        return rng.integers(0, len(column.categories), count).astype(np.uint16)
    if column.type == "binary":
        return rng.integers(0, 2, count).astype(np.float64)
    assert column.lower is not None
    assert column.upper is not None
    place = rng.integers(0, 2, count).astype(np.float64) if extreme else rng.random(count)
    values = np.clip(column.lower * (1 - place) + column.upper * place, column.lower, column.upper)
    if column.type == "integer":
        return np.clip(np.rint(values), np.ceil(column.lower), np.floor(column.upper))
    return values


def declared_tables(**choices: Any) -> Callable[[Assignment], AbstractContextManager[RowSource]]:
    """Make tables for a runner, in place of the enclave's; ``choices`` as in :class:`DeclaredRows`."""

    @contextmanager
    def tables(assignment: Assignment) -> Iterator[DeclaredRows]:
        yield DeclaredRows(assignment.run.facts, **choices)

    return tables
