"""Names of declared columns as features.

Real, integer and binary columns map their bounds to -1 and 1. A categorical column becomes one indicator for each
category except the first.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from app.errors import InvalidRequest
from app.inference.core.designs.arithmetic import round_off_traces, scale
from app.inference.core.designs.encoder import Encoder, Fault, Source
from app.inference.core.designs.values import Values, make_interval
from app.inference.core.facts import Column
from app.inference.core.model import Array32, Array64
from app.inference.core.release import DesignColumn


@dataclass(frozen=True, slots=True)
class Name:
    """A declared column as a feature; a request states its name alone."""

    column: str
    kind: ClassVar[str] = "name"

    @property
    def name(self) -> str:
        """The name of the column."""
        return self.column

    @property
    def places(self) -> tuple[tuple[str, str], ...]:
        """The column, where the feature is."""
        return (("", self.column),)

    @property
    def size(self) -> int:
        """No number."""
        return 0

    @property
    def spans(self) -> frozenset[str] | None:
        """The column."""
        return frozenset({self.column})

    def to_json(self) -> dict[str, Any]:
        """Refuse: the JSON of a name is the name."""
        raise TypeError

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> Self:  # noqa: ARG003
        """Refuse: the JSON of a name is the name."""
        raise TypeError

    def find_fault(self, sources: Sequence[Source]) -> Fault | None:
        """None."""
        return None

    def bind(self, sources: Sequence[Source]) -> Encoder:
        """Make the encoder of the column."""
        return ColumnEncoder(sources[0].column)


@dataclass(frozen=True, slots=True)
class ColumnEncoder:
    """The coordinates of one declared column; at once their source and their encoder.

    ``columns`` are one design column, or one for each category except the first. Their ``values`` are indicators,
    signs, or numbers from -1 to 1; a constant is 0.

    Raises:
        InvalidRequest: a number has no declared bounds.
    """

    column: Column
    columns: tuple[DesignColumn, ...] = field(init=False, repr=False, compare=False)
    values: Values = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Make the design columns once; every chunk of rows reads their number."""
        object.__setattr__(self, "columns", tuple(self._make_columns()))
        object.__setattr__(self, "values", self._make_values())

    @property
    def sources(self) -> tuple[Source, ...]:
        """The column."""
        return (self,)

    def _make_columns(self) -> Iterator[DesignColumn]:
        column = self.column
        if column.type == "categorical":
            reference, *others = column.categories
            for value in others:
                indicator = {"kind": "indicator", "value": value, "reference": reference}
                yield DesignColumn(f"{column.name}={value}", column.name, indicator)
        else:
            center, divisor, _ = self._scaling
            affine = {"kind": "affine", "type": column.type, "center": center, "scale": divisor}
            if column.is_constant:  # its scale is that of wider bounds, too
                affine["constant"] = True
            yield DesignColumn(column.name, column.name, affine)

    def _make_values(self) -> Values:
        column = self.column
        if column.type == "categorical":
            count = len(column.categories) - 1
            return Values((0.0,) * count, (1.0,) * count, shares=True, two_valued=True)
        successive = column.type == "integer" and self._scaling[2] == 0.5
        if column.type == "binary" or successive:
            return Values((-1.0,), (1.0,), two_valued=True)
        return make_interval(0.0, 0.0) if column.is_constant else make_interval(-1.0, 1.0)

    @property
    def _scaling(self) -> tuple[float, float, float]:
        """Center, scale, and the half-width of the bounds; a constant column has scale 1."""
        column = self.column
        if column.type == "binary":
            return 0.5, 0.5, 0.5
        if column.lower is None or column.upper is None:
            raise InvalidRequest.at("/model/features", "A real or integer feature needs declared bounds.")
        half = column.upper / 2 - column.lower / 2
        return column.lower + half, half if half > 0 else 1.0, half

    def transform(self, coordinates: Sequence[Array64]) -> Array64:
        """Return the coordinates. Row zone."""
        return coordinates[0]

    def encode(self, table: Mapping[str, NDArray[Any]], out: Array32, present: NDArray[np.bool_]) -> None:
        """Write the coordinates into ``out`` ``(k, n)``. NaN stays NaN. Row zone."""
        cells = table[self.column.name]
        if self.column.type == "categorical":
            out[:] = self._indicate(cells, present)
        else:
            out[0] = self._measure(cells, present)

    def compute(self, cells: NDArray[Any], present: NDArray[np.bool_]) -> Array64:
        """Compute coordinates ``(k, n)`` within the bounds. Row zone."""
        if self.column.type == "categorical":
            return self._indicate(cells, present).astype(np.float64)
        number = self._measure(cells, present)
        present &= number == number  # noqa: PLR0124 - NaN is unequal to itself
        return np.clip(number, -1, 1)[None]

    def _indicate(self, cells: NDArray[Any], present: NDArray[np.bool_]) -> NDArray[np.bool_]:
        codes, width = np.asarray(cells), len(self.column.categories) - 1
        present &= (codes >= 0) & (codes <= width)
        return np.asarray(codes == np.arange(1, width + 1)[:, None])

    def _measure(self, cells: NDArray[Any], present: NDArray[np.bool_]) -> Array64:
        center, divisor, half = self._scaling
        number: Array64 = np.subtract(cells, center, dtype=np.float64)
        if half > 0:
            return scale(round_off_traces(number, half), divisor)
        present &= number == number  # noqa: PLR0124
        return np.zeros(len(number))

    def spread(self, places: Array64) -> Array64:
        """Map ``places`` ``(n,)`` between 0 and 1 to coordinates ``(k, n)``."""
        if self.column.type == "categorical":
            levels = np.floor(places * len(self.column.categories))
            return np.asarray(levels == np.arange(1, len(self.column.categories))[:, None], dtype=np.float64)
        if self.column.type == "binary":
            return np.where(places < 0.5, -1.0, 1.0)[None]
        return (2 * places - 1)[None] * (self._scaling[2] > 0)

    def sample(self, rng: np.random.Generator, n: int, deviation: float | None) -> Array64:
        """Draw coordinates ``(k, n)`` over the declared range."""
        if self.column.type == "categorical":
            width = len(self.column.categories) - 1
            codes = rng.integers(0, width + 1, size=n)
            return np.asarray(codes == np.arange(1, width + 1)[:, None], dtype=np.float64)
        if self.column.type == "binary":
            return np.asarray(rng.integers(0, 2, size=n) * 2.0 - 1.0)[None]
        numbers = rng.uniform(-1, 1, n) if deviation is None else deviation * rng.standard_normal(n)
        return np.clip(numbers, -1, 1)[None] * (self._scaling[2] > 0)
