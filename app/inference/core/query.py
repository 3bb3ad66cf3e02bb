"""Queries and the oracle that answers them: the only way from a method to private rows."""

from typing import ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from app.inference.core.design import Design
from app.inference.core.model import Array32, Array64, Model

Integers = NDArray[np.int64]


class Query(Protocol):
    """A sum over units, each clipped and rounded to a grid of ``K`` steps.

    See :mod:`app.inference.private_zone.queries`.

    A query is frozen: arrays and bounds that follow from earlier answers.
    """

    kind: ClassVar[str]

    @property
    def length(self) -> int:
        """As :attr:`PlannedQuery.length`."""

    def check(self, model: Model, design: Design) -> None:
        """Refuse values that are not finite or not of the model's shape.

        Raises:
            BadQuery: see :mod:`app.inference.private_zone.mechanisms`.
        """

    def sum(self, model: Model, rows: Array32, present: NDArray[np.bool_], rows_per_unit: int) -> Integers:
        """The exact sum of one block of units, on the grid, in one dimension.

        ``rows`` ``(n * rows_per_unit, row_width)`` are unit-major, ``present`` has one entry each. Total in both: it
        neither raises nor warns, a faulty unit contributes zero, and so does an absent one. Replacing one unit by an
        absent one moves the noised answer's mean by at most K, in units of the scales (:meth:`scales` at sigma 1 / K).
        """

    def scales(self, sigma: float) -> float | Array64:
        """Standard deviations of the noise in steps of the grid, one for all or one for each value of :meth:`sum`."""

    def answer(self, noised: Integers) -> Array64:
        """The noised sum in real units."""


class Oracle(Protocol):
    """The only way to private rows: noised answers to planned queries, nothing else."""

    def ask(self, query: Query) -> Array64:
        """The noised sum over the next planned subsample, in real units; not scaled by 1/q.

        Raises:
            PlanExhausted: beyond the plan.
            BadQuery: for a query that is not the planned one, or is none.
        """
