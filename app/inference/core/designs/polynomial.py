"""Polynomials of one column, orthogonal on its declared bounds."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Final, Self

import numpy as np
from numpy.polynomial import legendre

from app.inference.core.designs.encoder import Encoder, Fault, Source
from app.inference.core.designs.mapped import MappedEncoder, find_range_fault, name_columns
from app.inference.core.designs.values import Values
from app.inference.core.model import Array64
from app.inference.core.release import DesignColumn

LARGEST: Final = 12
"""Largest degree."""


@dataclass(frozen=True, slots=True)
class Polynomial:
    """Legendre polynomials of degree 1 to ``degree``; the bounds map to -1 and 1, and each is within them."""

    column: str
    degree: int
    kind: ClassVar[str] = "polynomial"

    @property
    def name(self) -> str:
        """As in ``poly(age, 3)``."""
        return f"poly({self.column}, {self.degree})"

    @property
    def places(self) -> tuple[tuple[str, str], ...]:
        """The column."""
        return (("/polynomial", self.column),)

    @property
    def size(self) -> int:
        """One number for each design column."""
        return self.degree

    @property
    def spans(self) -> frozenset[str] | None:
        """The column: the polynomial of degree 1 is its coordinate."""
        return frozenset({self.column})

    def to_json(self) -> dict[str, Any]:
        """``{"polynomial": ..., "degree": ...}``."""
        return {"polynomial": self.column, "degree": self.degree}

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> Self:
        """Read ``{"polynomial": ..., "degree": ...}``."""
        return cls(document["polynomial"], int(document["degree"]))

    def find_fault(self, sources: Sequence[Source]) -> Fault | None:
        """Check the degree, and that the column is a number."""
        if not 1 <= self.degree <= LARGEST:
            return Fault("/degree", f"Use a degree from 1 to {LARGEST}.")
        return find_range_fault(sources[0].column, "/polynomial")

    def bind(self, sources: Sequence[Source]) -> Encoder:
        """Make the encoder."""
        (source,) = sources
        stated = source.columns[0].transform
        columns = tuple(
            DesignColumn(name, self.column, {**stated, "kind": "legendre", "degree": degree}, term=self.name)
            for degree, name in enumerate(name_columns(self.name, self.degree), start=1)
        )
        least = tuple(_find_least(degree) for degree in range(1, self.degree + 1))
        return MappedEncoder((source,), columns, Values(least, (1.0,) * self.degree), self._transform)

    def _transform(self, coordinates: Sequence[Array64]) -> Array64:
        """Compute the polynomials ``(degree, n)``. Row zone.

        The recurrence is ``k P_k = (2k - 1) x P_(k-1) - (k - 1) P_(k-2)``.
        """
        x = coordinates[0][0]
        found = [np.ones(len(x)), x]
        for k in range(2, self.degree + 1):
            found.append(((2 * k - 1) / k) * x * found[-1] - ((k - 1) / k) * found[-2])
        return np.array(found[1:])


def _find_least(degree: int) -> float:
    """Find the least value of a Legendre polynomial within -1 and 1."""
    basis = np.eye(degree + 1)[degree]
    turns = legendre.legroots(legendre.legder(basis))
    return float(min(-1.0 if degree % 2 else 1.0, *legendre.legval(turns.real, basis), 1.0))
