"""The protocols of features: statements of a request, and encoders of design columns.

A :class:`Term` is the request's statement. :meth:`Term.bind` makes its :class:`Encoder` from declared facts.

Row zone: :meth:`Encoder.encode` sees private rows. It is total, no step depends on the rows, and no number is
subnormal (W14). It uses sums, products and other operations that round each value by itself. So a row gets the same
bits at every place of a table, in every process and in chunks of every size. Matrix products and the exponential
functions of libraries do not promise this.
"""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Final, NamedTuple, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from app.inference.core.designs.values import Values
from app.inference.core.facts import Column
from app.inference.core.model import Array32, Array64
from app.inference.core.release import DesignColumn

MAX_COLUMNS: Final = 2000
"""Largest number of design columns."""


class Fault(NamedTuple):
    """A fault of a term: the pointer below the term, and a sentence with the remedy."""

    pointer: str
    message: str


class Source(Protocol):
    """A declared column with its coordinates: one for a number or a flag, an indicator for each further category."""

    @property
    def column(self) -> Column:
        """The declaration."""

    @property
    def columns(self) -> tuple[DesignColumn, ...]:
        """The design columns of the column alone."""

    @property
    def values(self) -> Values:
        """Their possible values."""

    def compute(self, cells: NDArray[Any], present: NDArray[np.bool_]) -> Array64:
        """Compute coordinates ``(k, n)`` of ``cells`` ``(n,)`` within the bounds; narrow ``present``. Row zone."""

    def spread(self, places: Array64) -> Array64:
        """Map ``places`` ``(n,)`` between 0 and 1 to coordinates ``(k, n)``.

        Even places give coordinates that are even over the declared range.
        """

    def sample(self, rng: np.random.Generator, n: int, deviation: float | None) -> Array64:
        """Draw coordinates ``(k, n)``: uniform over the declared range.

        Numbers are normal with the standard deviation ``deviation`` and clipped to the bounds, if it is given.
        """


class Encoder(Protocol):
    """Makes the design columns of one feature from the coordinates of declared columns."""

    @property
    def sources(self) -> tuple[Source, ...]:
        """The declared columns that it reads."""

    @property
    def columns(self) -> tuple[DesignColumn, ...]:
        """The design columns, k of them."""

    @property
    def values(self) -> Values:
        """Their possible values."""

    def transform(self, coordinates: Sequence[Array64]) -> Array64:
        """Compute design columns ``(k, n)`` from the coordinates ``(k_i, n)`` of each source. Row zone."""

    def encode(self, table: Mapping[str, NDArray[Any]], out: Array32, present: NDArray[np.bool_]) -> None:
        """Write the design columns of a gathered table into ``out`` ``(k, n)``. Row zone.

        Values may be beyond -1 and 1; the caller clamps them. ``present`` ``(n,)`` is narrowed in place for cells that
        make their row null.
        """


class Term(Protocol):
    """A feature of a request: a frozen dataclass with one member for each member of its JSON."""

    kind: ClassVar[str]
    """The member of its JSON that names its columns."""

    @property
    def name(self) -> str:
        """Its name, for priors and names of parameters, as in ``poly(age, 3)``."""

    @property
    def places(self) -> tuple[tuple[str, str], ...]:
        """The declared columns that it reads, each with its pointer below the term."""

    @property
    def size(self) -> int:
        """The count of numbers that its design states."""

    @property
    def spans(self) -> frozenset[str] | None:
        """The columns of which it contains every product of linear functions, one of each; None if there are none.

        Two features of one design have different ones.
        """

    def to_json(self) -> dict[str, Any]:
        """Convert to the JSON of the request."""

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> Self:
        """Read the JSON of a request or a plan."""

    def find_fault(self, sources: Sequence[Source]) -> Fault | None:
        """Find a fault in the members of the term; None if there is none."""

    def bind(self, sources: Sequence[Source]) -> Encoder:
        """Make the encoder of a term without a fault."""
