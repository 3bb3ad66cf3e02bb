"""SparseVI: a Riemannian coreset (method id ``sparse-vi``).

Rows are added greedily, and all weights are optimised after each (:mod:`app.inference.methods.psvi.greedy`). The
release contains rows of the table. Sources: Campbell & Beronov, NeurIPS 2019; thesis, section 5.2.2.
"""

import numpy as np

from app.inference.core.capabilities import Artefact, Capability
from app.inference.core.facts import DeclaredFacts
from app.inference.core.knobs import Knob
from app.inference.core.plan import MechanismPlan, PlanRequest
from app.inference.core.release import Pseudocoreset
from app.inference.core.row_source import RowSource
from app.inference.methods.psvi.greedy import MAX_SIZE, PARAMETERS, grow
from app.inference.methods.public import plan_public, release_rows
from app.inference.methods.public_table import Selection


class SparseVi:
    """The registered method; stateless."""

    id = "sparse-vi"
    description = "Rows chosen one by one to reduce the KL, with optimised weights (SparseVI, 2019). Not private."
    private = False
    needs = frozenset({Capability.POTENTIALS})
    leaves = Artefact.POINTS
    parameters: tuple[Knob, ...] = PARAMETERS

    def plan(self, request: PlanRequest, facts: DeclaredFacts) -> MechanismPlan:
        """See :func:`app.inference.methods.public.plan_public`."""
        return plan_public(self, request, facts, largest=MAX_SIZE)

    def build(
        self, plan: MechanismPlan, facts: DeclaredFacts, rows: RowSource, rng: np.random.Generator
    ) -> Pseudocoreset:
        """Release the chosen rows; null points replace rounds in which no new row was better."""
        built = grow(plan, facts, rows, rng)
        return release_rows(built.problem, built.table, Selection(built.rows, built.points.weights), plan.size)
