"""Batches of a continuous audit: simulated tables, and answers of the oracle that a worker makes for its runs.

Batches take turns: many canaries at once, then one kind of query. Which batch comes next depends on a number alone, so
it does not depend on earlier answers.

The claim of a batch has the exact contribution of its canary, which clipping makes slightly shorter than the clipping
norm. Otherwise the evidence against a true claim would be wrong by a little for each answer, for years.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from typing import Final

import numpy as np

from app.inference.audit.mechanism import DENSE_SLOTS, SLOTS, Sample, compute_share
from app.inference.audit.one_run import OrthogonalTable, draw_coins, make_canary_query
from app.inference.audit.subjects import Subject, list_subjects, read_answer
from app.inference.conjugate import make_run_problem
from app.inference.core.facts import DeclaredFacts
from app.inference.core.model import Array64
from app.inference.core.plan import MechanismPlan
from app.inference.core.query import Oracle
from app.inference.core.row_source import RowSource
from app.inference.private_zone.partition import compute_partial_sum
from app.privacy.audit.laws import AnswerLaw

MakeOracle = Callable[[MechanismPlan, DeclaredFacts, RowSource], Oracle]
"""Makes the oracle of a plan about a table, as a run of a job does."""

CANARIES: Final = "canaries"
"""The stream of batches with many canaries."""
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
    turn, place = divmod(number, 2)
    return _list_subjects()[turn % len(_list_subjects())].name if place else CANARIES


def draw_batch(number: int, make_oracle: MakeOracle) -> Batch:
    """Draw the batch with this number; fair coins decide for each answer whether its canary is in."""
    turn = number // 2
    if number % 2 == 0:
        return draw_canaries(_CLAIMS[turn % len(_CLAIMS)], make_oracle)
    subjects = _list_subjects()
    turn, place = divmod(turn, len(subjects))
    return _draw_subject(subjects[place], *_SETTINGS[(turn + place) % len(_SETTINGS)], make_oracle)


def draw_canaries(claim: AnswerLaw, make_oracle: MakeOracle) -> Batch:
    """Draw answers about many orthogonal canaries."""
    coins = draw_coins(_COUNT)
    plan, facts, query = make_canary_query(claim, _COUNT, _QUERIES)
    oracle = make_oracle(plan, facts, OrthogonalTable(coins))
    answers = np.stack([oracle.ask(query)[1:] / query.clip for _ in range(_QUERIES)])
    share = _compute_canary_share()
    return Batch(replace(claim, shift=min(share, 1.0)), Sample(answers.ravel(), np.tile(coins, _QUERIES)))


def _draw_subject(subject: Subject, claim: AnswerLaw, rows: int, slots: int, make_oracle: MakeOracle) -> Batch:
    coins = draw_coins(_ANSWERS_OF_SUBJECT)
    direction, answers = _compute_direction(subject.name, rows), np.empty(len(coins))
    for present in (False, True):
        chosen = np.flatnonzero(coins == present)
        if len(chosen):
            table = subject.make_table(slots, rows, present=present)
            plan = subject.make_plan(claim.noise, claim.rate, len(chosen))
            oracle = make_oracle(plan, table.facts, table)
            answers[chosen] = [read_answer(subject.query, oracle.ask(subject.query)) @ direction for _ in chosen]
    shift = min(_compute_share(subject.name, rows), 1.0)
    return Batch(replace(claim, shift=shift), Sample(answers, coins))


@cache
def _list_subjects() -> tuple[Subject, ...]:
    return list_subjects()


def _find_subject(name: str) -> Subject:
    return next(subject for subject in _list_subjects() if subject.name == name)


@cache
def _compute_share(name: str, rows: int) -> float:
    return compute_share(_find_subject(name), rows)


@cache
def _compute_direction(name: str, rows: int) -> Array64:
    subject = _find_subject(name)
    contribution = subject.compute_contribution(rows)
    return contribution / (np.linalg.norm(contribution) * subject.clip)


@cache
def _compute_canary_share() -> float:
    """Compute the contribution of one of many canaries to its coordinate, in clipping norms."""
    plan, facts, query = make_canary_query(AnswerLaw(1.0), _COUNT, 1)
    problem, table = make_run_problem(plan, facts), OrthogonalTable(np.ones(_COUNT))
    total = compute_partial_sum(query, problem.model, problem.design, table, range(_COUNT))
    return float(query.answer(total)[1] / query.clip)
