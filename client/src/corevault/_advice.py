"""Advice about a table that does not fit its declaration well. It quotes no cell."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final

import numpy as np
from numpy.typing import NDArray

from corevault._cells import SPACES, Array, Cells

if TYPE_CHECKING:
    from corevault.schema import Column

LEAST_ROWS: Final = 20
"""Fewer readable rows do not show that a column has only two values."""
_SHOWN: Final = 5
_FITS: Final = {
    "binary": "neither 0 nor 1, true nor false",
    "integer": "no whole number such as 7",
    "real": "no number such as 0.5",
}


def count_unfit(cells: Cells, missing: NDArray[np.bool_]) -> int:
    """The number of missing cells that are not empty."""
    places = np.flatnonzero(missing)
    if isinstance(cells, np.ndarray):
        return int((~np.isnan(cells[places])).sum())
    return sum(1 for place in places.tolist() if cells[place].strip(SPACES))


class Groups:
    """Groups of columns with exactly one 1 in each row.

    Their names have the same beginning, as ``work_private`` and ``work_public``.
    """

    def __init__(self, names: Iterable[str]) -> None:
        stems: dict[str, list[str]] = {}
        for name in names:
            stem, _, last = name.rpartition("_")
            if stem and last:
                stems.setdefault(stem, []).append(name)
        self.names = [each for each in stems.values() if len(each) > 1]

    def add(self, values: Mapping[str, Array]) -> None:
        """Leaves out the groups that a batch contradicts; ``values`` of its columns by name."""
        self.names = [each for each in self.names if _has_one_one(np.array([values[name] for name in each]))]


def _has_one_one(values: Array) -> bool:
    return bool(np.isin(values, (0.0, 1.0)).all() and (values.sum(axis=0) == 1).all())


def advise_unfit(column: "Column", unfit: int) -> str:
    """A sentence about cells that are not empty, and no value of the column."""
    are = "1 cell is" if unfit == 1 else f"{unfit} cells are"
    if column.categories is None:
        return f"{column.name}: {are} {_FITS[column.type]}."
    rest = ", …" if len(column.categories) > _SHOWN else ""
    declared = ", ".join(column.categories[:_SHOWN])
    return f"{column.name}: {are} not among the declared categories ({declared}{rest})."


def advise_ragged(rows: int) -> str:
    """A sentence about rows with another number of cells than the header."""
    have = "1 row has" if rows == 1 else f"{rows} rows have"
    return (
        f"{have} more or fewer cells than the header. Put cells that contain a comma in quotation marks, as in "
        '"1,000", and remove commas at the ends of rows.'
    )


def advise_clamped(column: "Column", clamped: int) -> str:
    """A sentence about a column that is mostly outside its bounds."""
    return (
        f"{column.name}: {clamped} cells are outside the declared bounds {column.lower:g} to {column.upper:g}. Check "
        "the unit of measurement."
    )


def advise_outside(column: "Column", outside: int) -> str:
    """A sentence about values outside the bounds of the privacy unit's column."""
    values, count = ("1 value is", "It counts") if outside == 1 else (f"{outside} values are", "They count")
    return (
        f"{column.name}: {values} outside the declared bounds {column.lower:g} to {column.upper:g}. {count} as "
        "missing, because this column identifies the privacy unit and is not clamped."
    )


def advise_types(truths: Sequence[str], groups: Groups) -> Iterator[str]:
    """Sentences about columns that have a better type; ``truths`` are the names of columns with only 0 and 1."""
    for name in truths:
        yield f"{name}: contains only 0 and 1. If the codebook agrees, declare it as binary."
    for names in groups.names:
        yield (
            f"{', '.join(names)}: in every row exactly one of them is 1. If the codebook agrees, declare one "
            "categorical column in their place."
        )
