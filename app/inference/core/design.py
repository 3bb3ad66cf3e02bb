"""The design matrix: maps declared columns to coordinates, from declared facts alone.

Real, integer and binary columns map their bounds to -1 and 1. A categorical column becomes one indicator for each
category except the first. The intercept, if the model has one, comes last. No number here is estimated from rows.
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
"""Scales between this and its inverse have an inverse that is a normal number."""


@dataclass(frozen=True, slots=True)
class Design:
    """Features and target of a model over a declared table.

    ``target`` is None for a model without a target. ``target_scale`` scales targets for the model; None: the model
    takes them in the table's units.
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
        blocks, position = list[slice](), 0
        for column in self.features:
            length = len(column.categories) - 1 if column.type == "categorical" else 1
            blocks.append(slice(position, position + length))
            position += length
        return tuple(blocks)

    @property
    def target_bounds(self) -> tuple[float, float] | None:
        """Least and largest encoded target; None if the target has no declared bounds."""
        if self.target is None or self.target.lower is None or self.target.upper is None:
            return None
        return (self.target.lower, self.target.upper) if self.target_scale is None else (-1.0, 1.0)

    def encode_targets(self, y: Array64) -> Array64:
        """Convert targets ``(n,)`` from the table's units to the model's."""
        return y if self.target_scale is None else self.target_scale.encode(y)

    def decode_targets(self, y: Array64 | None) -> Array64 | None:
        """Convert targets ``(n,)`` from the model's units to the table's; None without a target."""
        if y is None or self.target is None:
            return None
        return y if self.target_scale is None else self.target_scale.decode(y)

    def encode(self, table: Mapping[str, NDArray[Any]]) -> tuple[Array32, Array64, NDArray[np.bool_]]:
        """Encode a gathered table as design rows ``(n, p)``, targets ``(n,)`` and presence ``(n,)``.

        Total: it neither raises nor warns for any values. A value outside its bounds is clamped. A value that is not
        a number, or not a declared category, makes its whole row null; a null row is zero everywhere. Targets are in
        the model's units (a category is its index), zero without a target. They stay in double precision until they
        are folded. Design rows are stored column by column, as tables are.
        """
        present = np.asarray(table[PRESENT]).astype(bool)
        coordinates = np.ones((self.width, len(present)), dtype=np.float32)
        position = 0
        with np.errstate(all="ignore"):
            for column in self.features:
                position = _encode_column(column, table[column.name], coordinates, position, present)
            np.clip(coordinates, -1, 1, out=coordinates)
            sums = np.ones(self.width, dtype=np.float32) @ coordinates
            present &= sums == sums  # noqa: PLR0124 - NaN is unequal to itself, and a sum with NaN is NaN
            y = self._encode_target_column(table, present)
        zero_rows_unless(coordinates.T, present)
        zero_rows_unless(y, present)
        return coordinates.T, y, present

    def _encode_target_column(self, table: Mapping[str, NDArray[Any]], present: NDArray[np.bool_]) -> Array64:
        """Encode targets ``(n,)`` within their declaration; ``present`` is narrowed in place."""
        if self.target is None:
            return np.zeros(len(present))
        y = np.array(table[self.target.name], dtype=np.float64)
        if self.target.type == "categorical":
            present &= (y >= 0) & (y < len(self.target.categories))
        elif self.target_bounds is not None:
            if self.target_scale is not None:
                y = _scale(
                    _round_off_traces(y - self.target_scale.center, self.target_scale.half), self.target_scale.half
                )
            lower, upper = self.target_bounds
            y = _round_off_traces(np.clip(y, lower, upper), max(-lower, upper))
        present &= np.isfinite(y)
        return y

    def sample(self, rng: np.random.Generator, n: int) -> Array64:
        """Draw ``(n, p)`` design rows, uniform over the declared range of each column."""
        x = np.ones((n, self.width))
        position = 0
        for column in self.features:
            width = _count_coordinates(column)
            if column.type == "categorical":
                codes = rng.integers(0, width + 1, size=n)
                x[:, position : position + width] = codes[:, None] == np.arange(1, width + 1)
            elif column.type == "binary":
                x[:, position] = rng.integers(0, 2, size=n) * 2.0 - 1.0
            else:
                x[:, position] = rng.uniform(-1, 1, size=n) * (_scaling(column)[2] > 0)
            position += width
        return x


