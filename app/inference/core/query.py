"""Protocols of queries and of the oracle that answers them: a method's only access to private rows."""

from typing import Any, ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from app.inference.core.model import Array32, Array64

Integers = NDArray[np.int64]


class Query(Protocol):
    """A sum over units; each contribution is clipped and rounded to a grid of ``K`` steps.

    Its ``model`` is of the capability that the query sums: :class:`app.inference.core.model.Model`, or
    :class:`app.inference.core.statistics.Statistics`.

    A query is frozen: it holds arrays and bounds that follow from earlier answers. The classes are in
    :mod:`app.inference.private_zone.queries`.
    """

    kind: ClassVar[str]

    @property
    def length(self) -> int:
        """The number of values in an answer, as :attr:`PlannedQuery.length`."""

    def check(self, model: Any, design: Any) -> None:
        """Check that all values are finite and of the model's shape.

        Raises:
            BadQuery: see :mod:`app.inference.private_zone.mechanisms`.
        """

    def sum(self, model: Any, rows: Array32, present: NDArray[np.bool_], rows_per_unit: int) -> Integers:
        """Compute the exact sum over one block of units.

        The sum is a vector of integers on the grid.

        ``rows`` ``(n * rows_per_unit, row_width)`` hold the rows of one unit next to each other; ``present`` has one
        entry for each row. Total in both: it neither raises nor warns. A faulty or absent unit contributes zero.
        Sensitivity: replacing one unit by an absent one moves the sum by at most K, in units of :meth:`scales` at
        sigma = 1 / K.
        """

    def scales(self, sigma: float) -> float | Array64:
        """Standard deviations of the noise, in steps of the grid, for noise multiplier ``sigma``.

        One number for all values of :meth:`sum`, or one for each.
        """

    def answer(self, noised: Integers) -> Array64:
        """Convert the noised sum to real units."""


class Oracle(Protocol):
    """Answers planned queries with noise; a method's only access to private rows."""

    def ask(self, query: Query) -> Array64:
        """Answer ``query`` by the noised sum over the next planned subsample.

        Returns:
            The sum in real units, not scaled by 1/q.

        Raises:
            PlanExhausted: if all planned queries have been asked.
            BadQuery: for a query that is malformed, or not the planned one.
        """
