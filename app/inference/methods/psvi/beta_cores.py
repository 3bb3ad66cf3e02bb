"""Beta-cores: rows of a table, chosen so that outliers have little influence (method id ``beta-cores``).

As SparseVI, with beta-potentials in place of log-likelihoods (:mod:`app.inference.models.robust`). They approximate the
beta-posterior, which rows of small density hardly move. The points are meant for the model itself: ``beta`` only
chooses and weighs. Source: thesis, Algorithm 2 and Eq. 5.3.
"""

from dataclasses import replace

import numpy as np

from app.inference.core.capabilities import Artefact, Capability
from app.inference.core.facts import DeclaredFacts
from app.inference.core.knobs import Knob, Parameter
from app.inference.core.plan import MechanismPlan, PlanRequest
from app.inference.core.problems import make_problem
from app.inference.core.release import Pseudocoreset
from app.inference.core.row_source import RowSource
from app.inference.methods.hilbert.vectors import Selection
from app.inference.methods.psvi.greedy import MAX_SIZE, PARAMETERS, grow
from app.inference.methods.public import plan_public, release_rows
from app.inference.models.gaussian import GaussianMean
from app.inference.models.robust import LEAST_BETA, make_robust

BETA = Parameter(
    "beta",
    "number",
    LEAST_BETA,
    1,
    "Power of densities in the likelihood that chooses and weighs rows. With a larger one, outliers have less "
    "influence, and so have ordinary rows far from the centre. For gaussian-mean, the default is divided by the number "
    "of columns, because the density is a product over them. Models of counts have none.",
    0.2,
)


class BetaCores:
    """The registered method; stateless."""

    id = "beta-cores"
    description = (
        "Rows chosen one by one with beta-likelihoods, so that outliers have little influence (beta-cores, 2022). Not "
        "private."
    )
    private = False
    needs = frozenset({Capability.POTENTIALS})
    leaves = Artefact.POINTS
    parameters: tuple[Knob, ...] = (*PARAMETERS, BETA)

    def plan(self, request: PlanRequest, facts: DeclaredFacts) -> MechanismPlan:
        """See :func:`app.inference.methods.public.plan_public`; a model of counts is refused at ``beta``."""
        plan = plan_public(self, request, facts, largest=MAX_SIZE)
        model, beta = make_problem(plan.model, facts).model, plan.parameters[BETA.name]
        if BETA.name not in request.parameters and isinstance(model, GaussianMean):
            beta = max(beta / model.width, LEAST_BETA)
        make_robust(model, beta)
        return replace(plan, parameters={**plan.parameters, BETA.name: beta})

    def build(
        self, plan: MechanismPlan, facts: DeclaredFacts, rows: RowSource, rng: np.random.Generator
    ) -> Pseudocoreset:
        """Release the chosen rows; their posterior is compared with the table's beta-posterior."""
        beta = plan.parameters[BETA.name]
        built = grow(plan, facts, rows, rng, beta=beta)
        selection = Selection(built.rows, built.points.weights)
        robust = make_robust(built.problem.model, beta)
        return release_rows(built.problem, built.table, selection, plan.size, of_table=robust)