def build(spec: ModelSpec, facts: DeclaredFacts, family: Family) -> Design:
    """Build the design of ``spec`` over the declared columns.

    Raises:
        InvalidRequest: pointing into ``/model`` of the request.
    """
    declared = {column.name: column for column in facts.columns}
    unit = facts.unit.get("column")
    target = _find_target(spec, declared, unit, family)
    if not spec.features:
        raise InvalidRequest.at("/model/features", "Name at least one feature.")
    for index in range(len(spec.features)):
        fault = _find_feature_fault(spec, index, declared, unit, family)
        if fault:
            raise InvalidRequest.at(f"/model/features/{index}", fault)
    features = tuple(declared[name] for name in spec.features)
    if sum(map(_count_coordinates, features)) + 1 > MAX_COLUMNS:
        raise InvalidRequest.at(
            "/model/features", f"These make more than {MAX_COLUMNS} design columns; name fewer features."
        )
    columns = [column for feature in features for column in _make_design_columns(feature)]
    if family.intercept:
        columns.append(DesignColumn("intercept", None, {"kind": "constant", "value": 1}))
    target_scale = read_scaling(target) if family.scales_target else None
    return Design(features, target, tuple(columns), target_scale)


def _find_target(spec: ModelSpec, declared: Mapping[str, Column], unit: str | None, family: Family) -> Column | None:
    if not family.targets:
        if spec.target is not None:
            raise InvalidRequest.at("/model/target", "This model has no target; leave it out.")
        return None
    if spec.target is None or spec.target not in declared:
        raise InvalidRequest.at("/model/target", "Name a declared column.")
    if spec.target == unit:
        raise InvalidRequest.at(
            "/model/target", "The column of the privacy unit cannot be modelled; name another column."
        )
    family.check_target(declared[spec.target])
    return declared[spec.target]


def _find_feature_fault(
    spec: ModelSpec, index: int, declared: Mapping[str, Column], unit: str | None, family: Family
) -> str | None:
    name = spec.features[index]
    if name not in declared:
        return "Name a declared column."
    if name in RESERVED:
        return "this name is reserved in releases; a column of this name cannot be a feature"
    if name == spec.target:
        return "the target cannot be a feature too; leave it out of the features"
    if name == unit:
        return "The column of the privacy unit cannot be modelled; name another column."
    if declared[name].type not in family.features:
        return f"this model needs features of type {' or '.join(family.features)}"
    return "this feature is named twice" if name in spec.features[:index] else None


def _scaling(column: Column) -> tuple[float, float, float]:
    """Center, scale, and the half-width of the bounds; a constant column has scale 1."""
    if column.type == "binary":
        return 0.5, 0.5, 0.5
    if column.lower is None or column.upper is None:
        raise InvalidRequest.at("/model/features", "A real or integer feature needs declared bounds.")
    half = column.upper / 2 - column.lower / 2
    return column.lower + half, half if half > 0 else 1.0, half


def _count_coordinates(column: Column) -> int:
    return len(column.categories) - 1 if column.type == "categorical" else 1


def _make_design_columns(column: Column) -> list[DesignColumn]:
    if column.type == "categorical":
        return [
            DesignColumn(f"{column.name}={value}", column.name, {"kind": "indicator", "value": value})
            for value in column.categories[1:]
        ]
    center, scale, _ = _scaling(column)
    return [DesignColumn(column.name, column.name, {"kind": "affine", "center": center, "scale": scale})]


def _encode_column(
    column: Column, values: NDArray[Any], out: Array32, position: int, present: NDArray[np.bool_]
) -> int:
    """Write ``column``'s coordinates into ``out`` ``(p, n)`` at ``position``; return the next position.

    Coordinates of values outside the bounds are below -1 or above 1; the caller clamps them. NaN stays NaN.
    ``present`` is narrowed in place by faults that ``out`` cannot represent.
    """
    width = _count_coordinates(column)
    if column.type == "categorical":
        codes = np.asarray(values)
        present &= (codes >= 0) & (codes <= width)
        out[position : position + width] = codes == np.arange(1, width + 1)[:, None]
        return position + width
    center, scale, half = _scaling(column)
    number: Array64 = np.subtract(values, center, dtype=np.float64)
    if half > 0:
        out[position] = _scale(_round_off_traces(number, half), scale)
    else:
        present &= number == number  # noqa: PLR0124
        out[position] = 0
    return position + width


def _scale(values: Array64, scale: float) -> Array64:
    """Divide ``values`` by ``scale`` in place; a product is faster and is used if it is as accurate."""
    if _NORMAL < scale < 1 / _NORMAL:
        values *= 1 / scale
    else:
        values /= scale
    return values


def _round_off_traces(values: Array64, largest: float) -> Array64:
    """Round ``values`` in place to multiples of about 2^-40 of ``largest``.

    Products of the results are then never subnormal (W14).
    """
    step = math.ldexp(1.0, min(math.frexp(largest)[1] + 12, 1000))
    values += step
    values -= step
    return values
