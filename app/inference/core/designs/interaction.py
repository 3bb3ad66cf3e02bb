"""Interactions: products of the coordinates of two to four columns."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import product
from math import prod
from typing import Any, ClassVar, Final, Self

import numpy as np

from app.inference.core.designs.encoder import MAX_COLUMNS, Encoder, Fault, Source
from app.inference.core.designs.mapped import MappedEncoder, state_inputs
from app.inference.core.designs.values import Values
from app.inference.core.model import Array64
from app.inference.core.release import DesignColumn

LEAST, MOST = 2, 4
_CONSTANT: Final = "This column has one possible value; leave it out of the interaction."
_WIDE: Final = f"This makes more than {MAX_COLUMNS} design columns; name columns with fewer categories."


@dataclass(frozen=True, slots=True)
class Interaction:
    """All products of one coordinate of each column; the last column's coordinates vary fastest."""

    columns: tuple[str, ...]
    kind: ClassVar[str] = "interaction"

    @property
    def name(self) -> str:
        """As in ``age:sex``."""
        return ":".join(self.columns)

    @property
    def places(self) -> tuple[tuple[str, str], ...]:
        """The columns."""
        return tuple((f"/interaction/{index}", name) for index, name in enumerate(self.columns))

    @property
    def size(self) -> int:
        """No number."""
        return 0

    @property
    def spans(self) -> frozenset[str] | None:
        """The columns."""
        return frozenset(self.columns)

    def to_json(self) -> dict[str, Any]:
        """``{"interaction": [...]}``."""
        return {"interaction": list(self.columns)}

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> Self:
        """Read ``{"interaction": [...]}``."""
        return cls(tuple(document["interaction"]))

    def find_fault(self, sources: Sequence[Source]) -> Fault | None:
        """Check the number of columns, and that each has several values."""
        if not LEAST <= len(self.columns) <= MOST:
            return Fault("/interaction", f"Name {LEAST} to {MOST} columns.")
        for index, source in enumerate(sources):
            if source.column.is_constant or not source.values.lower:
                return Fault(f"/interaction/{index}", _CONSTANT)
        if prod(len(source.values.lower) for source in sources) > MAX_COLUMNS:
            return Fault("/interaction", _WIDE)
        return None

    def bind(self, sources: Sequence[Source]) -> Encoder:
        """Make the encoder."""
        members = [list(zip(each.columns, state_inputs([each]), strict=True)) for each in sources]
        columns = tuple(
            DesignColumn(
                ":".join(column.name for column, _ in parts),
                None,
                {"kind": "product", "of": [stated for _, stated in parts]},
                term=self.name,
                sources=self.columns,
            )
            for parts in product(*members)
        )
        values = reduce(Values.times, (source.values for source in sources))
        return MappedEncoder(tuple(sources), columns, values, multiply)


def multiply(coordinates: Sequence[Array64]) -> Array64:
    """Multiply coordinates ``(k_i, n)`` of each column to ``(k_1 k_2 ..., n)``. Row zone."""
    products = coordinates[0]
    for each in coordinates[1:]:
        products = (products[:, None] * each).reshape(-1, each.shape[1])
    return np.array(products)
