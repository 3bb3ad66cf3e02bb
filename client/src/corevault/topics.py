"""Topics of documents: the belief of ``latent-dirichlet-allocation``."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import digamma, gammaln

from corevault._arguments import require_whole_number
from corevault._show import make_table
from corevault.errors import InvalidArgument, WrongType

Array = NDArray[np.float64]

_SWEEPS = 200
_ENOUGH = 1e-6
"""Largest change of a document's topics, as a share of its words, at which the search for them ends."""


@dataclass(frozen=True, eq=False, repr=False)
class Topics:
    """K topics over V words.

    Topic k has the Dirichlet distribution ``concentration[k]`` over ``words``, so ``concentration`` is ``(K, V)``. The
    topics of a document have the Dirichlet prior ``document_concentration`` ``(K,)``.

    >>> Topics(("fever", "fall"), np.array([[60.0, 1.0], [2.0, 80.0]]), np.array([0.1, 0.1]))
    Topics(2 topics over 2 words)
    """

    words: tuple[str, ...]
    concentration: Array
    document_concentration: Array

    @property
    def probabilities(self) -> Array:
        """The expected probability of each word under each topic, ``(K, V)``.

        >>> topics.probabilities.sum(axis=1)
        array([1., 1.])
        """
        return np.asarray(self.concentration / self.concentration.sum(axis=1, keepdims=True))

    def topics(self, n: int = 10) -> Any:
        """The ``n`` most probable words of each topic, with their probabilities.

        The table has a row for each topic and word: ``topic`` counts from 1. It is a DataFrame with this index, or a
        plain ``Table`` if pandas is not installed.

        >>> topics.topics(2)["word"].to_list()
        ['fever', 'cough', 'fall', 'knee']
        """
        require_whole_number(n, "n", lower=1)
        rows = []
        for topic, values in enumerate(self.probabilities):
            best = np.argsort(-values, kind="stable")[:n]
            rows += [
                {"topic": topic + 1, "word": self.words[word], "probability": float(values[word])} for word in best
            ]
        return make_table(rows, index="topic")

    def transform(self, documents: Iterable[Sequence[str]]) -> Array:
        """The expected shares of the topics in each document, ``(documents, K)``.

        A document is a list of words. Words that are not among ``words`` are left out. A document without known words
        has the shares of the prior. The documents stay on this machine.

        >>> topics.transform([["fever", "cough", "fever"], ["fall"]]).round(2).tolist()
        [[0.97, 0.03], [0.08, 0.92]]
        """
        gammas = [self._infer(codes)[0] for codes in self._encode(documents)]
        shares = np.array(gammas).reshape(-1, len(self.concentration))
        return np.asarray(shares / shares.sum(axis=1, keepdims=True))

    def perplexity(self, documents: Iterable[Sequence[str]]) -> float:
        """An upper bound on the perplexity of ``documents``: smaller is better.

        It is ``exp(-bound / words)`` with the variational lower bound on the log-likelihood. Equal probabilities have
        the number of words in the vocabulary. Words that are not among ``words`` are left out.

        >>> round(topics.perplexity([["fever", "cough", "fever"], ["fall", "knee"]]), 1)
        3.0

        Raises ``InvalidArgument`` if the documents have no known word.
        """
        total, count = 0.0, 0
        for codes in self._encode(documents):
            total += self._infer(codes)[1]
            count += len(codes)
        if not count:
            raise InvalidArgument("The documents have no word of the vocabulary; see words.")
        return float(np.exp(-total / count))

    def __repr__(self) -> str:
        return f"Topics({len(self.concentration)} topics over {len(self.words)} words)"

    def _encode(self, documents: Iterable[Sequence[str]]) -> list[NDArray[np.intp]]:
        given: object = documents
        if isinstance(given, str):
            raise WrongType("documents must be a list of documents, each a list of words; it is one text.")
        codes = {word: code for code, word in enumerate(self.words)}
        encoded = []
        for document in documents:
            each: object = document
            if isinstance(each, str):
                raise WrongType("Each document must be a list of words, not one text; split it into words.")
            encoded.append(np.array([codes[word] for word in document if word in codes], dtype=np.intp))
        return encoded

    def _infer(self, codes: NDArray[np.intp]) -> tuple[Array, float]:
        """The Dirichlet parameters ``(K,)`` of a document's topics, and the bound on its log-likelihood."""
        alpha = self.document_concentration
        logs = digamma(self.concentration[:, codes]) - digamma(self.concentration.sum(axis=1, keepdims=True))
        gamma = alpha + len(codes) / len(alpha)
        for _ in range(_SWEEPS):
            last, (phi, _) = gamma, _share(logs, gamma)
            gamma = alpha + phi.sum(axis=1)
            if np.abs(gamma - last).max() <= _ENOUGH * max(len(codes), 1):
                break
        words = _share(logs, gamma)[1]
        expected = digamma(gamma) - digamma(gamma.sum())
        prior = gammaln(alpha.sum()) - gammaln(alpha).sum()
        entropy = gammaln(gamma).sum() - gammaln(gamma.sum())
        return gamma, float(words + prior + entropy + (alpha - gamma) @ expected)


def _share(logs: Array, gamma: Array) -> tuple[Array, float]:
    """The topics ``(K, n)`` of words, and the sum of their log normalisers."""
    values = logs + (digamma(gamma) - digamma(gamma.sum()))[:, None]
    most = values.max(axis=0)
    phi = np.exp(values - most)
    totals = phi.sum(axis=0)
    return phi / totals, float(np.sum(most + np.log(totals)))
