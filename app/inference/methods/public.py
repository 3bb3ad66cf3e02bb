"""Common parts of methods for public tables: plan without a price, table, and release."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from app.errors import MethodNotAllowedOnPrivateData
from app.inference.core.facts import DeclaredFacts
from app.inference.core.knobs import Parameter
from app.inference.core.method import Method
from app.inference.core.model import Array64, Model
from app.inference.core.plan import MechanismPlan, PlanRequest
from app.inference.core.problems import Problem, make_problem
from app.inference.core.release import Pseudocoreset
from app.inference.core.row_source import RowSource
from app.inference.methods.psvi.residuals import Points
from app.inference.methods.public_reliability import compare_with_table, judge_comparison
from app.inference.methods.public_table import PublicTable, Selection
from app.inference.methods.requests import MAX_SIZE, check_size, check_values
from app.inference.post.diagnostics import round_stated

DRAWS = Parameter(
    "posterior_draws", "integer", 2, 1000, "Number of posterior draws in each gradient, if it is not exact.", 100
)
MINIBATCH = Parameter("minibatch", "integer", 1, 10_000, "Number of rows in each gradient, if it is not exact.", 1000)


def plan_public(
    method: Method, request: PlanRequest, facts: DeclaredFacts, *, largest: int = MAX_SIZE
) -> MechanismPlan:
    """Plan one step without a mechanism, with all defaults filled in.

    The privacy part of the request has no effect.

    Raises:
        MethodNotAllowedOnPrivateData: for a table that is not public.
        InvalidRequest: pointing at the member of the request that is at fault.
    """
    if facts.sensitivity != "public":
        raise MethodNotAllowedOnPrivateData
    check_size(request.size, largest)
    parameters = _fill_defaults(method, request.parameters)
    make_problem(request.model, facts)
    return MechanismPlan(
        method=method.id,
        size=request.size,
        model=request.model,
        parameters=parameters,
        mechanism=None,
        clipping="none",
        grid_bits=0,
        queries=(),
        steps=1,
    )


def _fill_defaults(method: Method, given: Mapping[str, Any]) -> dict[str, Any]:
    check_values(given, method.parameters)
    filled = {knob.name: given.get(knob.name, knob.default) for knob in method.parameters}
    return {name: value for name, value in filled.items() if value is not None}


def open_table(plan: MechanismPlan, facts: DeclaredFacts, rows: RowSource) -> tuple[Problem, PublicTable]:
    """Make the problem of ``plan``, and open the table."""
    problem = make_problem(plan.model, facts)
    return problem, PublicTable(rows, problem.design)


def draw_rows(rng: np.random.Generator, table: PublicTable, size: int) -> tuple[Array64, Array64]:
    """Draw ``size`` rows uniformly, without replacement if there are enough.

    Returns design rows ``(size, p)`` and targets ``(size,)``. An empty table gives no rows.
    """
    chosen = np.zeros(0, dtype=np.int64)
    if table.count:
        chosen = rng.choice(table.count, size=size, replace=size > table.count)
    x, y = table.read(chosen)
    return x.astype(np.float64), y


def release(
    problem: Problem,
    table: PublicTable,
    points: Points,
    size: int,
    diagnostics: Mapping[str, Any],
    *,
    of_table: Model | None = None,
) -> Pseudocoreset:
    """Release ``points``, followed by null points of weight zero up to ``size``.

    The doubt is zero, because the mean has no noise. The reliability compares the points with the whole table, whose
    posterior may be that of another model ``of_table``.
    """
    comparison = compare_with_table(problem, table, points, of_table)
    reliability = judge_comparison(comparison)
    spare = size - len(points.weights)
    u = np.pad(points.u, ((0, spare), (0, 0)))
    if problem.design.intercept:
        u[:, -1] = 1
    return Pseudocoreset(
        u,
        problem.design.decode_targets(np.pad(points.y, (0, spare))),
        np.pad(points.weights, (0, spare)),
        problem.design.columns,
        {"trusted": reliability.is_calibrated, "fit_kl": round_stated(comparison.kl), **diagnostics},
        doubt=np.zeros((problem.model.dimension,) * 2),
        reliability=reliability,
    )


def release_rows(
    problem: Problem, table: PublicTable, selection: Selection, size: int, *, of_table: Model | None = None
) -> Pseudocoreset:
    """Release the selected rows with their weights, as :func:`release`."""
    x, y = table.read(selection.indices)
    points = Points(x.astype(np.float64), y, selection.weights)
    return release(problem, table, points, size, {"rows": len(selection.indices)}, of_table=of_table)
