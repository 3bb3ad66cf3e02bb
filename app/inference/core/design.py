"""The design matrix: maps declared columns to coordinates, from declared facts and the request alone.

Each feature has an :class:`app.inference.core.designs.encoder.Encoder`. The intercept, if the model has one, comes
last. No number here is estimated from rows.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from app.errors import InvalidRequest
from app.inference.core.designs import Name, make_term
from app.inference.core.designs.arithmetic import round_off_traces, scale
from app.inference.core.designs.columns import ColumnEncoder
from app.inference.core.designs.encoder import MAX_COLUMNS, Encoder, Term
from app.inference.core.facts import Column, DeclaredFacts, suggest_columns
from app.inference.core.model import Array32, Array64
from app.inference.core.plan import ModelSpec
from app.inference.core.release import DesignColumn
from app.inference.core.row_source import PRESENT
from app.inference.models.definition import Family
from app.inference.models.targets import Scaled, read_scaling
from app.inference.private_zone.rowwise import zero_rows_unless

RESERVED = frozenset({"weight", "y", "intercept"})
MAX_TERMS = 500
MAX_NUMBERS = 20_000
"""Largest count of numbers that all terms of a model state in its design."""


@dataclass(frozen=True, slots=True)
class Design:
    """Features and target of a model over a declared table.

    ``target`` is None for a model without a target. ``target_scale`` scales targets for the model; None: the model
    takes them in the table's units.
    """

    encoders: tuple[Encoder, ...]
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
        return bool(self.columns) and self.columns[-1].transform["kind"] == "constant"

    @property
    def largest_square(self) -> float:
        """The largest squared length of a design row."""
        return sum(encoder.values.largest_square for encoder in self.encoders) + self.intercept

    @property
    def blocks(self) -> tuple[slice, ...]:
        """The coordinates of each feature, in order."""
        blocks, position = list[slice](), 0
        for encoder in self.encoders:
            length = len(encoder.columns)
            blocks.append(slice(position, position + length))
            position += length
        return tuple(blocks)

    @property
    def lower(self) -> Array64:
        """The least value of each coordinate, ``(k,)`` without the intercept."""
        return np.array(list(chain.from_iterable(each.values.lower for each in self.encoders)), dtype=np.float64)

    @property
    def upper(self) -> Array64:
        """The largest value of each coordinate, ``(k,)`` without the intercept."""
        return np.array(list(chain.from_iterable(each.values.upper for each in self.encoders)), dtype=np.float64)

    @property
    def shares(self) -> tuple[slice, ...]:
        """The blocks whose coordinates are not negative and sum to at most 1."""
        pairs = zip(self.encoders, self.blocks, strict=True)
        return tuple(block for encoder, block in pairs if encoder.values.shares and block.start < block.stop)

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
        with np.errstate(all="ignore"):
            for encoder, block in zip(self.encoders, self.blocks, strict=True):
                encoder.encode(table, coordinates[block], present)
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
                half = self.target_scale.half
                y = scale(round_off_traces(y - self.target_scale.center, half), half)
            lower, upper = self.target_bounds
            y = round_off_traces(np.clip(y, lower, upper), max(-lower, upper))
        present &= np.isfinite(y)
        return y

    def sample(self, rng: np.random.Generator, n: int, deviation: float | None = None) -> Array64:
        """Draw ``(n, p)`` design rows: columns over their declared range, and terms of these columns.

        Columns are uniform. With ``deviation``, real and integer ones are normal with this standard deviation around
        the middle of their bounds, and clipped to them.
        """
        x, drawn = np.ones((n, self.width)), dict[str, Array64]()
        for encoder, block in zip(self.encoders, self.blocks, strict=True):
            for source in encoder.sources:
                if source.column.name not in drawn:
                    drawn[source.column.name] = source.sample(rng, n, deviation)
            x[:, block] = encoder.transform([drawn[source.column.name] for source in encoder.sources]).T
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
    terms = [make_term(feature) for feature in spec.features]
    _check_number(terms)
    encoders = list[Encoder]()
    for index, term in enumerate(terms):
        pointer = f"/model/features/{index}"
        for place, name in term.places:
            fault = _find_column_fault(name, spec.target, declared, unit, family)
            if fault:
                raise InvalidRequest.at(pointer + place, fault)
        encoders.append(_bind(term, declared, family, pointer))
    _check_distinct(terms, encoders)
    columns = [column for encoder in encoders for column in encoder.columns]
    if len(columns) + 1 > MAX_COLUMNS:
        raise InvalidRequest.at(
            "/model/features", f"These make more than {MAX_COLUMNS} design columns; name fewer features."
        )
    if family.intercept:
        columns.append(DesignColumn("intercept", None, {"kind": "constant", "value": 1}))
    target_scale = read_scaling(target) if family.scales_target else None
    return Design(tuple(encoders), target, tuple(columns), target_scale)


def _check_number(terms: list[Term]) -> None:
    """Raise :class:`InvalidRequest` for too many terms, before any is bound."""
    if sum(not isinstance(term, Name) for term in terms) > MAX_TERMS:
        raise InvalidRequest.at("/model/features", f"Use at most {MAX_TERMS} terms.")
    if sum(term.size for term in terms) > MAX_NUMBERS:
        raise InvalidRequest.at(
            "/model/features",
            f"These terms state more than {MAX_NUMBERS} numbers; use fewer units, knots or weights.",
        )


def _bind(term: Term, declared: Mapping[str, Column], family: Family, pointer: str) -> Encoder:
    """Check a term whose columns can be features, and make its encoder."""
    names = [name for _, name in term.places]
    for index, (place, name) in enumerate(term.places):
        if name in names[:index]:
            raise InvalidRequest.at(pointer + place, "This column is named twice in the term; name it once.")
    if not family.terms and not isinstance(term, Name):
        raise InvalidRequest.at(pointer, "This model takes names of columns only; leave out the term.")
    sources = [ColumnEncoder(declared[name]) for name in names]
    fault = term.find_fault(sources)
    if fault is not None:
        raise InvalidRequest.at(pointer + fault.pointer, fault.message)
    return term.bind(sources)


def _check_distinct(terms: list[Term], encoders: list[Encoder]) -> None:
    """Raise :class:`InvalidRequest` at the first feature that repeats another one."""
    spanned, names = set[frozenset[str]](), set[str]()
    for index, (term, encoder) in enumerate(zip(terms, encoders, strict=True)):
        own, pointer = {column.name for column in encoder.columns}, f"/model/features/{index}"
        if term.spans in spanned:
            raise InvalidRequest.at(pointer, "An earlier feature contains this one; leave one of the two out.")
        if not names.isdisjoint(own):
            raise InvalidRequest.at(
                pointer, "This makes a design column of the same name as an earlier one; leave it out."
            )
        names |= own
        if term.spans is not None:
            spanned.add(term.spans)


def _find_target(spec: ModelSpec, declared: Mapping[str, Column], unit: str | None, family: Family) -> Column | None:
    if not family.targets:
        if spec.target is not None:
            raise InvalidRequest.at("/model/target", "This model has no target; leave it out.")
        return None
    if spec.target is None or spec.target not in declared:
        offered = [name for name in declared if name != unit]
        raise InvalidRequest.at("/model/target", suggest_columns(spec.target, offered))
    if spec.target == unit:
        raise InvalidRequest.at(
            "/model/target", "The column of the privacy unit cannot be modelled; name another column."
        )
    family.check_target(declared[spec.target])
    return declared[spec.target]


def _find_column_fault(
    name: str, target: str | None, declared: Mapping[str, Column], unit: str | None, family: Family
) -> str | None:
    """Find why a column cannot be part of a feature."""
    if name not in declared:
        offered = [each.name for each in declared.values() if each.type in family.features]
        return suggest_columns(name, (each for each in offered if each not in {target, unit, *RESERVED}))
    if name in RESERVED:
        return "This name is reserved in releases; a column of this name cannot be a feature."
    if name == target:
        return "The target cannot be a feature too; leave it out of the features."
    if name == unit:
        return "The column of the privacy unit cannot be modelled; name another column."
    if declared[name].type not in family.features:
        return f"This model needs features of type {' or '.join(family.features)}."
    return None
