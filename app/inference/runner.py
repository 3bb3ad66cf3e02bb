"""Carries out a plan: the loop around a method's pure steps."""

from collections.abc import Callable

import numpy as np

from app.inference.core.facts import DeclaredFacts
from app.inference.core.plan import MechanismPlan
from app.inference.core.query import Oracle
from app.inference.core.release import Pseudocoreset
from app.inference.core.row_source import RowSource
from app.inference.registry import private_method, public_method


def run(
    plan: MechanismPlan,
    facts: DeclaredFacts,
    oracle: Oracle,
    rng: np.random.Generator,
    on_step: Callable[[int], None],
) -> Pseudocoreset:
    """Every planned step of a private method; ``on_step`` hears how many are done.

    ``rng`` serves Monte Carlo only: what it draws is post-processing of ``oracle``'s answers.
    """
    method = private_method(plan.method)
    state = method.init(plan, facts, rng)
    for done in range(1, plan.steps + 1):
        state = method.step(rng, state, oracle)
        on_step(done)
    return method.finish(state)


def run_public(plan: MechanismPlan, facts: DeclaredFacts, rows: RowSource, rng: np.random.Generator) -> Pseudocoreset:
    """A method that reads rows, on a table that is public.

    Raises:
        ValueError: on any other table.
    """
    if facts.sensitivity != "public":
        raise ValueError("only a public table may be read")
    return public_method(plan.method).build(plan, facts, rows, rng)
