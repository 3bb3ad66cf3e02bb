"""What stays fixed through a run, from declared facts and the plan."""

from dataclasses import replace

import numpy as np

from app.inference.core.facts import DeclaredFacts
from app.inference.core.knobs import Parameter
from app.inference.core.plan import MechanismPlan
from app.inference.core.problems import Problem
from app.inference.methods.surrogate.curvature import Curvature
from app.inference.methods.surrogate.declared import declared
from app.inference.methods.surrogate.schedule import Schedule
from app.inference.methods.surrogate.state import Setup
from app.inference.private_zone.queries import MeanSum, TailSum

ROUNDS = Parameter(
    "rounds",
    "integer",
    2,
    40,
    "Number of rounds; each asks an information matrix and a score. The default depends on noise and model.",
)
RATE = Parameter(
    "sampling_rate",
    "number",
    0,
    1,
    "Poisson sampling rate: the probability that a slot takes part in a query.",
    default=1.0,
    exclusive_minimum=True,
)


def schedule_at(
    sigma: float, rate: float, facts: DeclaredFacts, problem: Problem, rounds: int | None = None
) -> Schedule:
    """At a one-shot noise multiplier and a sampling rate; so many rounds, if they are asked for."""
    return Schedule(
        sigma,
        rate,
        facts.slots,
        problem.model.dimension,
        informed=problem.design.intercept,
        asked_rounds=rounds,
        one_predictor=one_predictor(problem),
        labels=binary_target(problem),
        means=facts.rows_per_unit == 1,
    )


def planned(plan: MechanismPlan, facts: DeclaredFacts, problem: Problem) -> Schedule:
    """That of ``plan``, which may have left out queries to come to a number of them that was asked for."""
    assert plan.mechanism is not None
    sigma, rate, rounds = plan.mechanism.noise_multiplier, plan.mechanism.sampling_rate, plan.parameters[ROUNDS.name]
    kinds = {query.kind for query in plan.queries}
    found = schedule_at(sigma, rate, facts, problem, int(rounds))
    return replace(found, means=MeanSum.kind in kinds, tails=TailSum.kind in kinds)


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
        model=model,
        design=design,
        prior=prior,
        known=declared(design),
        size=size,
        within_bounds=within_bounds,
        schedule=schedule,
        curvature=curvature,
        bends=bends,
        rows_per_unit=facts.rows_per_unit,
    )


def one_predictor(problem: Problem) -> bool:
    """Whether there is one linear predictor, with an intercept, and no other parameter."""
    model, design, _ = problem
    return model.predictors == 1 and model.dimension == design.width and design.intercept and design.width > 1


def binary_target(problem: Problem) -> bool:
    """Whether targets are 0 or 1."""
    target = problem.design.target
    return target is not None and target.type == "binary"
