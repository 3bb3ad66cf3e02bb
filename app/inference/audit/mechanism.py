"""The audit of the mechanism: many answers on two neighbouring tables, against the claimed law.

Answers come from the oracle of real runs, with its sampler, clipping, grid and noise. A fair coin decides for each
answer whether the canary is in, as the tests of :mod:`app.privacy.audit.sequential` assume.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from app.inference.audit.subjects import Subject, list_subjects, read_answer
from app.inference.conjugate import make_run_problem
from app.inference.core.facts import DeclaredFacts
from app.inference.core.model import Array64
from app.inference.core.plan import MechanismPlan
from app.inference.core.query import Oracle
from app.inference.core.row_source import RowSource
from app.inference.private_zone.mechanisms import DiscreteGaussian
from app.inference.private_zone.oracle import ClippedGaussianOracle
from app.inference.private_zone.rng import make_monte_carlo_generator, make_sampling_generator
from app.privacy.audit.bounds import (
    Counts,
    bound_epsilon,
    bound_epsilon_by_shape,
    bound_family,
    choose_threshold,
    count_positives,
    is_refuted,
)
from app.privacy.audit.laws import AnswerLaw
from app.privacy.audit.sequential import LawWatch, PrivacyWatch

MakeOracle = Callable[[MechanismPlan, DeclaredFacts, RowSource], Oracle]
"""Makes the oracle of a plan about a table, as a run of a job does."""

CONFIDENCE: Final = 0.999
DELTA: Final = 1e-6
SLOTS: Final = 8
"""Slots of the simulated tables. A subsample of so few is drawn by its gaps."""
DENSE_SLOTS: Final = 400
"""Slots of the tables at rates at which a subsample is drawn without replacement."""


@dataclass(frozen=True, slots=True)
class Cell:
    """A setting of the mechanism; ``answers`` is the number of answers for each canary and each size of units."""

    noise: float
    rate: float
    answers: int
    rows_per_unit: Sequence[int] = (1, 3)
    slots: int = SLOTS

    @property
    def claim(self) -> AnswerLaw:
        """The law that the accountant prices."""
        return AnswerLaw(self.noise, self.rate)


@dataclass(frozen=True, slots=True)
class Sample:
    """Aligned ``answers`` ``(n,)`` in clipping norms; ``present`` is 1 where the canary was in, else 0."""

    answers: Array64
    present: Array64


@dataclass(frozen=True, slots=True)
class Finding:
    """The result of one cell.

    ``counts`` are the positives of the test by shape. ``epsilon`` is claimed at :data:`DELTA`. ``by_shape`` and
    ``alone`` are lower bounds at :data:`CONFIDENCE`: within the claimed family of trade-off curves, and from one point
    of the curve. ``law_evidence`` and ``privacy_evidence`` are the largest logarithms of the two e-processes.
    """

    cell: Cell
    counts: Counts
    epsilon: float
    by_shape: float
    alone: float
    law_evidence: float
    privacy_evidence: float
    by_subject: dict[str, float]

    @property
    def share(self) -> float:
        """The shown share of the claimed epsilon."""
        return self.by_shape / self.epsilon

    def holds(self, chance: float) -> bool:
        """Whether neither the counts nor an e-process refute the claim.

        A true claim is refuted with a probability of at most three times ``chance``.
        """
        most = -math.log(chance)
        is_quiet = self.law_evidence < most and self.privacy_evidence < most
        return is_quiet and not is_refuted(self.counts, self.cell.claim, 1 - chance)


def compute_share(subject: Subject, rows_per_unit: int) -> float:
    """Compute the norm of the canary's contribution in clipping norms; above 1 it breaks W5."""
    return float(np.linalg.norm(subject.compute_contribution(rows_per_unit))) / subject.clip


def make_oracle(plan: MechanismPlan, facts: DeclaredFacts, rows: RowSource) -> ClippedGaussianOracle:
    """Make an oracle with the noise and the sampler of runs."""
    model, sampling = make_run_problem(plan, facts).model, make_sampling_generator()
    return ClippedGaussianOracle(model, plan, facts, rows, noise=DiscreteGaussian(), sampling=sampling)


def draw_coins(count: int) -> Array64:
    """Draw where the canary is in, by fair coins."""
    return make_monte_carlo_generator().integers(0, 2, count).astype(np.float64)


def draw_sample(subject: Subject, cell: Cell, rows_per_unit: int, make_oracle: MakeOracle = make_oracle) -> Sample:
    """Draw ``cell.answers`` aligned answers, with the canary in or out by fair coins."""
    coins = draw_coins(cell.answers)
    direction = subject.compute_contribution(rows_per_unit)
    direction /= np.linalg.norm(direction) * subject.clip
    answers = np.empty(cell.answers)
    for present in (False, True):
        chosen = np.flatnonzero(coins == present)
        if len(chosen):
            table = subject.make_table(cell.slots, rows_per_unit, present=present)
            oracle = make_oracle(subject.make_plan(cell.noise, cell.rate, len(chosen)), table.facts, table)
            answers[chosen] = [read_answer(subject.query, oracle.ask(subject.query)) @ direction for _ in chosen]
    return Sample(answers, coins)


def audit_cell(cell: Cell, subjects: Sequence[Subject] | None = None) -> Finding:
    """Audit one cell with every subject. The answers of all subjects obey one claim, so they are pooled."""
    law, privacy = LawWatch(cell.claim), PrivacyWatch(cell.claim)
    samples: dict[str, list[Sample]] = {}
    evidence = {"law": 0.0, "privacy": 0.0}
    for subject in subjects or list_subjects():
        for rows in cell.rows_per_unit:
            sample = draw_sample(subject, cell, rows)
            samples.setdefault(subject.name, []).append(sample)
            for name, watch in (("law", law), ("privacy", privacy)):
                evidence[name] = max(evidence[name], float(watch.add(sample.answers, sample.present).max()))
    return _report(cell, samples, evidence)


def count_sample(answers: Array64, present: Array64, claim: AnswerLaw) -> tuple[Counts, Counts]:
    """Count positives of the best tests, by the shape of the curve and alone."""
    sizes = int(present.sum()), int(len(present) - present.sum())
    by_shape = choose_threshold(claim, *sizes, lambda counts: bound_family(counts, claim, CONFIDENCE))
    alone = choose_threshold(claim, *sizes, lambda counts: bound_epsilon(counts, DELTA, CONFIDENCE))

    return count_positives(answers, present, by_shape), count_positives(answers, present, alone)


def _report(cell: Cell, samples: dict[str, list[Sample]], evidence: dict[str, float]) -> Finding:
    claim, every = cell.claim, [sample for parts in samples.values() for sample in parts]
    by_shape, alone = count_sample(*_join(every), claim)
    epsilon = claim.compute_epsilon(DELTA)

    def bound_shape(counts: Counts) -> float:
        return bound_epsilon_by_shape(counts, claim, DELTA, CONFIDENCE)

    return Finding(
        cell,
        by_shape,
        epsilon,
        bound_shape(by_shape),
        bound_epsilon(alone, DELTA, CONFIDENCE),
        evidence["law"],
        evidence["privacy"],
        {name: bound_shape(count_sample(*_join(parts), claim)[0]) / epsilon for name, parts in samples.items()},
    )


def _join(samples: Sequence[Sample]) -> tuple[Array64, Array64]:
    return np.concatenate([each.answers for each in samples]), np.concatenate([each.present for each in samples])
