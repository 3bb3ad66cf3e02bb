"""Uniform subsampling (method id ``uniform``): M of N rows, with weights N/M.

It is not private and for public tables only.
"""

import numpy as np

from app.inference.core.capabilities import Artefact, Capability
from app.inference.core.facts import DeclaredFacts
from app.inference.core.knobs import Knob
from app.inference.core.plan import MechanismPlan, PlanRequest
from app.inference.core.release import Pseudocoreset
from app.inference.core.row_source import RowSource
from app.inference.methods.psvi.residuals import Points
from app.inference.methods.public import draw_rows, open_table, plan_public, release


class Uniform:
    """The registered method; stateless."""

    id = "uniform"
    description = "Uniform random subsample of the rows, with equal weights. Not private."
    private = False
    needs = frozenset({Capability.POTENTIALS})
    leaves = Artefact.POINTS
    parameters: tuple[Knob, ...] = ()

    def plan(self, request: PlanRequest, facts: DeclaredFacts) -> MechanismPlan:
        """See :func:`app.inference.methods.public.plan_public`."""
        return plan_public(self, request, facts)

    def build(
        self, plan: MechanismPlan, facts: DeclaredFacts, rows: RowSource, rng: np.random.Generator
    ) -> Pseudocoreset:
        """Choose M of the N rows, without replacement if M <= N; an empty table gives weights of zero."""
        problem, table = open_table(plan, facts, rows)
        x, y = draw_rows(rng, table, plan.size)
        points = Points(x, y, np.full(len(x), table.count / plan.size))
        return release(problem, table, points, plan.size, {})
