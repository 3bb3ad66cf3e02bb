"""An audit with hundreds of canaries in one run.

Canary j is 1 in column j and 0 in all other columns, so the contributions to a sum of means are orthogonal. One answer
then holds one aligned answer for each canary. They do not disturb each other: each coordinate has separate noise, and
each unit enters subsamples separately.
"""

from collections.abc import Mapping
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from app.inference.audit.mechanism import MakeOracle, Sample, draw_coins, make_oracle
from app.inference.audit.subjects import make_plan
from app.inference.audit.tables import make_facts
from app.inference.core.facts import Column, DeclaredFacts
from app.inference.core.model import Array64
from app.inference.core.plan import MechanismPlan, ModelSpec
from app.inference.core.row_source import PRESENT
from app.inference.private_zone.queries import MeanSum
from app.privacy.audit.bounds import Counts, bound_family, choose_threshold, count_positives
from app.privacy.audit.laws import AnswerLaw
from app.privacy.audit.sequential import LawWatch
from app.privacy.events import AtomicEvent, GaussianEvent, PoissonSampledEvent

CANARIES: Final = 200
QUERIES: Final = 50
"""Queries about one table of canaries."""
_CLIP: Final = 2.0
_SCALE: Final = 1e-4
"""Scale of coordinates. The count, which all canaries share, is then this share of a contribution."""


class OrthogonalTable:
    """A table of canaries.

    Unit j is canary j where ``present`` ``(m,)`` is 1, and null elsewhere.
    """

    def __init__(self, present: Array64) -> None:
        self.present, self.slots, self.rows_per_slot = present, len(present), 1

    def gather(self, indices: NDArray[np.int64]) -> Mapping[str, NDArray[Any]]:
        """Read units as :meth:`app.inference.core.row_source.RowSource.gather`."""
        there = self.present[indices]
        values: dict[str, NDArray[Any]] = {f"x{j}": there * (np.asarray(indices) == j) for j in range(self.slots)}
        return values | {"flag": np.zeros(len(indices)), PRESENT: there.astype(np.uint8)}


def make_canary_query(claim: AnswerLaw, canaries: int, queries: int) -> tuple[MechanismPlan, DeclaredFacts, MeanSum]:
    """Plan ``queries`` queries about a table of ``canaries`` canaries; return plan, facts and query."""
    names = tuple(f"x{j}" for j in range(canaries))
    facts = make_facts((*(Column(name, "real", -1, 1) for name in names), Column("flag", "binary")), canaries, 1)
    spec = ModelSpec("logistic-regression", names, "flag")
    event: AtomicEvent = GaussianEvent(claim.noise)
    if claim.rate < 1:
        event = PoissonSampledEvent(claim.rate, GaussianEvent(claim.noise))
    query = MeanSum(_SCALE, canaries + 1, intercept=True, clip=_CLIP)
    return make_plan(spec, query, event, queries), facts, query


def ask_about_canaries(
    claim: AnswerLaw, present: Array64, queries: int, make_oracle: MakeOracle = make_oracle
) -> Array64:
    """Run ``queries`` queries about a table with these canaries; return aligned answers ``(queries, m)``."""
    plan, facts, query = make_canary_query(claim, len(present), queries)
    oracle = make_oracle(plan, facts, OrthogonalTable(present))
    return np.stack([oracle.ask(query)[1:] / _CLIP for _ in range(queries)])


def draw_canary_sample(
    claim: AnswerLaw, queries: int, canaries: int = CANARIES, make_oracle: MakeOracle = make_oracle
) -> Sample:
    """Draw ``queries * canaries`` aligned answers, half of them with the canary on average."""
    coins = draw_coins(canaries)
    answers = ask_about_canaries(claim, coins, queries, make_oracle)
    return Sample(answers.ravel(), np.tile(coins, queries))


def score_one_run(claim: AnswerLaw, queries: int, canaries: int) -> Sample:
    """Run once, and score each canary by the sum of its log-likelihood ratios."""
    coins = draw_coins(canaries)
    return Sample(claim.compute_log_ratio(ask_about_canaries(claim, coins, queries)).sum(axis=0), coins)


def count_correct_guesses(scores: Sample, guesses: int) -> int:
    """Guess the most certain coins: in for the highest scores, out for the lowest; count correct guesses."""
    order = np.argsort(scores.answers)
    lowest, highest = order[: guesses // 2], order[len(order) - (guesses - guesses // 2) :]
    return int(scores.present[highest].sum() + (1 - scores.present[lowest]).sum())


def count_correct_in_runs(claim: AnswerLaw, queries: int, canaries: int, runs: int) -> Array64:
    """Run ``runs`` times, and guess every coin by its likelihood ratio; count correct guesses in each run."""
    scores = (score_one_run(claim, queries, canaries) for _ in range(runs))
    return np.array([float(np.sum((each.answers > 0) == (each.present > 0))) for each in scores])


def count_canary_positives(claim: AnswerLaw, answers: int, confidence: float) -> tuple[Counts, float]:
    """Ask about fresh canaries, ``answers`` times in all, and count positives.

    The threshold follows from the claim and the sizes, before the first answer.

    Returns:
        The counts, and the largest logarithm of the evidence against the claimed law.
    """
    half = answers // 2
    threshold = choose_threshold(claim, half, half, lambda counts: bound_family(counts, claim, confidence))
    watch, counts, evidence = LawWatch(claim), Counts(0, 0, 0, 0), 0.0
    while counts.present + counts.absent < answers:
        sample = draw_canary_sample(claim, QUERIES)
        counts += count_positives(sample.answers, sample.present, threshold)
        evidence = max(evidence, float(watch.add(sample.answers, sample.present).max()))
    return counts, evidence
