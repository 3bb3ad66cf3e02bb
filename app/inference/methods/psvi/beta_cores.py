"""Beta-cores: rows of a table, chosen so that outliers have little influence (method id ``beta-cores``).

As SparseVI, with beta-potentials in place of log-likelihoods (:mod:`app.inference.models.robust`). They approximate the
beta-posterior, which rows of small density hardly move. The points are meant for the model itself: ``beta`` only
chooses and weighs. Source: thesis, Algorithm 2 and Eq. 5.3.

With ``groups`` or ``batches``, whole sets of rows are chosen and weighed
(:mod:`app.inference.methods.psvi.groups`), and ``size`` is a number of sets.
"""

from dataclasses import replace
from typing import Any

import numpy as np

from app.errors import InvalidRequest
from app.inference.core.capabilities import Artefact, Capability
from app.inference.core.facts import DeclaredFacts
from app.inference.core.grouping import make_grouping
from app.inference.core.knobs import Knob, Names, Parameter
from app.inference.core.plan import GROUPS, MechanismPlan, PlanRequest
from app.inference.core.problems import make_problem
from app.inference.core.release import Pseudocoreset
from app.inference.core.row_source import RowSource
from app.inference.methods.psvi.greedy import MAX_SIZE, PARAMETERS, grow
from app.inference.methods.psvi.groups import BATCHES, BuiltSets, grow_sets
from app.inference.methods.public import plan_public, release, release_rows
from app.inference.methods.public_table import Selection
from app.inference.models.gaussian import GaussianMean
from app.inference.models.robust import LEAST_BETA, make_robust
from app.inference.post.diagnostics import round_stated

COLUMNS = Names(
    GROUPS,
    10,
    "Categorical and binary columns. Each combination of their declared values is a group of rows, and whole groups "
    "are chosen. By default, rows are chosen one by one.",
)
BATCH = Parameter(
    BATCHES,
    "integer",
    0,
    10_000,
    "Number of rows of a batch; whole random batches are chosen. 0: rows are chosen one by one.",
    0,
)
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
    parameters: tuple[Knob, ...] = (*PARAMETERS, BETA, COLUMNS, BATCH)

    def plan(self, request: PlanRequest, facts: DeclaredFacts) -> MechanismPlan:
        """See :func:`app.inference.methods.public.plan_public`; a model of counts is refused at ``beta``."""
        plan = plan_public(self, request, facts, largest=MAX_SIZE)
        model, beta = make_problem(plan.model, facts).model, plan.parameters[BETA.name]
        if BETA.name not in request.parameters and isinstance(model, GaussianMean):
            beta = max(beta / model.width, LEAST_BETA)
        make_robust(model, beta)
        if GROUPS in plan.parameters:
            make_grouping(plan.parameters[GROUPS], facts)
            if plan.parameters[BATCHES]:
                raise InvalidRequest.at(f"/parameters/{BATCHES}", "Choose groups or batches, and leave the other out.")
        return replace(plan, parameters={**plan.parameters, BETA.name: beta})

    def build(
        self, plan: MechanismPlan, facts: DeclaredFacts, rows: RowSource, rng: np.random.Generator
    ) -> Pseudocoreset:
        """Release the chosen rows; their posterior is compared with the table's beta-posterior.

        With sets of rows, there are as many points as rows in the chosen sets.
        """
        beta = plan.parameters[BETA.name]
        if GROUPS in plan.parameters or plan.parameters[BATCHES]:
            return _release_sets(grow_sets(plan, facts, rows, rng, beta=beta), beta)
        built = grow(plan, facts, rows, rng, beta=beta)
        selection = Selection(built.rows, built.points.weights)
        robust = make_robust(built.problem.model, beta)
        return release_rows(built.problem, built.table, selection, plan.size, of_table=robust)


def _release_sets(built: BuiltSets, beta: float) -> Pseudocoreset:
    """Release the rows of the chosen sets; a table without rows leaves one null point."""
    used = [(each, weight) for each, weight in zip(built.sets, built.weights, strict=True) if weight > 0]
    sets = tuple(each for each, _ in used)
    kept = replace(built, sets=sets, weights=np.array([weight for _, weight in used]))
    points = kept.points
    figures: dict[str, Any] = {"sets": len(sets), "rows": len(points.weights)}
    if any(each.label for each in sets):
        figures["weight_of_groups"] = {each.label: round_stated(float(weight)) for each, weight in used}
    robust = make_robust(built.problem.model, beta)
    return release(built.problem, built.table, points, max(len(points.weights), 1), figures, of_table=robust)
