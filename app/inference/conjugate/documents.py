"""Topics of the words of documents, by variational inference. Row zone: total, and no branch on values or presence.

Source: Park et al., *Variational Bayes in private settings*, 2020, Equations 21 and 22; Blei, Ng & Jordan, *Latent
Dirichlet allocation*, JMLR 2003.
"""

from typing import Final

import numpy as np
from numpy.typing import NDArray

from app.inference.core.model import Array32

SWEEPS: Final = 20
LEAST_SHARE: Final = np.float32(1e-8)
_SHIFTS: Final = 6
"""Steps of the recurrence ``psi(x) = psi(x + 1) - 1 / x`` before the asymptotic series."""


def assign_topics(
    words: NDArray[np.intp], present: NDArray[np.bool_], likelihoods: Array32, concentration: float
) -> Array32:
    """Compute the expected number of each document's words by topic ``(d, n, K)``.

    A document's topics ``theta`` have a Dirichlet prior of ``concentration``. Its words have topics with
    ``q(k) = phi_nk``, proportional to ``likelihoods[w_n, k] exp(E log theta_k)``, and ``q(theta)`` is Dirichlet of
    ``gamma = concentration + sum_n phi_n``. Both are updated in turn, :data:`SWEEPS` times, from ``gamma`` with equal
    topics. The words of one kind have one ``phi``; it is multiplied by their number where the first one is, and is
    zero at the others. So the Frobenius norm is at most n: ``|phi|_2 <= 1``.

    Args:
        words: codes ``(d, n)``.
        present: ``(d, n)``.
        likelihoods: ``(V, K)``, between 1e-8 and 1.
        concentration: of the prior, at least 0.01.
    """
    there = present.astype(np.float32)
    likely = likelihoods[words]
    topics = np.float32(likelihoods.shape[1])
    alpha = np.float32(concentration)
    gamma = np.repeat(alpha + there.sum(axis=1, keepdims=True) / topics, likelihoods.shape[1], axis=1)
    for _ in range(SWEEPS):
        shares = _compute_shares(gamma)
        ratios = there / np.matmul(likely, shares[:, :, None])[:, :, 0]
        gamma = alpha + shares * np.matmul(ratios[:, None, :], likely)[:, 0, :]
    likely *= shares[:, None, :]
    likely *= (ratios * _count_words(words, present))[:, :, None]
    return likely


def _compute_shares(gamma: Array32) -> Array32:
    """Compute ``exp(E log theta)`` ``(d, K)``, up to a factor of each document."""
    logs = compute_digamma(gamma)
    logs -= logs.max(axis=1, keepdims=True)
    return np.maximum(np.exp(logs), LEAST_SHARE)


def compute_digamma(values: Array32) -> Array32:
    """Compute the digamma function of positive ``values``, by the same steps for every value."""
    shifted, total = values.copy(), np.zeros_like(values)
    for _ in range(_SHIFTS):
        total -= 1 / shifted
        shifted += 1
    square = 1 / (shifted * shifted)
    series = square * (np.float32(1 / 12) - square * (np.float32(1 / 120) - square * np.float32(1 / 252)))
    return np.asarray(total + np.log(shifted) - np.float32(0.5) / shifted - series)


def _count_words(words: NDArray[np.intp], present: NDArray[np.bool_]) -> Array32:
    """Count how often a document has each word ``(d, n)``: at its first place, and zero at others."""
    codes = words.astype(np.int32)
    same = (codes[:, :, None] == codes[:, None, :]) & present[:, None, :]
    earlier = np.tril(np.ones(same.shape[1:], dtype=bool), -1)
    counts = same.sum(axis=2, dtype=np.int32)
    repeats = (same & earlier).sum(axis=2, dtype=np.int32)
    first: Array32 = (counts * (repeats == 0) * present).astype(np.float32)
    return first
