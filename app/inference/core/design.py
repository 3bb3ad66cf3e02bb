"""The design matrix: how declared columns become coordinates, from declared facts alone.

Real, integer and binary columns map their bounds to -1 and 1; a categorical column becomes one indicator for each
category but the first; the intercept, where the model has one, comes last. Nothing here is estimated from rows.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from app.errors import InvalidRequest
from app.inference.core.facts import Column, DeclaredFacts
from app.inference.core.model import Array32, Array64
from app.inference.core.plan import ModelSpec
from app.inference.core.release import DesignColumn
from app.inference.core.row_source import PRESENT
from app.inference.models.definition import Family
from app.inference.models.targets import Scaled, read_scaling
from app.inference.private_zone.rowwise import zero_rows_unless

RESERVED = frozenset({"weight", "y", "intercept"})
MAX_COLUMNS = 2000

_NORMAL = 1e-300
"""Scales above this, and below its inverse, have an inverse that is a normal number."""


@dataclass(frozen=True, slots=True)
class Design:
    """Features and target (None: the model has none) of a model over a declared table.

    ``target_scale`` says how the model sees a target; None: in the table's units.
    """

    features: tuple[Column, ...]
    target: Column | None
    columns: tuple[DesignColumn, ...]
    target_scale: Scaled | None = None

    @property
    def width(self) -> int:
        """The number p of coordinates, intercept included."""
        return len(self.columns)

    @property
    def intercept(self) -> bool:
        """Whether the last coordinate is the constant 1."""
        return bool(self.columns) and self.columns[-1].source is None

    @property
    def blocks(self) -> tuple[slice, ...]:
        """The coordinates of each feature, in order: indicators of a categorical one, or a single coordinate."""
        found, position = list[slice](), 0
        for column in self.features:
            length = len(column.categories) - 1 if column.type == "categorical" else 1
            found.append(slice(position, position + length))
            position += length
        return tuple(found)

    @property
    def target_bounds(self) -> tuple[float, float] | None:
        """What encoded targets lie between; None where the target has no declared bounds."""
        if self.target is None or self.target.lower is None or self.target.upper is None:
            return None
        return (self.target.lower, self.target.upper) if self.target_scale is None else (-1.0, 1.0)

    def encode_targets(self, y: Array64) -> Array64:
        """Targets ``(n,)`` as the model sees them, of those in the table's units."""
        return y if self.target_scale is None else self.target_scale.encode(y)

    def decode_targets(self, y: Array64 | None) -> Array64 | None:
        """Targets ``(n,)`` in the table's units, of those that the model sees; None for a model without a target."""
        if y is None or self.target is None:
            return None
        return y if self.target_scale is None else self.target_scale.decode(y)

    def encode(self, table: Mapping[str, NDArray[Any]]) -> tuple[Array32, Array64, NDArray[np.bool_]]:
        """Design rows ``(n, p)``, targets ``(n,)`` and presence ``(n,)`` of a gathered table.

        Total: whatever the values are, it neither raises nor warns. A value beyond its bounds is clamped; a value
        that is not a number, or no declared category, makes its whole row null; a null row is zero everywhere.
        Targets are as the model sees them (the index of a category), zero where there is none. They stay in double
        precision until they are folded. Rows lie in memory column after column, as tables do.
        """
        present = np.asarray(table[PRESENT]).astype(bool)
        coordinates = np.ones((self.width, len(present)), dtype=np.float32)
        position = 0
        with np.errstate(all="ignore"):
            for column in self.features:
                position = _encode_column(column, table[column.name], coordinates, position, present)
            np.clip(coordinates, -1, 1, out=coordinates)
            sums = np.ones(self.width, dtype=np.float32) @ coordinates
            present &= sums == sums  # noqa: PLR0124 - what is not a number is unequal to itself, and so is its sum
            y = self._targets(table, present)
        zero_rows_unless(coordinates.T, present)
        zero_rows_unless(y, present)
        return coordinates.T, y, present

    def _targets(self, table: Mapping[str, NDArray[Any]], present: NDArray[np.bool_]) -> Array64:
        """Targets ``(n,)`` within their declaration; narrows ``present`` in place."""
        if self.target is None:
            return np.zeros(len(present))
        y = np.array(table[self.target.name], dtype=np.float64)
        if self.target.type == "categorical":
            present &= (y >= 0) & (y < len(self.target.categories))
        elif self.target_bounds is not None:
            if self.target_scale is not None:
                y = _scale(
                    _without_traces(y - self.target_scale.center, self.target_scale.half), self.target_scale.half
                )
            lower, upper = self.target_bounds
            y = _without_traces(np.clip(y, lower, upper), max(-lower, upper))
        present &= np.isfinite(y)
        return y

    def sample(self, rng: np.random.Generator, n: int) -> Array64:
        """``(n, p)`` design rows of a population that knows the declarations only: uniform over each column."""
        x = np.ones((n, self.width))
        position = 0
        for column in self.features:
            width = _width(column)
            if column.type == "categorical":
                codes = rng.integers(0, width + 1, size=n)
                x[:, position : position + width] = codes[:, None] == np.arange(1, width + 1)
            elif column.type == "binary":
                x[:, position] = rng.integers(0, 2, size=n) * 2.0 - 1.0
            else:
                x[:, position] = rng.uniform(-1, 1, size=n) * (_affine(column)[2] > 0)
            position += width
        return x


