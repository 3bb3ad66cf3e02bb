"""SparseVI: a Riemannian coreset (method id ``sparse-vi``; Campbell & Beronov, NeurIPS 2019; thesis, section 5.2.2).

Rows are added greedily and all weights refined after each, see :mod:`app.inference.methods.greedy`. The release holds
rows of the table.
"""

import numpy as np

from app.inference.hilbert import Selection
from app.inference.knobs import Knob
from app.inference.methods.greedy import MAX_SIZE, PARAMETERS, grow
from app.inference.methods.public import plan_public, release_rows
from app.inference.protocol import DeclaredFacts, MechanismPlan, PlanRequest, Pseudocoreset, RowSource


class SparseVi:
    """The registered method; stateless."""

    id = "sparse-vi"
    description = "Rows chosen one by one to reduce the KL, with optimised weights (SparseVI, 2019). Not private."
    private = False
    parameters: tuple[Knob, ...] = PARAMETERS

    def plan(self, request: PlanRequest, facts: DeclaredFacts) -> MechanismPlan:
        """See :func:`app.inference.methods.public.plan_public`."""
        return plan_public(self, request, facts, largest=MAX_SIZE)

    def build(
        self, plan: MechanismPlan, facts: DeclaredFacts, rows: RowSource, rng: np.random.Generator
    ) -> Pseudocoreset:
        """The rows chosen; fewer than asked for, and points without weight, where old ones were better than new."""
        built = grow(plan, facts, rows, rng, move_newest=False)
        return release_rows(built.problem, built.table, Selection(built.rows, built.points.weights), plan.size)
