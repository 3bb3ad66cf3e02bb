"""The state of a run of ``dp-groups``."""

from dataclasses import dataclass

from app.inference.core.facts import DeclaredFacts
from app.inference.core.grouping import Grouping
from app.inference.core.model import Array64
from app.inference.core.plan import MechanismPlan
from app.inference.core.problems import Problem


@dataclass(frozen=True, slots=True)
class State:
    """The draws ``(S, D)`` and the clipping norm; ``answers`` ``(G, S)`` after the query."""

    plan: MechanismPlan
    facts: DeclaredFacts
    problem: Problem
    grouping: Grouping
    draws: Array64
    clip: float
    beta: float
    answers: Array64 | None = None
