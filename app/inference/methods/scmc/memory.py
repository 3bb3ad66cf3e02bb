"""Memories of a stream: weighted rows, and two ways to keep at most M of them.

A coreset keeps the rows and weights whose weighted log-likelihood is closest to that of the memory before. Distance is
the variance over the particles. With ``v_j = w_j sqrt(W_p) f_j(theta_p)``, where ``f_j`` is centred over the particles,
it is the Hilbert problem ``min |sum_j v_j - sum_j c_j v_j|`` of :mod:`app.inference.methods.hilbert.omp`, and the new
weights are ``c_j w_j``. Source: Beronov, Weilbach, Wood & Campbell, *Sequential Core-Set Monte Carlo*.

A reservoir is a uniform sample (Vitter, *ACM TOMS* 1985, Algorithm R), in which each row counts for ``seen / M`` rows.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from app.inference.core.model import Array64
from app.inference.methods.hilbert.omp import omp
from app.inference.methods.hilbert.vectors import sum_vectors
from app.inference.methods.public_table import Selection

Indices = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Memory:
    """The k rows of a memory.

    Attributes:
        indices: their places in the table, ``(k,)``.
        rows: folded, ``(k, row_width)``.
        weights: ``(k,)``.
        potentials: their log-likelihoods at the particles, ``(k, P)``.
    """

    indices: Indices
    rows: Array64
    weights: Array64
    potentials: Array64

    def append(self, other: "Memory") -> "Memory":
        """Append the rows of ``other``, at the same particles."""
        return Memory(
            np.append(self.indices, other.indices),
            np.vstack((self.rows, other.rows)),
            np.append(self.weights, other.weights),
            np.vstack((self.potentials, other.potentials)),
        )

    def select(self, places: Indices, weights: Array64) -> "Memory":
        """Keep the rows at ``places`` with these weights."""
        return Memory(self.indices[places], self.rows[places], weights, self.potentials[places])


Compress = Callable[[np.random.Generator, Memory, Array64, int], Memory]
"""Reduces a memory, given the particles' weights ``(P,)`` and the number of its last rows that are new."""


def compress_to_coreset(size: int) -> Compress:
    """Keep at most ``size`` rows with new weights; a smaller memory stays as it is."""

    def compress(_: np.random.Generator, memory: Memory, particle_weights: Array64, new: int) -> Memory:
        count = len(memory.indices)
        if count <= size:
            return memory
        centred = memory.potentials - (memory.potentials @ particle_weights)[:, None]
        vectors = memory.weights[:, None] * np.sqrt(particle_weights) * centred
        total = sum_vectors(vectors.astype(np.float32))
        kept = max(size - new, size // 2)
        longest = np.argsort(-total.lengths[: count - new], kind="stable")[:kept]
        found = omp(total, size, Selection(longest, np.ones(len(longest))))
        return memory.select(found.indices, memory.weights[found.indices] * found.weights)

    return compress


def compress_to_reservoir(size: int) -> Compress:
    """Keep a uniform sample of ``size`` of the rows seen.

    Each has the weight ``seen / size``. The index of a row is the number of rows before it.
    """

    def compress(rng: np.random.Generator, memory: Memory, _: Array64, new: int) -> Memory:
        old = len(memory.indices) - new
        places = list(range(old))
        for place in range(old, old + new):
            if len(places) < size:
                places.append(place)
            elif (replaced := int(rng.integers(memory.indices[place] + 1))) < size:
                places[replaced] = place
        kept = np.array(places, dtype=np.int64)
        return memory.select(kept, np.full(len(kept), (memory.indices[-1] + 1) / len(kept)))

    return compress
