"""The protocol of conjugate-exponential models: bounded statistics of rows, and the belief that follows from them.

A model has *fixed* statistics, which are functions of a row alone, and *moving* ones, which also depend on the current
belief. Their sums over the rows are all that variational inference needs (Park, Foulds, Chaudhuri & Welling,
*Variational Bayes in private settings*, 2020, Algorithms 1 and 2).
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Protocol

import numpy as np
from numpy.typing import NDArray

from app.inference.core.belief import Block
from app.inference.core.model import Array32, Array64, RowModel
from app.inference.core.reasons import Reason
from app.inference.core.release import DesignColumn, Grade

CERTAIN: Final = 4.0
"""An answer above this many standard deviations of its noise is not noise alone."""
STATISTIC_SUM: Final = "statistic_sum"
"""The kind of the query that sums statistics of rows."""
TOPIC_SUM: Final = "topic_sum"
"""The kind of the query that sums words by their topics, document by document."""
STATISTIC_KINDS: Final = frozenset({STATISTIC_SUM, TOPIC_SUM})


class RowEncoder(Protocol):
    """Maps declared columns to encoded rows, from declared facts alone."""

    @property
    def columns(self) -> tuple[DesignColumn, ...]:
        """The source and transform of each column, as a release states them."""

    def encode(self, table: Mapping[str, NDArray[np.generic]]) -> tuple[Array32, Array64, NDArray[np.bool_]]:
        """Encode a gathered table as :meth:`app.inference.core.design.Design.encode`. Row zone."""


@dataclass(frozen=True, slots=True)
class StatisticBlock:
    """One statistic of a row.

    ``length`` is its number of values. ``bound`` is the largest L2 norm of a row's values, proven for every row and
    belief. A symmetric matrix is packed by :func:`pack_symmetric`, so its L2 norm is the Frobenius norm.
    """

    name: str
    length: int
    bound: float


@dataclass(frozen=True, slots=True)
class Averages:
    """Estimated sums over all rows that were cut to ``radius``.

    ``sums`` are by block, and ``noise`` is the standard deviation of each value of a block.
    """

    sums: Mapping[str, Array64]
    noise: Mapping[str, float]
    radius: float


@dataclass(frozen=True, slots=True)
class Conclusion:
    """The belief of a run: its blocks, figures for the diagnostics, and findings with the best grade of each.

    ``normal`` is the mean ``(D,)``, precision ``(D, D)`` and doubt ``(D, D)`` if the belief is one normal.
    """

    blocks: tuple[Block, ...]
    figures: Mapping[str, float]
    findings: Sequence[tuple[Reason, Grade]]
    normal: tuple[Array64, Array64, Array64 | None] | None = None


class ConjugateModel(RowModel, Protocol):
    """A conjugate-exponential model.

    A belief is one array: the expectations that moving statistics depend on.
    """

    @property
    def kind(self) -> str:
        """The kind of the query that sums its statistics."""

    @property
    def usual_share(self) -> float | None:
        """The clipping norm of a unit, as a share of the largest possible one; None: units are never clipped."""

    @property
    def belief_shape(self) -> tuple[int, ...]:
        """The shape of a belief."""

    @property
    def largest_radius(self) -> float:
        """The largest radius: rows that are cut to it do not change. From declared facts."""

    @property
    def usual_iterations(self) -> int:
        """The number of iterations of a request that states none; 1 if nothing moves."""

    @property
    def usual_batch(self) -> int | None:
        """The number of slots in a batch of a request that states no rate; None: all."""

    @property
    def tail(self) -> float:
        """The share of rows that the clipping radius may cut; 0: rows are not cut."""

    def list_blocks(self, radius: float, *, moving: bool) -> tuple[StatisticBlock, ...]:
        """List the moving or the fixed statistics of rows that are cut to ``radius``; there may be none."""

    def start(self, rng: np.random.Generator) -> Array64:
        """Make the first belief, which depends on no row."""

    def update(self, averages: Averages, belief: Array64) -> Array64:
        """Make the next belief from estimated sums and the last belief. Post-processing, and total."""

    def conclude(self, averages: Averages, columns: Sequence[str]) -> Conclusion:
        """Make the released belief from estimated sums."""


class Statistics(ConjugateModel, Protocol):
    """A conjugate-exponential model whose statistics are sums over single rows. Row zone: :meth:`contribute`."""

    def contribute(self, rows: Array32, belief: Array64, radius: float, *, moving: bool) -> Array32:
        """Compute each row's statistics ``(n, sum of lengths)``, block after block. Row zone.

        A null row gives zeros. The bounds of :meth:`list_blocks` hold for every row and belief.
        """


class DocumentModel(ConjugateModel, Protocol):
    """A conjugate-exponential model of units whose rows share hidden variables. Row zone: :meth:`assign_topics`."""

    def assign_topics(self, words: NDArray[np.intp], present: NDArray[np.bool_], likelihoods: Array32) -> Array32:
        """Compute the expected number of each document's words by topic ``(d, n, K)``. Row zone, and total.

        ``words`` ``(d, n)`` are codes below V, ``present`` is ``(d, n)``, and ``likelihoods`` ``(V, K)`` is the belief.
        A repeated word counts where it is first, and all other places are zero. So are absent places.
        """


def compute_units(blocks: Sequence[StatisticBlock], factor: float) -> Array64:
    """Compute the unit ``C_b / a_b`` of every value, ``(sum of lengths,)``.

    Values in these units have a joint L2 norm of at most 1. The shares ``a_b`` have ``sum a_b^2 = 1``; they minimise
    the total standardised error ``sum_b d_b / a_b^2`` of blocks with ``d_b`` values, each in units of its bound:
    ``a_b^2`` is proportional to ``sqrt(d_b)``. The bound of a unit is ``factor`` times that of a row.
    """
    shares = np.array([math.sqrt(block.length) for block in blocks])
    shares = np.sqrt(shares / shares.sum())
    units = [factor * block.bound / share for block, share in zip(blocks, shares, strict=True)]
    return np.repeat(units, [block.length for block in blocks])


def measure_signal(sums: Array64, expected: Array64, noise: float | Array64) -> float:
    """Measure the signal in ``sums``: the root mean square of their distance to those ``expected`` without a signal.

    The unit is the deviation of the ``noise``, which adds 1 to the mean square; that is subtracted.
    All arrays have one shape.
    """
    return math.sqrt(max(float(np.mean(((sums - expected) / noise) ** 2)) - 1, 0.0))


def split_answer(answer: Array64, blocks: Sequence[StatisticBlock]) -> dict[str, Array64]:
    """Split an answer ``(sum of lengths,)`` into blocks by name."""
    ends = np.cumsum([block.length for block in blocks])
    return {block.name: answer[end - block.length : end] for block, end in zip(blocks, ends, strict=True)}


def pack_symmetric(matrix: Array64) -> Array64:
    """Pack a symmetric ``(D, D)`` matrix: its upper triangle, row by row, off-diagonal values times sqrt(2)."""
    row, column = np.triu_indices(len(matrix))
    return matrix[row, column] * np.where(row == column, 1.0, math.sqrt(2))


def unpack_symmetric(packed: Array64) -> Array64:
    """Unpack what :func:`pack_symmetric` packed."""
    side = round((math.sqrt(8 * len(packed) + 1) - 1) / 2)
    row, column = np.triu_indices(side)
    matrix = np.zeros((side, side))
    matrix[row, column] = packed * np.where(row == column, 1.0, math.sqrt(0.5))
    return matrix + np.triu(matrix, 1).T


def compute_packed_length(side: int) -> int:
    """Compute the number of values of a packed matrix."""
    return side * (side + 1) // 2


def multiply_pairs(values: Array32) -> Array32:
    """Compute the packed matrices ``v v'`` of rows v ``(n, D)``. Row zone.

    The result is ``(n, D (D + 1) / 2)``.
    """
    row, column = np.triu_indices(values.shape[1])
    products: Array32 = values[:, row] * values[:, column]
    products *= np.where(row == column, 1.0, math.sqrt(2)).astype(np.float32)
    return products


def raise_to_noise(matrix: Array64, noise: float) -> tuple[Array64, bool]:
    """Raise the eigenvalues of ``matrix`` ``(D, D)`` to the spectral edge of its noise.

    Also returns whether one was below four times this edge. The error of the inverse is then not small.

    ``noise`` is the standard deviation of packed values. Symmetric noise of that size has eigenvalues up to about
    ``noise sqrt(2 D)``. An eigenvalue below it may be noise alone.
    """
    floor = noise * math.sqrt(2 * len(matrix))
    values, vectors = np.linalg.eigh(matrix)
    return (vectors * np.maximum(values, floor)) @ vectors.T, bool(values[0] < CERTAIN * floor)
