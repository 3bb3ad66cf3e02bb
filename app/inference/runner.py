"""Carries out a plan: the loop around a method's pure steps."""

from collections.abc import Callable

import numpy as np

from app.inference.core.facts import DeclaredFacts
from app.inference.core.plan import MechanismPlan
from app.inference.core.query import Oracle
from app.inference.core.release import Pseudocoreset, Released
from app.inference.core.row_source import RowSource
from app.inference.registry import find_private_method, find_public_method


def run(
    plan: MechanismPlan,
    facts: DeclaredFacts,
    oracle: Oracle,
    rng: np.random.Generator,
    on_step: Callable[[int], None],
) -> Released:
    """Carry out every planned step of a private method.

    Args:
        plan: of a private method.
        facts: that it was planned for.
        oracle: answers the planned queries.
        rng: for Monte Carlo only, which is post-processing of the answers.
        on_step: is called with the number of steps done.
    """
    method = find_private_method(plan.method)
    state = method.init(plan, facts, rng)
    for done in range(1, plan.steps + 1):
        state = method.step(rng, state, oracle)
        on_step(done)
    return method.finish(state)


def run_points(
    plan: MechanismPlan,
    facts: DeclaredFacts,
    oracle: Oracle,
    rng: np.random.Generator,
    on_step: Callable[[int], None],
) -> Pseudocoreset:
    """Carry out a plan as :func:`run` does, of a method that releases points.

    Raises:
        TypeError: the release has none.
    """
    released = run(plan, facts, oracle, rng, on_step)
    if not isinstance(released, Pseudocoreset):
        raise TypeError("this release has no points")
    return released


def run_public(plan: MechanismPlan, facts: DeclaredFacts, rows: RowSource, rng: np.random.Generator) -> Pseudocoreset:
    """Carry out a method that reads the rows of a public table.

    Raises:
        ValueError: for a table that is not public.
    """
    if facts.sensitivity != "public":
        raise ValueError("the table must be public")
    return find_public_method(plan.method).build(plan, facts, rows, rng)
