"""Cubic splines of one column, by B-splines on its declared bounds.

B-splines are not negative and sum to 1, which is the intercept's column. So the first one is left out. It is 1 at the
lower bound, where the others are 0. Source: de Boor, *A Practical Guide to Splines*, chapter IX.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, ClassVar, Final, Self

import numpy as np

from app.inference.core.designs.arithmetic import round_off_traces
from app.inference.core.designs.encoder import Encoder, Fault, Source
from app.inference.core.designs.mapped import MappedEncoder, find_range_fault, name_columns
from app.inference.core.designs.values import Values
from app.inference.core.facts import Column
from app.inference.core.model import Array64
from app.inference.core.release import DesignColumn

DEGREE: Final = 3
LEAST, MOST = DEGREE, 50
"""Least and largest number of design columns."""
_APART: Final = 1e-3
"""Least distance of knots and bounds, over the width of the bounds."""


@dataclass(frozen=True, slots=True)
class Spline:
    """A cubic spline with ``df`` design columns; ``knots`` are in the column's units, within the bounds.

    There are ``df - 3`` knots. None: they are equally spaced in the declared bounds.
    """

    column: str
    df: int
    knots: tuple[float, ...] | None = None
    kind: ClassVar[str] = "spline"

    @property
    def name(self) -> str:
        """As in ``bs(age, 4)``."""
        return f"bs({self.column}, {self.df})"

    @property
    def places(self) -> tuple[tuple[str, str], ...]:
        """The column."""
        return (("/spline", self.column),)

    @property
    def size(self) -> int:
        """The knots, for each design column."""
        return self.df * (self.df + DEGREE + 2)

    @property
    def spans(self) -> frozenset[str] | None:
        """The column: splines contain every cubic polynomial."""
        return frozenset({self.column})

    def to_json(self) -> dict[str, Any]:
        """``{"spline": ..., "df": ...}``, with ``knots`` if they are stated."""
        stated = {"spline": self.column, "df": self.df}
        return stated if self.knots is None else {**stated, "knots": list(self.knots)}

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> Self:
        """Read the JSON; without ``df``, it follows from the number of knots."""
        knots = document.get("knots")
        stated = None if knots is None else tuple(map(float, knots))
        df = document.get("df")
        return cls(document["spline"], len(stated or ()) + DEGREE if df is None else int(df), stated)

    def find_fault(self, sources: Sequence[Source]) -> Fault | None:
        """Check the number of columns, and that knots are increasing within the bounds."""
        if not LEAST <= self.df <= MOST:
            return Fault("/df", f"Use {LEAST} to {MOST} columns: {DEGREE}, and one for each knot.")
        if self.knots is not None and len(self.knots) != self.df - DEGREE:
            return Fault("/df", f"Use the number of knots plus {DEGREE}, or leave df or knots out.")
        column = sources[0].column
        fault = find_range_fault(column, "/spline")
        if fault is not None or self.knots is None:
            return fault
        assert column.lower is not None
        assert column.upper is not None
        width = column.upper / 2 - column.lower / 2
        edges = [column.lower, *self.knots, column.upper]
        gaps = [after / 2 - before / 2 for before, after in pairwise(edges)]
        for index, gap in enumerate(gaps):
            if not gap >= _APART * width:
                return Fault(
                    f"/knots/{min(index, len(self.knots) - 1)}",
                    "Use increasing knots inside the bounds, with gaps of at least a thousandth of the bounds' width.",
                )
        return None

    def bind(self, sources: Sequence[Source]) -> Encoder:
        """Make the encoder."""
        (source,) = sources
        knots = self._place_knots(source.column)
        names = name_columns(self.name, self.df)
        shared = {"kind": "b-spline", "type": source.column.type, "degree": DEGREE, "knots": list(knots)}
        columns = tuple(
            DesignColumn(name, self.column, {**shared, "index": index}, term=self.name)
            for index, name in enumerate(names, start=1)
        )
        stated = source.columns[0].transform
        inner = np.array([(knot - stated["center"]) / stated["scale"] for knot in knots[DEGREE + 1 : -DEGREE - 1]])
        scaled = [*[-1.0] * (DEGREE + 1), *round_off_traces(inner, 1.0).tolist(), *[1.0] * (DEGREE + 1)]
        values = Values((0.0,) * self.df, (1.0,) * self.df, shares=True)
        return MappedEncoder((source,), columns, values, _Basis(tuple(scaled)))

    def _place_knots(self, column: Column) -> tuple[float, ...]:
        """Place the knots in the column's units; the bounds are four times among them."""
        assert column.lower is not None
        assert column.upper is not None
        inner, lower, upper = self.knots, column.lower, column.upper
        if inner is None:
            steps = self.df - DEGREE + 1
            inner = tuple(lower * (1 - step / steps) + upper * (step / steps) for step in range(1, steps))
        return (*[lower] * (DEGREE + 1), *inner, *[upper] * (DEGREE + 1))


@dataclass(frozen=True, slots=True)
class _Basis:
    """The B-splines of scaled ``knots`` without the first one; each bound is four times a knot."""

    knots: tuple[float, ...]

    def __call__(self, coordinates: Sequence[Array64]) -> Array64:
        """Use the recurrence of Cox and de Boor for all B-splines, ``(df, n)``. Row zone."""
        x, t = coordinates[0][0], self.knots
        last = len(t) - DEGREE - 2  # the last interval contains its upper end
        beyond = [(x >= knot).astype(np.float64) for knot in t[: last + 1]] + [np.zeros(len(x))] * (DEGREE + 1)
        basis = [before - after for before, after in pairwise(beyond)]
        for degree in range(1, DEGREE + 1):
            basis = [
                _slope(x - t[i], t[i + degree] - t[i]) * basis[i]
                + _slope(t[i + degree + 1] - x, t[i + degree + 1] - t[i + 1]) * basis[i + 1]
                for i in range(len(basis) - 1)
            ]
        return np.array(basis[1:])


def _slope(distance: Array64, width: float) -> Array64:
    """Divide a distance by a width; zero for a width of zero. Row zone: ``width`` is public."""
    return distance / width if width > 0 else np.zeros(len(distance))
