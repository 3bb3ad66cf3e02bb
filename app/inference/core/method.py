"""What a method is: a plan with its price, and pure steps or, on public tables, one build.

A private method never meets a row. It asks its oracle planned queries and sees noised answers only.
"""

from typing import Protocol, TypeVar

import numpy as np

from app.inference.core.facts import DeclaredFacts
from app.inference.core.knobs import Knob
from app.inference.core.plan import MechanismPlan, PlanRequest
from app.inference.core.query import Oracle
from app.inference.core.release import Pseudocoreset
from app.inference.core.row_source import RowSource


class Method(Protocol):
    """Plans a run and states its price. ``private`` methods never receive rows."""

    id: str
    description: str
    private: bool

    @property
    def parameters(self) -> tuple[Knob, ...]:
        """The knobs, each with its public range."""

    def plan(self, request: PlanRequest, facts: DeclaredFacts) -> MechanismPlan:
        """The whole run, from declared facts alone; the same request gives the same plan.

        Raises:
            InvalidRequest: pointing at the member of the request that is at fault.
            MethodNotAllowedOnPrivateData: for a method without privacy on a private table.
        """


State = TypeVar("State")


class PrivateMethod(Method, Protocol[State]):
    """A method that learns from noised answers only: pure steps on a named state."""

    def shorten(self, plan: MechanismPlan, facts: DeclaredFacts) -> MechanismPlan:
        """A plan that asks every kind of query of ``plan``, as few times as it can, for a dry run."""

    def init(self, plan: MechanismPlan, facts: DeclaredFacts, rng: np.random.Generator) -> State:
        """The start, from the model and declared facts alone."""

    def step(self, rng: np.random.Generator, state: State, oracle: Oracle) -> State:
        """One planned query and what follows from its answer."""

    def finish(self, state: State) -> Pseudocoreset:
        """What is released."""


class PublicMethod(Method, Protocol):
    """A method that reads rows, for tables that are public already."""

    def build(
        self, plan: MechanismPlan, facts: DeclaredFacts, rows: RowSource, rng: np.random.Generator
    ) -> Pseudocoreset:
        """What is released."""
