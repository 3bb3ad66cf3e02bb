"""Hilbert coresets: rows whose weighted log-likelihoods sum to the data's (thesis, section 2.5.2).

Every row becomes the vector of its log-likelihoods at J draws from a weighting distribution, less their mean, over
``sqrt(J)``. A solver of :mod:`app.inference.methods.hilbert` chooses among these. They stay in memory: slots times J
numbers in single precision, at most ``MAX_VALUES``.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from app.errors import InvalidRequest
from app.inference.core.facts import DeclaredFacts
from app.inference.core.knobs import Choice, Knob, Parameter
from app.inference.core.model import Array32, Array64, Model
from app.inference.core.plan import MechanismPlan, PlanRequest
from app.inference.core.release import Pseudocoreset
from app.inference.core.row_source import RowSource
from app.inference.methods.hilbert.vectors import Selection, VectorSum, vector_sum
from app.inference.methods.hilbert.weighting import KINDS, draw_weighting
from app.inference.methods.public import open_table, plan_public, release_rows
from app.inference.methods.public_table import PublicTable
from app.inference.post.gradients import centred_potentials

MAX_VALUES = 2**28
"""One gibibyte."""
PROJECTIONS = Parameter("projections", "integer", 2, 1000, "Draws J that log-likelihoods are compared at.", 100)
WEIGHTING = Choice(
    "weighting",
    KINDS,
    "Where log-likelihoods are compared: at the full posterior (optimal), at a corrupted guess between it and the "
    "prior (realistic), or at the posterior of a uniform subsample (laplace).",
    "laplace",
)


@dataclass(slots=True)
class HilbertMethod:
    """A registered method, by the solver that it applies."""

    id: str
    description: str
    solve: Callable[[VectorSum, int], Selection]
    private: bool = False

    @property
    def parameters(self) -> tuple[Knob, ...]:
        """The knobs that all solvers share."""
        return (WEIGHTING, PROJECTIONS)

    def plan(self, request: PlanRequest, facts: DeclaredFacts) -> MechanismPlan:
        """See :func:`app.inference.methods.public.plan_public`; refuses vectors that memory cannot hold, too."""
        plan = plan_public(self, request, facts)
        if facts.slots * facts.rows_per_unit * plan.parameters[PROJECTIONS.name] > MAX_VALUES:
            raise InvalidRequest.at(
                f"/parameters/{PROJECTIONS.name}",
                f"projections times rows must be at most {MAX_VALUES:,}: ask for fewer projections",
            )
        return plan

    def build(
        self, plan: MechanismPlan, facts: DeclaredFacts, rows: RowSource, rng: np.random.Generator
    ) -> Pseudocoreset:
        """The rows chosen; fewer than asked for, and points without weight, where more would not help."""
        problem, table = open_table(plan, facts, rows)
        draws = draw_weighting(
            plan.parameters[WEIGHTING.name], problem, table, rng, count=plan.parameters[PROJECTIONS.name]
        )
        selection = self.solve(vector_sum(_vectors(problem.model, table, draws)), plan.size)
        return release_rows(problem, table, selection, plan.size)


def _vectors(model: Model, table: PublicTable, draws: Array64) -> Array32:
    """Centred log-likelihoods over ``sqrt(J)``, ``(N, J)``."""
    vectors = np.empty((table.count, len(draws)), dtype=np.float32)
    start = 0
    for x, y in table.chunks():
        rows = model.fold(x.astype(np.float64), y)
        vectors[start : start + len(x)] = centred_potentials(model, rows, draws) / np.sqrt(len(draws))
        start += len(x)
    return vectors
