"""Encoders of terms: functions of the coordinates of declared columns."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from app.inference.core.designs.arithmetic import round_off_traces
from app.inference.core.designs.encoder import Encoder, Fault, Source
from app.inference.core.designs.values import Values
from app.inference.core.facts import Column
from app.inference.core.model import Array32, Array64
from app.inference.core.release import DesignColumn

MOST_INPUTS: Final = 64
"""Largest number of coordinates that a term of several columns combines."""
_TILE: Final = 1 << 13
"""Rows that are computed at once, so that intermediate values stay in the cache."""


@dataclass(frozen=True, slots=True)
class MappedEncoder:
    """Design columns that a term's ``transform`` makes from the coordinates of its sources."""

    sources: tuple[Source, ...]
    columns: tuple[DesignColumn, ...]
    values: Values
    transform: Callable[[Sequence[Array64]], Array64]

    def encode(self, table: Mapping[str, NDArray[Any]], out: Array32, present: NDArray[np.bool_]) -> None:
        """Compute tile by tile in double precision, and round to multiples of about 2^-40. Row zone."""
        for start in range(0, len(present), _TILE):
            part = slice(start, start + _TILE)
            coordinates = [each.compute(table[each.column.name][part], present[part]) for each in self.sources]
            out[:, part] = round_off_traces(self.transform(coordinates), 1.0)


def state_inputs(sources: Sequence[Source | Encoder]) -> list[dict[str, Any]]:
    """State how the columns of ``sources`` follow from declared columns, one entry for each."""
    return [{"source": column.source, **column.transform} for source in sources for column in source.columns]


def count_coordinates(sources: Sequence[Source]) -> int:
    """Count the coordinates of ``sources``."""
    return sum(len(source.values.lower) for source in sources)


def find_range_fault(column: Column, pointer: str) -> Fault | None:
    """Find why ``column`` cannot be bent: it is not a number, or it has one value."""
    if column.type not in {"real", "integer"}:
        return Fault(pointer, "Name a real or integer column; a binary or categorical one has no curve.")
    if column.is_constant:
        return Fault(pointer, "The declared bounds of this column are equal, so it has one value; leave the term out.")
    return None


def find_inputs_fault(sources: Sequence[Source], pointer: str) -> Fault | None:
    """Find why ``sources`` cannot be the inputs of a map of several columns."""
    for index, source in enumerate(sources):
        if source.column.is_constant or not source.values.lower:
            return Fault(f"{pointer}/{index}", "This column has one possible value; leave it out of the term.")
    if count_coordinates(sources) > MOST_INPUTS:
        return Fault(pointer, f"These columns have more than {MOST_INPUTS} coordinates; name fewer columns.")
    return None


def name_columns(name: str, count: int) -> list[str]:
    """Name the design columns of a term: its name, and their number from 1 in brackets."""
    return [f"{name}[{number}]" for number in range(1, count + 1)]


def list_names(columns: Sequence[str]) -> str:
    """List names of columns, as in ``age, hours``."""
    return ", ".join(columns)


def make_columns(
    name: str, sources: tuple[str, ...], shared: Mapping[str, Any], own: Sequence[Mapping[str, Any]]
) -> tuple[DesignColumn, ...]:
    """Make the design columns of the term ``name``, one for each entry of ``own``.

    The first transform has the ``shared`` members. The others refer to it.
    """
    names = name_columns(name, len(own))
    later = {"kind": shared["kind"], "shared_with": names[0]}
    return tuple(
        DesignColumn(column, None, {**(later if index else shared), **members}, term=name, sources=sources)
        for index, (column, members) in enumerate(zip(names, own, strict=True))
    )
