"""Small generated corpora, and a plain implementation of variational inference for topics."""

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import digamma

from app.inference.core.facts import Column, DeclaredFacts
from app.inference.core.model import Array64
from app.inference.core.plan import ModelSpec
from support.table import Table

WORDS = 30
TOPICS = 3
LENGTH = 12
SPEC = ModelSpec("latent-dirichlet-allocation", ("word",), None, topics=TOPICS)
FACTS = DeclaredFacts(
    (
        Column("document", "integer", 0, 10**6),
        Column("word", "categorical", categories=tuple(f"w{index}" for index in range(WORDS))),
        Column("length", "real", 0, 1),
    ),
    400,
    {"kind": "column", "column": "document", "max_rows": LENGTH},
    "private",
    1e-6,
)

Codes = NDArray[np.int64]
Presence = NDArray[np.bool_]


def draw_documents(rng: np.random.Generator, documents: int = 400, words: int = WORDS) -> tuple[Codes, Presence]:
    """Draw codes and presence ``(d, LENGTH)``: topics differ in their words."""
    beta = rng.dirichlet(np.full(words, 0.2), size=TOPICS)
    mixes = rng.dirichlet(np.full(TOPICS, 0.2), size=documents) @ beta
    codes = np.array([rng.choice(words, LENGTH, p=mix / mix.sum()) for mix in mixes])
    present = np.arange(LENGTH) < rng.integers(0, LENGTH + 1, documents)[:, None]
    return codes * present, present


def make_table(codes: Codes, present: Presence) -> Table:
    columns: dict[str, NDArray[Any]] = {"word": codes.ravel().astype(np.uint16), "length": np.zeros(codes.size)}
    return Table(columns | {"_present": present.ravel().astype(np.uint8)}, codes.shape[1])


def make_facts(documents: int, length: int = LENGTH) -> DeclaredFacts:
    return replace(FACTS, slots=documents, unit=dict(FACTS.unit) | {"max_rows": length})


def infer_topics(words: Codes, log_beta: Array64, alpha: float, sweeps: int) -> tuple[Array64, Array64]:
    """The topics ``phi (n, K)`` of one document's words and ``gamma (K,)``: Blei et al. 2003, Figure 6."""
    topics = len(log_beta)
    gamma = np.full(topics, alpha + len(words) / topics)
    phi = np.zeros((len(words), topics))
    for _ in range(sweeps):
        logs = log_beta[:, words].T + digamma(gamma) - digamma(gamma.sum())
        phi = np.exp(logs - logs.max(axis=1, keepdims=True))
        phi /= phi.sum(axis=1, keepdims=True)
        gamma = alpha + phi.sum(axis=0)
    return phi, gamma


def sum_topics(codes: Codes, present: Presence, log_beta: Array64, alpha: float, sweeps: int = 20) -> Array64:
    """The exact statistic ``(K, V)`` of all documents, word by word."""
    total = np.zeros_like(log_beta)
    for document, there in zip(codes, present, strict=True):
        words = document[there]
        if len(words):
            phi, _ = infer_topics(words, log_beta, alpha, sweeps)
            np.add.at(total.T, words, phi)
    return total
