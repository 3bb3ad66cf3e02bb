"""Interactions: products of the design columns of two to four columns, polynomials and splines."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import product
from math import prod
from typing import Any, ClassVar, Final, Self

import numpy as np

from app.inference.core.designs.columns import Name
from app.inference.core.designs.encoder import MAX_COLUMNS, Encoder, Fault, Source
from app.inference.core.designs.mapped import MappedEncoder, state_inputs
from app.inference.core.designs.polynomial import Polynomial
from app.inference.core.designs.spline import Spline
from app.inference.core.designs.values import Values
from app.inference.core.model import Array64
from app.inference.core.release import DesignColumn

LEAST, MOST = 2, 4
MOST_NUMBERS: Final = 20_000
"""Largest count of knots that the design columns of one interaction state."""
Curve = Polynomial | Spline
"""A term that may be a member."""
Member = str | Curve
_CONSTANT: Final = "This column has one possible value; leave it out of the interaction."
_WIDE: Final = f"This makes more than {MAX_COLUMNS} design columns; name columns with fewer categories."
_LONG: Final = f"The columns of this interaction state more than {MOST_NUMBERS} knots; use fewer knots or categories."


@dataclass(frozen=True, slots=True)
class Interaction:
    """All products of one design column of each member; columns of the last member vary fastest.

    A member is the name of a column, a polynomial or a spline.
    """

    members: tuple[Member, ...]
    kind: ClassVar[str] = "interaction"

    @property
    def name(self) -> str:
        """As in ``age:sex`` or ``bs(age, 4):sex``."""
        return ":".join(each.name for each in self._terms)

    @property
    def places(self) -> tuple[tuple[str, str], ...]:
        """The columns, one of each member."""
        found = ((f"/interaction/{index}", each.places[0]) for index, each in enumerate(self._terms))
        return tuple((pointer + below, name) for pointer, (below, name) in found)

    @property
    def size(self) -> int:
        """The numbers of its members, at least once."""
        return sum(each.size for each in self._terms)

    @property
    def spans(self) -> frozenset[str] | None:
        """The columns: with the features of its members alone, a spline contains linear functions."""
        return frozenset(name for _, name in self.places)

    @property
    def _terms(self) -> tuple[Name | Curve, ...]:
        return tuple(Name(each) if isinstance(each, str) else each for each in self.members)

    def to_json(self) -> dict[str, Any]:
        """``{"interaction": [...]}``."""
        return {"interaction": [each if isinstance(each, str) else each.to_json() for each in self.members]}

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> Self:
        """Read ``{"interaction": [...]}``."""
        return cls(tuple(map(_read_member, document["interaction"])))

    def find_fault(self, sources: Sequence[Source]) -> Fault | None:
        """Check the number of members, and that each has several values."""
        if not LEAST <= len(self.members) <= MOST:
            return Fault("/interaction", f"Name {LEAST} to {MOST} columns.")
        for index, (term, source) in enumerate(zip(self._terms, sources, strict=True)):
            pointer = f"/interaction/{index}"
            if source.column.is_constant or not source.values.lower:
                return Fault(pointer + term.places[0][0], _CONSTANT)
            fault = term.find_fault((source,))
            if fault is not None:
                return Fault(pointer + fault.pointer, fault.message)
        counts = [
            len(source.values.lower) if isinstance(term, Name) else _count_columns(term)
            for term, source in zip(self._terms, sources, strict=True)
        ]
        if prod(counts) > MAX_COLUMNS:
            return Fault("/interaction", _WIDE)
        stated = sum(each.size // each.df for each in self.members if isinstance(each, Spline))
        return Fault("/interaction", _LONG) if prod(counts) * stated > MOST_NUMBERS else None

    def bind(self, sources: Sequence[Source]) -> Encoder:
        """Make the encoder."""
        encoders = [term.bind((source,)) for term, source in zip(self._terms, sources, strict=True)]
        members = [list(zip(each.columns, state_inputs([each]), strict=True)) for each in encoders]
        columns = tuple(
            DesignColumn(
                ":".join(column.name for column, _ in parts),
                None,
                {"kind": "product", "of": [stated for _, stated in parts]},
                term=self.name,
                sources=tuple(source.column.name for source in sources),
            )
            for parts in product(*members)
        )
        values = reduce(Values.times, (each.values for each in encoders))
        return MappedEncoder(tuple(sources), columns, values, _Product(tuple(encoders)))


def _read_member(document: str | Mapping[str, Any]) -> Member:
    """Read a name, a polynomial or a spline."""
    if isinstance(document, str):
        return document
    kinds = (Polynomial, Spline)
    (read,) = (each.from_json for each in kinds if each.kind in document)
    return read(document)


def _count_columns(term: Curve) -> int:
    return term.df if isinstance(term, Spline) else term.degree


@dataclass(frozen=True, slots=True)
class _Product:
    """Products of the design columns of ``encoders``, each of one source."""

    encoders: tuple[Encoder, ...]

    def __call__(self, coordinates: Sequence[Array64]) -> Array64:
        """Multiply the members' columns. Row zone."""
        pairs = zip(self.encoders, coordinates, strict=True)
        return multiply([encoder.transform((each,)) for encoder, each in pairs])


def multiply(coordinates: Sequence[Array64]) -> Array64:
    """Multiply design columns ``(k_i, n)`` of each member to ``(k_1 k_2 ..., n)``. Row zone."""
    products = coordinates[0]
    for each in coordinates[1:]:
        products = (products[:, None] * each).reshape(-1, each.shape[1])
    return np.array(products)
