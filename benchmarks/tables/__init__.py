"""Random and real tables by kind, to judge private methods on fresh tables.

``Tables(seed).draw(number)`` gives one table. Each block of consecutive numbers holds every kind, in random order, so
every first part of a sequence is a balanced sample.

Small seeds are for development. Reporting programs draw a fresh seed (:func:`draw_seed`) and print it. A figure that
chose a rule or a constant is no longer a report, so no code may use a reported seed.
"""

import secrets
from collections.abc import Callable
from typing import Final, NamedTuple

import numpy as np

from benchmarks.tables.drawn import Drawn, name_case
from benchmarks.tables.extremes import DEGENERATE, RARE
from benchmarks.tables.misfits import MISFITS
from benchmarks.tables.real import REAL
from benchmarks.tables.well_behaved import WELL_BEHAVED

DEVELOPMENT_SEEDS: Final = 2**32
"""Seeds below this are for development; reporting programs draw larger ones."""
_ORDER, _TABLE = 1, 2
"""Streams of a seed: the order of kinds, and the tables."""


class Kind(NamedTuple):
    """A kind of table; ``weight`` is the number of tables in a block."""

    group: str
    draw: Callable[[np.random.Generator], Drawn]
    weight: int


KINDS: Final = {
    name: Kind(group, draw, weight)
    for group, kinds, weight in (
        ("well-behaved", WELL_BEHAVED, 2),
        ("misfit", MISFITS, 1),
        ("rare", RARE, 1),
        ("degenerate", DEGENERATE, 1),
        ("real", REAL, 4),
    )
    for name, draw in kinds.items()
}


def draw_seed() -> int:
    """Draw a seed that no development run has used."""
    return DEVELOPMENT_SEEDS + secrets.randbits(48)


class Tables:
    """The tables of a seed. A table depends on the seed, its number and ``kinds`` only."""

    def __init__(self, seed: int, kinds: tuple[str, ...] = tuple(KINDS)) -> None:
        self.seed, self.kinds = seed, kinds
        self._block = [name for name in kinds for _ in range(KINDS[name].weight)]

    def kind(self, number: int) -> str:
        """Give the kind of a table."""
        block, place = divmod(number, len(self._block))
        order = np.random.default_rng((self.seed, _ORDER, block)).permutation(len(self._block))
        return self._block[int(order[place])]

    def draw(self, number: int) -> Drawn:
        """Draw a table."""
        drawn = KINDS[self.kind(number)].draw(np.random.default_rng((self.seed, _TABLE, number)))
        return name_case(drawn, f"table {number} of seed {self.seed}")
