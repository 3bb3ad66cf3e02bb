"""Clipped sums of documents' words by their topics."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from app.inference.core.model import Array32, Array64
from app.inference.core.query import Integers
from app.inference.core.statistics import TOPIC_SUM, DocumentModel, RowEncoder
from app.inference.private_zone.mechanisms import GRID, BadQuery, clip_to_grid, raise_clip
from app.inference.private_zone.queries.blocks import check_array, iterate_unit_blocks

LEAST_LIKELIHOOD = 1e-8
"""Least value of a belief. Products of two such values have squares in the normal range (W14)."""
_SPREAD = 2654435761
"""Absent rows read the belief at scattered places, as words do: this is 2^32 over the golden ratio."""


@dataclass(frozen=True, slots=True, eq=False)
class TopicSum:
    """The sum of clipped documents: their expected words by topic and code.

    The Frobenius norm of a document is at most ``clip``. A unit is a document, and its rows are its words. ``belief``
    ``(K, V)`` are likelihoods of words under topics, between :data:`LEAST_LIKELIHOOD` and 1. A document's words have
    topics that depend on each other, so the sum is over documents. It has an entry for each topic and each word that it
    contains. Entries are clipped and rounded together, then added at their places in the exact sum. The answer is
    ``(K V,)``, topic by topic.
    """

    belief: Array64
    clip: float
    kind: ClassVar[str] = TOPIC_SUM

    @property
    def length(self) -> int:
        """One value for each topic and each word of the vocabulary."""
        return self.belief.size

    def check(self, model: DocumentModel, design: RowEncoder) -> None:
        """Raise BadQuery for a belief of another shape or out of range."""
        check_array(self.belief, model.belief_shape, "belief")
        if not (np.all(self.belief >= LEAST_LIKELIHOOD) and np.all(self.belief <= 1)):
            raise BadQuery("a likelihood is out of its range")
        raise_clip(self.clip)

    def sum(self, model: DocumentModel, rows: Array32, present: NDArray[np.bool_], rows_per_unit: int) -> Integers:
        """Compute the sum as :meth:`app.inference.core.query.Query.sum`."""
        topics, words = self.belief.shape
        likelihoods, clip = np.ascontiguousarray(self.belief.T, dtype=np.float32), raise_clip(self.clip)
        total = np.zeros(words * topics, dtype=np.int64)
        with np.errstate(all="ignore"):
            for block, there in iterate_unit_blocks(rows, present, rows_per_unit, topics):
                codes, known = _read_codes(block[: len(there), 0], there, words)
                shape = (-1, rows_per_unit)
                counts = model.assign_topics(codes.reshape(shape), known.reshape(shape), likelihoods)
                units = np.any(known.reshape(shape), axis=1)
                whole = clip_to_grid(counts.reshape(len(units), -1), units, clip)
                places = codes[:, None] * topics + np.arange(topics)
                np.add.at(total, places.ravel(), whole.ravel().astype(np.int64))
        return np.ascontiguousarray(total.reshape(words, topics).T).ravel()

    def scales(self, sigma: float) -> float:
        """``sigma K`` for every value."""
        return sigma * GRID

    def answer(self, noised: Integers) -> Array64:
        """Convert to expected numbers of words, ``(K V,)``."""
        return noised.astype(np.float64) * (raise_clip(self.clip) / GRID)


def _read_codes(values: Array32, present: NDArray[np.bool_], words: int) -> tuple[NDArray[np.intp], NDArray[np.bool_]]:
    """Read codes ``(n,)``, and whether each is a word. Total.

    Places without a word get codes that depend on the place alone.
    """
    known = present & (values >= 0) & (values < words)
    # 0 times a code that is not finite is not a number, so the code is bounded first.
    bounded = np.fmax(np.fmin(values, np.float32(words - 1)), np.float32(0)).astype(np.intp)
    spread = np.arange(len(values), dtype=np.intp) * _SPREAD % words
    return bounded * known + spread * ~known, known
