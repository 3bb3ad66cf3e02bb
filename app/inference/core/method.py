"""The protocols of methods.

Every method first makes a plan, which states the price. A private method then carries out the plan in pure steps. It
never receives a row: it asks its oracle the planned queries and sees only noised answers. A method for public tables
reads the rows and builds the release in one call.
"""

from typing import Protocol, TypeVar

import numpy as np

from app.inference.core.capabilities import Artefact, Capability
from app.inference.core.facts import DeclaredFacts
from app.inference.core.knobs import Knob
from app.inference.core.plan import MechanismPlan, PlanRequest
from app.inference.core.query import Oracle
from app.inference.core.release import Pseudocoreset, Released
from app.inference.core.row_source import RowSource


class Method(Protocol):
    """A method, which plans a run with its price. If it is ``private``, it never receives rows.

    ``needs`` are the capabilities of the models that it takes. ``leaves`` names the data that it releases.
    """

    id: str
    description: str
    private: bool
    needs: frozenset[Capability]
    leaves: Artefact

    @property
    def parameters(self) -> tuple[Knob, ...]:
        """The parameters that a request may set, each with its public range."""

    def plan(self, request: PlanRequest, facts: DeclaredFacts) -> MechanismPlan:
        """Plan the whole run from declared facts alone; the same request gives the same plan.

        Raises:
            InvalidRequest: a member of the request is not valid. The error points at this member.
            MethodNotAllowedOnPrivateData: the table is private, and the method is not.
        """


State = TypeVar("State")


class PrivateMethod(Method, Protocol[State]):
    """A method of pure steps, whose only information about rows is noised answers."""

    def shorten(self, plan: MechanismPlan, facts: DeclaredFacts) -> MechanismPlan:
        """Shorten ``plan`` for a dry run. It keeps every kind of query, as few times as possible."""

    def init(self, plan: MechanismPlan, facts: DeclaredFacts, rng: np.random.Generator) -> State:
        """Make the first state from the plan and declared facts alone."""

    def step(self, rng: np.random.Generator, state: State, oracle: Oracle) -> State:
        """Ask the next planned query and compute the next state from its answer."""

    def finish(self, state: State) -> Released:
        """Make the release from the last state."""


class PublicMethod(Method, Protocol):
    """A method that reads rows, for public tables only."""

    def build(
        self, plan: MechanismPlan, facts: DeclaredFacts, rows: RowSource, rng: np.random.Generator
    ) -> Pseudocoreset:
        """Make the release from the rows."""
