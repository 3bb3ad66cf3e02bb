"""Latent Dirichlet allocation (Park et al. 2020, Algorithm 3), as a conjugate-exponential model.

Topic k is a distribution ``beta_k`` over the V words, with a Dirichlet prior; a document has a distribution over the
topics, also with one. The only statistic is moving: the expected number of words w of topic k, ``(K, V)``. A document
of n words contributes a matrix of Frobenius norm at most n. A typical document of mostly different words has a norm
near ``sqrt(n)``, so the clipping norm is less than that. A larger one adds noise and no signal.

It differs from the published algorithm in two ways. Documents are sampled as the accountant assumes. And noise is
removed from all sums: the published algorithm sets negative sums to zero, and keeps the noise of the others.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Final

import numpy as np
import scipy
from numpy.typing import NDArray

from app.errors import InvalidRequest
from app.inference.conjugate import documents
from app.inference.core import reasons
from app.inference.core.belief import DIRICHLET, make_block
from app.inference.core.facts import Column, DeclaredFacts, suggest_columns
from app.inference.core.model import Array32, Array64
from app.inference.core.plan import ModelSpec, PriorSpec
from app.inference.core.release import DesignColumn, Grade
from app.inference.core.row_source import PRESENT
from app.inference.core.statistics import (
    CERTAIN,
    TOPIC_SUM,
    Averages,
    Conclusion,
    ConjugateModel,
    RowEncoder,
    StatisticBlock,
    measure_signal,
)
from app.inference.models.without_likelihood import LATENT_DIRICHLET
from app.inference.private_zone.queries.topics import LEAST_LIKELIHOOD
from app.inference.private_zone.rowwise import zero_rows_unless

WORDS: Final = "words"
MOST_ROWS: Final = 2000
"""Largest number of words of a document; comparisons of its words take the square of it."""
MOST_VALUES: Final = 1_000_000
"""Largest number of topics times words; an answer then takes about ten seconds of noise."""
BATCH: Final = 3000
LEAST_SIGNAL: Final = CERTAIN
"""Least signal of a usable release: sums beyond independence of words and topics, over their noise.

On four generated corpora and on news, topics predict new documents worse than one topic of all words from 2 to 4 down.
The share of noise is .25 to 1 there (docs/lab/topic-grades.md).
"""


@dataclass(frozen=True, slots=True)
class WordEncoder:
    """Encodes the column of words as codes ``(n, 1)``."""

    column: Column

    @property
    def columns(self) -> tuple[DesignColumn, ...]:
        """The column, whose categories the belief lists."""
        return (DesignColumn(self.column.name, self.column.name, {"kind": "code"}),)

    def encode(self, table: Mapping[str, NDArray[Any]]) -> tuple[Array32, Array64, NDArray[np.bool_]]:
        """Encode as :meth:`app.inference.core.design.Design.encode`. Row zone."""
        present = np.asarray(table[PRESENT]).astype(bool)
        codes = np.asarray(table[self.column.name]).astype(np.float32)
        present &= (codes >= 0) & (codes < len(self.column.categories))
        zero_rows_unless(codes, present)
        return codes[:, None], np.zeros(len(codes)), present


@dataclass(frozen=True, slots=True)
class LatentDirichlet:
    """The model of ``topics`` topics over ``words``; a belief ``(K, V)`` holds likelihoods of words under topics.

    They are ``exp(E log beta)`` up to a factor of each word, which changes nothing: the largest one of a word is 1.
    """

    words: tuple[str, ...]
    topics: int
    document_concentration: float
    topic_concentration: float
    rows_per_unit: int
    slots: int
    kind: ClassVar[str] = TOPIC_SUM
    tail: ClassVar[float] = 0.0
    largest_radius: ClassVar[float] = 1.0
    usual_iterations: ClassVar[int] = 20
    row_width: ClassVar[int] = 1

    @property
    def usual_batch(self) -> int:
        """A twentieth of the documents, but at least :data:`BATCH`."""
        return max(BATCH, math.ceil(self.slots / 20))

    @property
    def usual_share(self) -> float:
        """Half of the norm of a document of different words with one topic each."""
        return min(1.0, 0.5 / math.sqrt(self.rows_per_unit))

    @property
    def belief_shape(self) -> tuple[int, ...]:
        """``(K, V)``."""
        return (self.topics, len(self.words))

    def fold(self, x: NDArray[np.floating[Any]], y: NDArray[np.floating[Any]]) -> NDArray[Any]:
        """Return the codes ``(n, 1)``."""
        return x

    def list_blocks(self, radius: float, *, moving: bool) -> tuple[StatisticBlock, ...]:
        """List the words by topic, which move; a single word has a norm of at most 1."""
        return (StatisticBlock(WORDS, self.topics * len(self.words), 1.0),) if moving else ()

    def assign_topics(self, words: NDArray[np.intp], present: NDArray[np.bool_], likelihoods: Array32) -> Array32:
        """Compute the expected number of each document's words by topic. Row zone."""
        return documents.assign_topics(words, present, likelihoods, self.document_concentration)

    def start(self, rng: np.random.Generator) -> Array64:
        """Draw nearly equal topics, as Hoffman et al. (*Online learning for LDA*, 2010)."""
        return compute_likelihoods(rng.gamma(100.0, 0.01, self.belief_shape))

    def update(self, averages: Averages, belief: Array64) -> Array64:
        """Compute likelihoods under the Dirichlet distributions of the sums."""
        return compute_likelihoods(self._compute_concentrations(averages))

    def conclude(self, averages: Averages, columns: Sequence[str]) -> Conclusion:
        """Make the Dirichlet distributions of the topics, and the prior of a document's topics."""
        names = [f"topic {index + 1}" for index in range(self.topics)]
        arrays = {"values": np.array(self.words), "concentration": self._compute_concentrations(averages)}
        prior = {"values": np.array(names), "concentration": np.full((1, self.topics), self.document_concentration)}
        blocks = (
            make_block("topics", DIRICHLET, names, arrays),
            make_block("document", DIRICHLET, ("document",), prior),
        )
        sums = averages.sums[WORDS].reshape(self.belief_shape)
        signal = compute_signal(sums, averages.noise[WORDS])
        findings = [(reasons.VARIATIONAL, Grade.CENTRE_ONLY)]
        if not signal > LEAST_SIGNAL:
            findings.append((reasons.NOISE_DOMINATES, Grade.NOT_USABLE))
        return Conclusion(blocks, {"noise_share": compute_noise_share(sums), "signal": signal}, findings)

    def _compute_concentrations(self, averages: Averages) -> Array64:
        return self.topic_concentration + remove_noise(averages.sums[WORDS].reshape(self.belief_shape))


