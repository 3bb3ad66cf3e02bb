"""Batches of a continuous audit: simulated tables, and answers of the oracle that a worker makes for its runs.

Batches take turns: many canaries at once, then one kind of query. Which batch comes next depends on a number alone, so
it does not depend on earlier answers.

The claim of a batch has the exact contribution of its canary, which clipping makes slightly shorter than the clipping
norm. Otherwise the evidence against a true claim would be wrong by a little for each answer, for years.
"""

from dataclasses import dataclass, replace
from functools import cache
from typing import Final

import numpy as np

from app.inference.audit.mechanism import DENSE_SLOTS, SLOTS, Cell, MakeOracle, Sample, compute_share, draw_sample
from app.inference.audit.one_run import OrthogonalTable, draw_canary_sample, make_canary_query
from app.inference.audit.subjects import Subject, list_subjects
from app.inference.conjugate import make_run_problem
from app.inference.private_zone.partition import compute_partial_sum
from app.privacy.audit.laws import AnswerLaw

CANARIES: Final = "canaries"
"""The stream of batches with many canaries."""
BATCHES_PER_TURN: Final = 2
"""The first batch of a turn belongs to :data:`CANARIES`, the second to a kind of query."""
_COUNT: Final = 60
_QUERIES: Final = 40
ANSWERS: Final = _COUNT * _QUERIES
"""Answers of a batch with many canaries."""
_ANSWERS_OF_SUBJECT: Final = 40
_CLAIMS: Final = (
    AnswerLaw(1.0),
    AnswerLaw(0.05, 0.02),
    AnswerLaw(5.0),
    AnswerLaw(1.0, 0.02),
    AnswerLaw(700.0),
    AnswerLaw(0.05, 0.6),
)
"""Noise multipliers and rates. At 0.05, an answer shows whether its canary was in the subsample."""
_SETTINGS: Final = tuple(
    (claim, rows, DENSE_SLOTS if 0.1 < claim.rate < 1 else SLOTS)
    for rows in (1, 3)
    for claim in (AnswerLaw(1.0), AnswerLaw(0.2, 0.3), AnswerLaw(3.0))
)
"""Claim, rows of a unit and slots of each batch about one kind of query."""


@dataclass(frozen=True, slots=True)
class Batch:
    """Answers of one stream, and their claim."""

    claim: AnswerLaw
    sample: Sample


@cache
def list_weights() -> dict[str, float]:
    """Map each stream to its share of the capital: half for many canaries, half for all kinds of queries."""
    names = [subject.name for subject in list_subjects()]
    return {CANARIES: 0.5} | dict.fromkeys(names, 0.5 / len(names))


def find_stream(number: int) -> str:
    """Find the stream of the batch with this number."""
    turn, place = divmod(number, BATCHES_PER_TURN)
    return _list_subjects()[turn % len(_list_subjects())].name if place else CANARIES


def draw_batch(number: int, make_oracle: MakeOracle) -> Batch:
    """Draw the batch with this number; fair coins decide for each answer whether its canary is in."""
    turn, place = divmod(number, BATCHES_PER_TURN)
    if place == 0:
        return draw_canaries(_CLAIMS[turn % len(_CLAIMS)], make_oracle)
    subjects = _list_subjects()
    turn, place = divmod(turn, len(subjects))
    return _draw_subject(subjects[place], *_SETTINGS[(turn + place) % len(_SETTINGS)], make_oracle)


def draw_canaries(claim: AnswerLaw, make_oracle: MakeOracle) -> Batch:
    """Draw answers about many orthogonal canaries."""
    sample = draw_canary_sample(claim, _QUERIES, _COUNT, make_oracle)
    return Batch(replace(claim, shift=min(_compute_canary_share(), 1.0)), sample)


def _draw_subject(subject: Subject, claim: AnswerLaw, rows: int, slots: int, make_oracle: MakeOracle) -> Batch:
    cell = Cell(claim.noise, claim.rate, _ANSWERS_OF_SUBJECT, slots=slots)
    shift = min(_compute_share(subject.name, rows), 1.0)
    return Batch(replace(claim, shift=shift), draw_sample(subject, cell, rows, make_oracle))


@cache
def _list_subjects() -> tuple[Subject, ...]:
    return list_subjects()


@cache
def _compute_share(name: str, rows: int) -> float:
    return compute_share(next(subject for subject in _list_subjects() if subject.name == name), rows)


@cache
def _compute_canary_share() -> float:
    """Compute the contribution of one of many canaries to its coordinate, in clipping norms."""
    plan, facts, query = make_canary_query(AnswerLaw(1.0), _COUNT, 1)
    problem, table = make_run_problem(plan, facts), OrthogonalTable(np.ones(_COUNT))
    total = compute_partial_sum(query, problem.model, problem.design, table, range(_COUNT))
    return float(query.answer(total)[1] / query.clip)
