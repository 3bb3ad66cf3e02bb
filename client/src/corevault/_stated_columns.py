"""Declared columns as a design states them, for new rows without a schema.

A transform states the ``type`` of a number, or the ``reference`` category of an indicator. Designs of version 0.1.0
state neither. Then a cell counts only if every declaration that fits the design gives it the same value.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

import numpy as np
from numpy.typing import NDArray

from corevault._cells import SPACES, Categories, Cells, parse_numbers, parse_truths
from corevault.errors import InvalidArgument
from corevault.schema import Column

if TYPE_CHECKING:
    from corevault.design import DesignColumn

Array = NDArray[np.float64]
_BINARY: Final = (0.5, 0.5)
"""Center and scale of a binary column."""
_REMEDY: Final = "Pass schema=client.datasets.get(...)."


def read_column(design: Sequence["DesignColumn"]) -> Column | None:
    """The declared column, without impute value, of the plain design columns of one source.

    None if the design does not state its type or all its categories.
    """
    name, first = str(design[0].source), design[0].transform
    if first["kind"] == "indicator":
        if "reference" not in first:
            return None
        values = [str(each.transform["value"]) for each in design]
        return Column(name, "categorical", categories=(str(first["reference"]), *values))
    if "type" not in first:
        return None
    center, scale = float(first["center"]), float(first["scale"])
    return Column(name, str(first["type"]), center - scale, center + scale)


def parse_undeclared_numbers(source: str | None, scaling: tuple[float, float], cells: Cells) -> Array:
    """Values ``(n,)`` of a column of numbers whose type is unknown; NaN for missing cells.

    ``scaling`` is the design's center and scale.

    Raises ``InvalidArgument`` if these types read a cell differently.
    """
    values = parse_numbers(cells)
    if scaling == _BINARY:
        if _are_truths(cells):
            return parse_truths(cells)
        allowed = np.isin(values, (0.0, 1.0))
    elif all(float(end).is_integer() for end in (scaling[0] - scaling[1], scaling[0] + scaling[1])):
        allowed = values == np.trunc(values)
    else:
        return values  # bounds of an integer column are whole numbers
    if not (allowed | np.isnan(values)).all():
        raise InvalidArgument(
            f"Column {source!r} holds numbers that an integer or binary column does not allow, and the design does "
            f"not state the column's type. {_REMEDY}"
        )
    return values


def _are_truths(cells: Cells) -> bool:
    """Whether only a binary column has such cells.

    At least one is true or false, and all others are truth values or empty.
    """
    if isinstance(cells, np.ndarray):
        return False
    filled = [cell for cell in cells if cell.strip(SPACES)]
    return bool(np.isnan(parse_numbers(filled)).any() and not np.isnan(parse_truths(filled)).any())


def find_undeclared_codes(source: str | None, named: Sequence[str], cells: Cells) -> Array:
    """Each cell's index in ``named``, ``(n,)``; NaN for an empty cell.

    Raises ``InvalidArgument`` for other labels: they may be the reference category, or undeclared.
    """
    codes = Categories(named).codes(cells)
    assert not isinstance(cells, np.ndarray), "the cells of a category are texts"
    if any(cells[place].strip(SPACES) for place in np.flatnonzero(np.isnan(codes)).tolist()):
        raise InvalidArgument(
            f"Column {source!r} holds labels that the design does not name, and the design does not state the "
            f"reference category. {_REMEDY}"
        )
    return codes
