"""Hilbert coresets: rows whose weighted log-likelihoods approximate the data's (thesis, section 2.5.2).

Every row becomes a vector: its log-likelihoods at J draws from a weighting distribution, minus their mean, divided by
``sqrt(J)``. A solver of :mod:`app.inference.methods.hilbert` chooses among them. They are held in memory: slots times J
numbers in single precision, at most ``MAX_VALUES``.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from app.errors import InvalidRequest
from app.inference.core.capabilities import Artefact, Capability
from app.inference.core.facts import DeclaredFacts
from app.inference.core.knobs import Choice, Knob, Parameter
from app.inference.core.model import Array32, Array64, Model
from app.inference.core.plan import MechanismPlan, PlanRequest
from app.inference.core.release import Pseudocoreset
from app.inference.core.row_source import RowSource
from app.inference.methods.hilbert.vectors import VectorSum, sum_vectors
from app.inference.methods.hilbert.weighting import KINDS, draw_weighting
from app.inference.methods.public import open_table, plan_public, release_rows
from app.inference.methods.public_table import PublicTable, Selection
from app.inference.post.gradients import compute_centred_potentials

MAX_VALUES = 2**28
"""Largest number of values, one gibibyte in single precision."""
PROJECTIONS = Parameter(
    "projections", "integer", 2, 1000, "Number of parameter draws at which log-likelihoods are compared.", 100
)
WEIGHTING = Choice(
    "weighting",
    KINDS,
    "Distribution of the parameter draws. optimal: the full posterior. realistic: a corrupted guess between the "
    "posterior and the prior. laplace: the posterior of a uniform subsample.",
    "laplace",
)


@dataclass(slots=True)
class HilbertMethod:
    """A registered method, defined by its solver."""

    id: str
    description: str
    solve: Callable[[VectorSum, int], Selection]
    private: bool = False
    needs: frozenset[Capability] = frozenset({Capability.POTENTIALS})
    leaves: Artefact = Artefact.POINTS

    @property
    def parameters(self) -> tuple[Knob, ...]:
        """The parameters that all solvers share."""
        return (WEIGHTING, PROJECTIONS)

    def plan(self, request: PlanRequest, facts: DeclaredFacts) -> MechanismPlan:
        """Plan as :func:`app.inference.methods.public.plan_public`; refuse vectors too large for memory."""
        plan = plan_public(self, request, facts)
        if facts.slots * facts.rows_per_unit * plan.parameters[PROJECTIONS.name] > MAX_VALUES:
            raise InvalidRequest.at(
                f"/parameters/{PROJECTIONS.name}",
                f"Projections times rows may be at most {MAX_VALUES:,}; use fewer projections.",
            )
        return plan

    def build(
        self, plan: MechanismPlan, facts: DeclaredFacts, rows: RowSource, rng: np.random.Generator
    ) -> Pseudocoreset:
        """Release the chosen rows; null points follow if more rows would not lower the error."""
        problem, table = open_table(plan, facts, rows)
        draws = draw_weighting(
            plan.parameters[WEIGHTING.name], problem, table, rng, count=plan.parameters[PROJECTIONS.name]
        )
        selection = self.solve(sum_vectors(_compute_vectors(problem.model, table, draws)), plan.size)
        return release_rows(problem, table, selection, plan.size)


def _compute_vectors(model: Model, table: PublicTable, draws: Array64) -> Array32:
    """Compute centred log-likelihoods divided by ``sqrt(J)``, ``(N, J)``."""
    vectors = np.empty((table.count, len(draws)), dtype=np.float32)
    start = 0
    for x, y in table.chunks():
        rows = model.fold(x.astype(np.float64), y)
        vectors[start : start + len(x)] = compute_centred_potentials(model, rows, draws) / np.sqrt(len(draws))
        start += len(x)
    return vectors
