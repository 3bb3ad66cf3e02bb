"""Incremental PSVI for public tables (method id ``incremental-psvi``).

Pseudopoints are added one by one, each at the row that best explains the residual. It then moves, together with all
weights, for T steps. See :mod:`app.inference.methods.psvi.greedy`. Sources: Bayesian Pseudocoresets, 2020, C.3.5;
thesis, A.3.3.5.2.
"""

import numpy as np

from app.inference.core.bounds import WITHIN_BOUNDS
from app.inference.core.facts import DeclaredFacts
from app.inference.core.knobs import Knob
from app.inference.core.plan import MechanismPlan, PlanRequest
from app.inference.core.release import Pseudocoreset
from app.inference.core.row_source import RowSource
from app.inference.methods.psvi.greedy import MAX_SIZE, PARAMETERS, grow
from app.inference.methods.public import plan_public, release


class IncrementalPsvi:
    """The registered method; stateless."""

    id = "incremental-psvi"
    description = "Pseudopoints added and moved one by one (Bayesian Pseudocoresets, 2020, C.3.5). Not private."
    private = False
    parameters: tuple[Knob, ...] = (*PARAMETERS, WITHIN_BOUNDS)

    def plan(self, request: PlanRequest, facts: DeclaredFacts) -> MechanismPlan:
        """See :func:`app.inference.methods.public.plan_public`."""
        return plan_public(self, request, facts, largest=MAX_SIZE)

    def build(
        self, plan: MechanismPlan, facts: DeclaredFacts, rows: RowSource, rng: np.random.Generator
    ) -> Pseudocoreset:
        """Release the points after the last round; missing ones are null, as for ``sparse-vi``."""
        built = grow(plan, facts, rows, rng, move_newest=True)
        total = float(built.points.weights.sum())
        return release(built.problem, built.table, built.points, plan.size, {"total_weight": total})