def build(spec: ModelSpec, facts: DeclaredFacts, family: Family) -> Design:
    """The design of ``spec`` over the declared columns.

    Raises:
        InvalidRequest: pointing into ``/model`` of the request.
    """
    declared = {column.name: column for column in facts.columns}
    unit = facts.unit.get("column")
    target = _target(spec, declared, unit, family)
    if not spec.features:
        raise InvalidRequest.at("/model/features", "name at least one feature")
    for index in range(len(spec.features)):
        fault = _feature_fault(spec, index, declared, unit, family)
        if fault:
            raise InvalidRequest.at(f"/model/features/{index}", fault)
    features = tuple(declared[name] for name in spec.features)
    if sum(map(_width, features)) + 1 > MAX_COLUMNS:
        raise InvalidRequest.at(
            "/model/features", f"these make more than {MAX_COLUMNS} design columns; name fewer features"
        )
    columns = [column for feature in features for column in _design_columns(feature)]
    if family.intercept:
        columns.append(DesignColumn("intercept", None, {"kind": "constant", "value": 1}))
    target_scale = read_scaling(target) if family.scales_target else None
    return Design(features, target, tuple(columns), target_scale)


def _target(spec: ModelSpec, declared: Mapping[str, Column], unit: str | None, family: Family) -> Column | None:
    if not family.targets:
        if spec.target is not None:
            raise InvalidRequest.at("/model/target", "this model has none: leave it out")
        return None
    if spec.target is None or spec.target not in declared:
        raise InvalidRequest.at("/model/target", "name a declared column")
    if spec.target == unit:
        raise InvalidRequest.at("/model/target", "the column of the privacy unit cannot be modelled")
    family.check_target(declared[spec.target])
    return declared[spec.target]


def _feature_fault(
    spec: ModelSpec, index: int, declared: Mapping[str, Column], unit: str | None, family: Family
) -> str | None:
    name = spec.features[index]
    if name not in declared:
        return "name a declared column"
    if name in RESERVED:
        return "this name is reserved in releases; a column of this name is never a feature"
    if name == spec.target:
        return "the target is not a feature: leave the target out of the features"
    if name == unit:
        return "the column of the privacy unit cannot be modelled"
    if declared[name].type not in family.features:
        return f"this model needs features of type {' or '.join(family.features)}"
    return "this feature is named twice" if name in spec.features[:index] else None


def _affine(column: Column) -> tuple[float, float, float]:
    """Center, scale, and the half-width of the bounds; a constant column gets scale 1."""
    if column.type == "binary":
        return 0.5, 0.5, 0.5
    if column.lower is None or column.upper is None:
        raise InvalidRequest.at("/model/features", "a real or integer feature needs declared bounds")
    half = column.upper / 2 - column.lower / 2
    return column.lower + half, half if half > 0 else 1.0, half


def _width(column: Column) -> int:
    return len(column.categories) - 1 if column.type == "categorical" else 1


def _design_columns(column: Column) -> list[DesignColumn]:
    if column.type == "categorical":
        return [
            DesignColumn(f"{column.name}={value}", column.name, {"kind": "indicator", "value": value})
            for value in column.categories[1:]
        ]
    center, scale, _ = _affine(column)
    return [DesignColumn(column.name, column.name, {"kind": "affine", "center": center, "scale": scale})]


def _encode_column(
    column: Column, values: NDArray[Any], out: Array32, position: int, present: NDArray[np.bool_]
) -> int:
    """Write ``column``'s coordinates into ``out`` ``(p, n)`` at ``position``, and return what position follows.

    Coordinates beyond the bounds are beyond -1 or 1, and still to be clamped; what is not a number is none there
    either. ``present`` is narrowed in place by what ``out`` cannot show.
    """
    width = _width(column)
    if column.type == "categorical":
        codes = np.asarray(values)
        present &= (codes >= 0) & (codes <= width)
        out[position : position + width] = codes == np.arange(1, width + 1)[:, None]
        return position + width
    center, scale, half = _affine(column)
    number: Array64 = np.subtract(values, center, dtype=np.float64)
    if half > 0:
        out[position] = _scale(_without_traces(number, half), scale)
    else:
        present &= number == number  # noqa: PLR0124
        out[position] = 0
    return position + width


def _scale(values: Array64, scale: float) -> Array64:
    """``values / scale``, in place; by a product, which is faster, where it is as good."""
    if _NORMAL < scale < 1 / _NORMAL:
        values *= 1 / scale
    else:
        values /= scale
    return values


def _without_traces(values: Array64, largest: float) -> Array64:
    """``values`` as multiples of about 2^-40 of the ``largest`` one, in place: no product is subnormal (W14)."""
    step = math.ldexp(1.0, min(math.frexp(largest)[1] + 12, 1000))
    values += step
    values -= step
    return values
