"""The protocols of methods: a plan with its price, and pure steps or, on public tables, one build.

A private method never receives a row. It asks its oracle planned queries and sees noised answers only.
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
    """A method: plans a run and states its price. ``private`` methods never receive rows."""

    id: str
    description: str
    private: bool

    @property
    def parameters(self) -> tuple[Knob, ...]:
        """The parameters that a request may set, each with its public range."""

    def plan(self, request: PlanRequest, facts: DeclaredFacts) -> MechanismPlan:
        """Plan the whole run from declared facts alone; the same request gives the same plan.

        Raises:
            InvalidRequest: pointing at the member of the request that is at fault.
            MethodNotAllowedOnPrivateData: for a method without privacy on a private table.
        """


State = TypeVar("State")


class PrivateMethod(Method, Protocol[State]):
    """A method of pure steps that learns from noised answers only."""

    def shorten(self, plan: MechanismPlan, facts: DeclaredFacts) -> MechanismPlan:
        """Shorten ``plan`` for a dry run: every kind of query, as few times as possible."""

    def init(self, plan: MechanismPlan, facts: DeclaredFacts, rng: np.random.Generator) -> State:
        """Make the first state from the plan and declared facts alone."""

    def step(self, rng: np.random.Generator, state: State, oracle: Oracle) -> State:
        """Ask the next planned query and update the state by its answer."""

    def finish(self, state: State) -> Pseudocoreset:
        """Make the release from the last state."""


class PublicMethod(Method, Protocol):
    """A method that reads rows, for tables that are public already."""

    def build(
        self, plan: MechanismPlan, facts: DeclaredFacts, rows: RowSource, rng: np.random.Generator
    ) -> Pseudocoreset:
        """Make the release from the rows."""