def compute_noise_share(sums: Array64) -> float:
    """Compute the sum of noise in positive ``sums``, divided by the sum of all.

    It is infinite if the sum of all is not positive. Without noise there are no negative sums. Noise makes as much
    positive as negative, so the negative sums show it.
    """
    total = float(sums.sum())
    return float(np.maximum(sums, 0.0).sum()) / total - 1 if total > 0 else math.inf


def compute_signal(sums: Array64, noise: float) -> float:
    """Compute the signal of ``sums`` ``(K, V)`` beyond independence, by :func:`measure_signal`.

    If topics were the same, a sum would be the number of words of its topic times the share of its word. The signal is
    zero if the total may be noise alone: the shares of the words are then not known.
    """
    total = float(sums.sum())
    if not total > CERTAIN * noise * math.sqrt(sums.size):
        return 0.0
    alone = np.outer(sums.sum(axis=1), sums.sum(axis=0) / total)
    return measure_signal(sums, alone, noise)


def remove_noise(sums: Array64) -> Array64:
    """Compute the nearest non-negative matrix ``(K, V)`` with the sums of the rows.

    Noise makes most small sums either negative or too large, and their total is known much better than they are. The
    nearest matrix subtracts one number from each row, and negative differences are zero (Duchi et al., *Efficient
    projections onto the l1-ball*, 2008). A row of a negative sum is zero.
    """
    totals = np.maximum(sums.sum(axis=1, keepdims=True), 0.0)
    falling = -np.sort(-sums, axis=1)
    levels = (np.cumsum(falling, axis=1) - totals) / np.arange(1, sums.shape[1] + 1)
    used = np.maximum(np.count_nonzero(falling > levels, axis=1), 1)
    level = np.take_along_axis(levels, used[:, None] - 1, axis=1)
    return np.asarray(np.maximum(sums - level, 0.0) * (totals > 0))


def compute_likelihoods(concentrations: Array64) -> Array64:
    """Compute ``exp(E log beta)`` ``(K, V)``, divided by its largest value for each word."""
    logs = scipy.special.digamma(concentrations) - scipy.special.digamma(concentrations.sum(axis=1, keepdims=True))
    return np.asarray(np.clip(np.exp(logs - logs.max(axis=0)), LEAST_LIKELIHOOD, 1.0))


def make_statistics(spec: ModelSpec, facts: DeclaredFacts) -> tuple[ConjugateModel, RowEncoder]:
    """Make the model and its encoder.

    Raises:
        InvalidRequest: pointing into ``/model``.
    """
    LATENT_DIRICHLET.check_settings(spec)
    column = _find_words(spec, facts)
    if facts.unit["kind"] != "column":
        raise InvalidRequest.at(
            "/model/family", "This model needs a dataset whose privacy unit is a column that names the document."
        )
    if facts.rows_per_unit > MOST_ROWS:
        raise InvalidRequest.at(
            "/model/family", f"This model takes at most {MOST_ROWS} rows of a privacy unit. Declare fewer max_rows."
        )
    if spec.prior != PriorSpec():
        raise InvalidRequest.at("/model/prior", "This model has concentrations instead of a prior; leave it out.")
    topics = int(LATENT_DIRICHLET.read_setting(spec, "topics"))
    if topics * len(column.categories) > MOST_VALUES:
        raise InvalidRequest.at(
            "/model/topics", f"Topics times words may be at most {MOST_VALUES:,}. Use fewer topics or fewer words."
        )
    model = LatentDirichlet(
        column.categories,
        topics,
        LATENT_DIRICHLET.read_setting(spec, "document_concentration"),
        LATENT_DIRICHLET.read_setting(spec, "topic_concentration"),
        facts.rows_per_unit,
        facts.slots,
    )
    return model, WordEncoder(column)


def _find_words(spec: ModelSpec, facts: DeclaredFacts) -> Column:
    if spec.target is not None:
        raise InvalidRequest.at("/model/target", "This model has no target; leave it out.")
    if len(spec.features) != 1:
        raise InvalidRequest.at("/model/features", "Name one feature: the column of words.")
    column = next((column for column in facts.columns if column.name == spec.features[0]), None)
    if column is None:
        offered = [each.name for each in facts.columns if each.type == "categorical" and len(each.categories) > 1]
        raise InvalidRequest.at("/model/features/0", suggest_columns(str(spec.features[0]), offered))
    if column.name == facts.unit.get("column"):
        raise InvalidRequest.at(
            "/model/features/0", "The column of the privacy unit cannot be modelled; name another column."
        )
    if column.type != "categorical" or len(column.categories) < 2:
        raise InvalidRequest.at("/model/features/0", "The words must be a categorical column of several categories.")
    return column
