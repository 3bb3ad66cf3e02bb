"""What declarations say of design columns before any answer: what is 0 or 1, what -1 or 1, and what excludes what."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from app.inference.core.design import Design
from app.inference.core.model import Array64

_NONE = -1


@dataclass(frozen=True, slots=True, eq=False)
class Declared:
    """Of the k design columns, the intercept left out.

    ``group`` ``(k,)`` numbers the categorical columns whose indicators, 0 or 1, columns are, -1: none. A row is of one
    category at most, so that products of two of a group vanish. ``signs`` ``(k,)``: which are -1 or 1 in every row.
    """

    group: NDArray[np.int64]
    signs: NDArray[np.bool_]

    @property
    def indicators(self) -> NDArray[np.bool_]:
        """Which columns are 0 or 1, ``(k,)``."""
        return np.asarray(self.group != _NONE)

    @property
    def exclusive(self) -> NDArray[np.bool_]:
        """Which pairs of columns are different indicators of one group, ``(k, k)``."""
        alike = np.equal.outer(self.group, self.group) & self.indicators
        return np.asarray(alike & ~np.eye(len(self.group), dtype=np.bool_))

    def shares(self, found: Array64) -> Array64:
        """``found`` ``(k,)`` with indicators' noised shares of rows in [0, 1], and of a group at most 1 together."""
        shares = np.where(self.indicators, np.clip(found, 0.0, 1.0), found)
        for number in np.unique(self.group[self.indicators]):
            members = self.group == number
            shares[members] /= max(1.0, float(shares[members].sum()))
        return shares


def declared(design: Design) -> Declared:
    """What ``design`` says of its columns."""
    widths = [block.stop - block.start for block in design.blocks]
    numbers = [number if column.type == "categorical" else _NONE for number, column in enumerate(design.features)]
    signs = [column.type == "binary" for column in design.features]
    return Declared(np.repeat(np.array(numbers, dtype=np.int64), widths), np.repeat(np.array(signs, np.bool_), widths))
