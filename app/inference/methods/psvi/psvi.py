"""PSVI: pseudocoreset variational inference on public tables (method id ``psvi``).

Manousakas, Xu, Mascolo & Campbell, *Bayesian Pseudocoresets* (NeurIPS 2020), Algorithm 1: points start as rows, then
all points and weights descend on ``KL(pi_{u,w} || pi)`` together. Gradients are exact for a Gaussian mean and for
linear regression with known noise under normal priors. Otherwise they are estimated from posterior draws and a
minibatch, and weights start far below the paper's N/M (:mod:`app.inference.methods.psvi.residuals.monte_carlo`). Labels
stay fixed. With ``steps`` ``published`` or ``gradient``, weights start at N/M and are projected to stay non-negative.
"""

import numpy as np

from app.inference.core.bounds import WITHIN_BOUNDS
from app.inference.core.capabilities import Artefact, Capability
from app.inference.core.facts import DeclaredFacts
from app.inference.core.knobs import Knob, Parameter
from app.inference.core.plan import MechanismPlan, PlanRequest
from app.inference.core.release import Pseudocoreset
from app.inference.core.row_source import RowSource
from app.inference.methods.psvi.descent import LinearScale, LogarithmicScale, descend, make_step_geometry
from app.inference.methods.psvi.residuals import Points
from app.inference.methods.psvi.residuals.choice import make_residuals
from app.inference.methods.public import DRAWS, MINIBATCH, draw_rows, open_table, plan_public, release
from app.inference.methods.steps import STEPS, Schedule

ITERATIONS = Parameter("iterations", "integer", 1, 100_000, "Number of gradient steps.", 5000)
RATE = Parameter(
    "learning_rate",
    "number",
    0,
    10,
    "Learning rate of the first step. Its unit is the standard deviation of a column; weights are on the log scale.",
    0.1,
    exclusive_minimum=True,
)


class Psvi:
    """The registered method; stateless."""

    id = "psvi"
    description = "Pseudocoreset variational inference (Bayesian Pseudocoresets, 2020, Algorithm 1). Not private."
    private = False
    needs = frozenset({Capability.POTENTIALS})
    leaves = Artefact.POINTS
    parameters: tuple[Knob, ...] = (ITERATIONS, RATE, STEPS, DRAWS, MINIBATCH, WITHIN_BOUNDS)

    def plan(self, request: PlanRequest, facts: DeclaredFacts) -> MechanismPlan:
        """See :func:`app.inference.methods.public.plan_public`."""
        return plan_public(self, request, facts)

    def build(
        self, plan: MechanismPlan, facts: DeclaredFacts, rows: RowSource, rng: np.random.Generator
    ) -> Pseudocoreset:
        """Release the last iterate; an empty table gives null points."""
        problem, table = open_table(plan, facts, rows)
        x, y = draw_rows(rng, table, plan.size)
        if not table.count:
            return release(problem, table, Points(x, y, np.zeros(0)), plan.size, {})
        parameters = plan.parameters
        residuals = make_residuals(
            problem, table, rng, draws=parameters[DRAWS.name], minibatch=parameters[MINIBATCH.name]
        )
        schedule = Schedule(parameters[STEPS.name], parameters[RATE.name], parameters[ITERATIONS.name])
        share = 1.0 if schedule.is_published else residuals.starting_share
        start = np.full(plan.size, share * table.count / plan.size)
        points = descend(
            residuals,
            Points(x, y, start),
            make_step_geometry(table, within_bounds=parameters[WITHIN_BOUNDS.name]),
            LinearScale(1.0) if schedule.is_published else LogarithmicScale(),
            schedule,
            moving=slice(None),
        )
        return release(problem, table, points, plan.size, {"total_weight": float(points.weights.sum())})
