"""Incremental PSVI for public tables (method id ``incremental-psvi``).

Pseudopoints are added one by one, each at the row that best explains the residual. Weights then take T steps, and
points move in the second half of them. See :mod:`app.inference.methods.psvi.greedy`. Sources: Bayesian Pseudocoresets,
2020, C.3.5; thesis, A.3.3.5.2.

There only the newest point moves. So an earlier point stays where it was best for a smaller pseudocoreset, and the
result is about as good as that of ``sparse-vi``. By default, all points move.
"""

from typing import Final

import numpy as np

from app.inference.core.bounds import WITHIN_BOUNDS
from app.inference.core.capabilities import Artefact, Capability
from app.inference.core.facts import DeclaredFacts
from app.inference.core.knobs import Choice, Knob
from app.inference.core.plan import MechanismPlan, PlanRequest
from app.inference.core.release import Pseudocoreset
from app.inference.core.row_source import RowSource
from app.inference.methods.psvi.greedy import ALL, MAX_SIZE, NEWEST, PARAMETERS, grow
from app.inference.methods.public import plan_public, release

MOVING: Final = Choice(
    "moving",
    ("all", "newest"),
    "Points that move after a point is added. newest: as in the paper; earlier points stay where they are.",
    "all",
)


class IncrementalPsvi:
    """The registered method; stateless."""

    id = "incremental-psvi"
    description = "Pseudopoints added and moved one by one (Bayesian Pseudocoresets, 2020, C.3.5). Not private."
    private = False
    needs = frozenset({Capability.POTENTIALS})
    leaves = Artefact.POINTS
    parameters: tuple[Knob, ...] = (*PARAMETERS, MOVING, WITHIN_BOUNDS)

    def plan(self, request: PlanRequest, facts: DeclaredFacts) -> MechanismPlan:
        """See :func:`app.inference.methods.public.plan_public`."""
        return plan_public(self, request, facts, largest=MAX_SIZE)

    def build(
        self, plan: MechanismPlan, facts: DeclaredFacts, rows: RowSource, rng: np.random.Generator
    ) -> Pseudocoreset:
        """Release the points after the last round; missing ones are null, as for ``sparse-vi``."""
        moving = {"all": ALL, "newest": NEWEST}[plan.parameters[MOVING.name]]
        built = grow(plan, facts, rows, rng, moving)
        total = float(built.points.weights.sum())
        return release(built.problem, built.table, built.points, plan.size, {"total_weight": total})
