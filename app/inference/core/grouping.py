"""Groups of rows: the product of declared discrete columns, and problems whose rows also hold a group.

The name of a group is made of declared categories alone. Groups are numbered in declared
order; the last column changes fastest.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from app.errors import InvalidRequest
from app.inference.core.design import Design
from app.inference.core.facts import Column, DeclaredFacts, suggest_columns
from app.inference.core.model import Array32, Array64, Model
from app.inference.core.plan import ModelSpec
from app.inference.core.problems import Problem, make_problem
from app.inference.core.release import DesignColumn
from app.inference.private_zone.rowwise import zero_rows_unless

MOST_GROUPS: Final = 500
POINTER: Final = "/parameters/groups"
GROUP_KINDS: Final = frozenset({"group_potential_sum"})
"""Kinds of queries that read the group of a row."""
_BINARY: Final = ("false", "true")


@dataclass(frozen=True, slots=True)
class Grouping:
    """The groups that ``columns`` make: one for each combination of their declared values."""

    columns: tuple[Column, ...]

    @property
    def sizes(self) -> tuple[int, ...]:
        """The number of values of each column."""
        return tuple(len(_list_values(column)) for column in self.columns)

    @property
    def count(self) -> int:
        """The number G of groups."""
        return math.prod(self.sizes)

    @property
    def labels(self) -> tuple[tuple[str, ...], ...]:
        """The values of each group, ``(G, k)``."""
        return tuple(product(*(_list_values(column) for column in self.columns)))

    def encode(self, table: Mapping[str, NDArray[Any]], present: NDArray[np.bool_]) -> Array32:
        """Compute the group ``(n,)`` of each row; a value that is not declared makes its row null. Row zone."""
        codes = np.zeros(len(present), dtype=np.float32)
        for column, size in zip(self.columns, self.sizes, strict=True):
            values = np.asarray(table[column.name]).astype(np.float32)
            present &= (values >= 0) & (values < size)
            codes = codes * np.float32(size) + np.fmax(np.fmin(values, np.float32(size - 1)), np.float32(0))
        zero_rows_unless(codes, present)
        return codes


@dataclass(frozen=True, slots=True)
class GroupedModel:
    """A model whose folded rows have their group in a further, last column."""

    model: Model
    groups: int

    @property
    def row_width(self) -> int:
        """The columns of the model's folded rows, and one."""
        return self.model.row_width + 1

    def fold(self, x: NDArray[np.floating[Any]], y: NDArray[np.floating[Any]]) -> NDArray[Any]:
        """Fold encoded rows ``(n, p + 1)``, whose last column is the group."""
        return np.concatenate([self.model.fold(x[:, :-1], y), x[:, -1:]], axis=1)


@dataclass(frozen=True, slots=True)
class GroupedDesign:
    """A design that appends the group of a row as a further, last column."""

    design: Design
    grouping: Grouping

    @property
    def columns(self) -> tuple[DesignColumn, ...]:
        """The design's columns, without the group."""
        return self.design.columns

    def encode(self, table: Mapping[str, NDArray[Any]]) -> tuple[Array32, Array64, NDArray[np.bool_]]:
        """Encode as :meth:`app.inference.core.design.Design.encode`, with the group last. Row zone."""
        x, y, present = self.design.encode(table)
        with np.errstate(all="ignore"):
            codes = self.grouping.encode(table, present)
        joined: Array32 = np.concatenate([x.T, codes[None]]).T
        zero_rows_unless(joined, present)
        zero_rows_unless(y, present)
        return joined, y, present


class GroupedProblem(NamedTuple):
    """A model and a design whose rows hold their group."""

    model: GroupedModel
    design: GroupedDesign


def make_grouped_problem(spec: ModelSpec, names: Sequence[str], facts: DeclaredFacts) -> GroupedProblem:
    """Make the problem of ``spec`` whose rows hold their group by the columns ``names``.

    Raises:
        InvalidRequest: as :func:`make_grouping` and :func:`app.inference.core.problems.make_problem`.
    """
    return add_groups(make_problem(spec, facts), make_grouping(names, facts))


def add_groups(problem: Problem, grouping: Grouping) -> GroupedProblem:
    """Make the rows of ``problem`` hold their group."""
    return GroupedProblem(GroupedModel(problem.model, grouping.count), GroupedDesign(problem.design, grouping))


def make_grouping(names: Sequence[str], facts: DeclaredFacts) -> Grouping:
    """Make the groups of the columns ``names``.

    Raises:
        InvalidRequest: at ``/parameters/groups``, for a column that has no declared values, or too many groups.
    """
    declared = {column.name: column for column in facts.columns}
    for index, name in enumerate(names):
        if name not in declared or not declared[name].is_discrete:
            offered = [
                each.name for each in facts.columns if each.is_discrete and each.name != facts.unit.get("column")
            ]
            message = suggest_columns(name, offered, "declared categorical or binary column")
            raise InvalidRequest.at(f"{POINTER}/{index}", message)
        if name == facts.unit.get("column"):
            raise InvalidRequest.at(
                f"{POINTER}/{index}", "The column of the privacy unit makes no groups; name another column."
            )
    grouping = Grouping(tuple(declared[name] for name in names))
    if grouping.count > MOST_GROUPS:
        raise InvalidRequest.at(POINTER, f"These columns make more than {MOST_GROUPS} groups; name fewer columns.")
    return grouping


def choose_columns(spec: ModelSpec, facts: DeclaredFacts) -> tuple[str, ...]:
    """Choose the columns of a request that names none: the categorical and binary features.

    Raises:
        InvalidRequest: at ``/parameters/groups``: the model has none.
    """
    declared = {column.name: column for column in facts.columns}
    features = (name for name in spec.columns if name != spec.target and name in declared)
    chosen = tuple(name for name in features if declared[name].is_discrete)
    if not chosen:
        raise InvalidRequest.at(
            POINTER, "The model has no categorical or binary feature; name columns that make groups."
        )
    return chosen


def _list_values(column: Column) -> tuple[str, ...]:
    return column.categories if column.type == "categorical" else _BINARY
