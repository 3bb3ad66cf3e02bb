"""What stays fixed through a run, from declared facts and the plan: defaults may have changed since it was made."""

from collections.abc import Iterator

import numpy as np

from app.inference.problems import Problem
from app.inference.protocol import DeclaredFacts, MechanismPlan, Parameter
from app.inference.questions import (
    BoundedScoreSum,
    InformationMomentSum,
    InformationSum,
    LengthHistogram,
    MeanSum,
    MomentSum,
    TailSum,
)
from app.inference.surrogate.curvature import Curvature
from app.inference.surrogate.declared import declared
from app.inference.surrogate.schedule import Schedule
from app.inference.surrogate.state import Setup
from app.privacy.events import GaussianEvent, PoissonSampledEvent

ROUNDS = Parameter("rounds", "integer", 2, 40, "Rounds of an information matrix and a score; the default follows.")
RATE = Parameter(
    "sampling_rate", "number", 0, 1, "Poisson sampling rate q of every question.", default=1.0, exclusive_minimum=True
)
_INFORMATION = frozenset({InformationSum.kind, InformationMomentSum.kind})
_MOMENTS, _MEANS = frozenset({MomentSum.kind}), frozenset({MeanSum.kind})
_SCORES = frozenset({BoundedScoreSum.kind})
_LENGTHS, _TAILS = frozenset({LengthHistogram.kind}), frozenset({TailSum.kind})


def planned(plan: MechanismPlan, facts: DeclaredFacts, problem: Problem) -> Schedule:
    """The schedule of ``plan``, with the shares that it fixed."""
    assert plan.mechanism is not None
    return Schedule(
        plan.mechanism.noise_multiplier,
        plan.mechanism.sampling_rate,
        facts.slots,
        problem.model.dimension,
        informed=problem.design.intercept,
        asked_rounds=int(plan.parameters[ROUNDS.name]),
        one_predictor=one_predictor(problem),
        asked_information=_asked_share(plan, _INFORMATION),
        asked_moments=_asked_share(plan, _MOMENTS),
        asked_means=_asked_share(plan, _MEANS) if _asks(plan, _MEANS) else 0.0,
        asked_lengths=_asked_share(plan, _LENGTHS),
        asked_tails=_asked_share(plan, _TAILS) if _asks(plan, _TAILS) else 0.0,
        labels=labels(problem),
        asked_scores=tuple(_asked_shares(plan, _SCORES)),
    )


def set_up(
    problem: Problem, schedule: Schedule, facts: DeclaredFacts, size: int, *, within_bounds: bool = False
) -> Setup:
    """Of a run under ``schedule``."""
    model, design, prior = problem
    plain = one_predictor(problem)
    curvature = Curvature(model, design.width) if plain else None
    bends = model.predictors > 1
    if curvature is not None:
        flat, bent = curvature(np.array([0.0, 1.0]))
        bends = bool(abs(flat - bent) > 1e-6 * flat)
    return Setup(
        model,
        design,
        prior,
        declared(design),
        size,
        within_bounds,
        schedule,
        curvature,
        bends,
        schedule.columnwise,
        facts.rows_per_unit,
    )


def one_predictor(problem: Problem) -> bool:
    """Whether there is one linear predictor, with an intercept, and no other parameter."""
    model, design, _ = problem
    return model.predictors == 1 and model.dimension == design.width and design.intercept and design.width > 1


def labels(problem: Problem) -> bool:
    """Whether targets are 0 or 1."""
    target = problem.design.target
    return target is not None and target.type == "binary"


def _asks(plan: MechanismPlan, kinds: frozenset[str]) -> bool:
    return any(query.kind in kinds for query in plan.queries)


def _asked_share(plan: MechanismPlan, kinds: frozenset[str]) -> float | None:
    """That of the first question of these kinds, None if there is none."""
    return next(_asked_shares(plan, kinds), None)


def _asked_shares(plan: MechanismPlan, kinds: frozenset[str]) -> Iterator[float]:
    """Of questions of these kinds as the plan has them, whatever defaults have become since."""
    assert plan.mechanism is not None
    for query in plan.queries:
        event = query.event.event if isinstance(query.event, PoissonSampledEvent) else query.event
        if query.kind in kinds and isinstance(event, GaussianEvent):
            yield (plan.mechanism.noise_multiplier / event.noise_multiplier) ** 2
