"""Greedy construction: add the row that best explains the residual, then descend.

The next row is ``argmax_n Corr[f_n, R]`` over a uniform subsample and, in absolute value, over the rows chosen before.
Then T gradient steps follow. Weights start at zero and are projected to stay non-negative. Source: thesis, section
5.2.2, Eq. 5.8.

Points that move do so in the second half of the steps. While its weight is near zero, a new point would move to explain
the whole residual, and end far from its row.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from app.inference.core.bounds import WITHIN_BOUNDS
from app.inference.core.facts import DeclaredFacts
from app.inference.core.knobs import Parameter
from app.inference.core.model import Array64
from app.inference.core.plan import MechanismPlan
from app.inference.core.problems import Problem
from app.inference.core.row_source import RowSource
from app.inference.methods.psvi.descent import LinearScale, descend, make_step_geometry
from app.inference.methods.psvi.residuals import Points, Residuals
from app.inference.methods.psvi.residuals.choice import make_residuals
from app.inference.methods.public import DRAWS, MINIBATCH, open_table
from app.inference.methods.public_table import Minibatches, PublicTable
from app.inference.methods.steps import COSINE, Schedule
from app.inference.models.robust import make_robust

MAX_SIZE = 2_000  # each point needs a separate descent
ITERATIONS = Parameter("iterations", "integer", 1, 10_000, "Number of gradient steps after each added row.", 100)
RATE = Parameter(
    "learning_rate",
    "number",
    0,
    10,
    "Learning rate of the first step. Its unit is the standard deviation of a column; for weights, N/M.",
    0.02,
    exclusive_minimum=True,
)
CANDIDATES = Parameter("candidates", "integer", 1, 10_000, "Number of random rows among which each is chosen.", 1000)
NONE, NEWEST, ALL = slice(0, 0), slice(-1, None), slice(None)
"""Points that move."""
PARAMETERS: tuple[Parameter, ...] = (ITERATIONS, RATE, CANDIDATES, DRAWS, MINIBATCH)


@dataclass(frozen=True, slots=True)
class Built:
    """The constructed points, and the row ``(k,)`` of ``table`` from which each started."""

    problem: Problem
    table: PublicTable
    points: Points
    rows: NDArray[np.int64]


def grow(
    plan: MechanismPlan,
    facts: DeclaredFacts,
    source: RowSource,
    rng: np.random.Generator,
    moving: slice = NONE,
    *,
    beta: float = 0.0,
) -> Built:
    """Carry out ``plan.size`` rounds; after each new point, those in ``moving`` move.

    With ``beta`` above 0, beta-potentials choose and weigh the rows.
    """
    *_, last = iterate_rounds(plan, facts, source, rng, moving, beta=beta)
    return last


def iterate_rounds(
    plan: MechanismPlan,
    facts: DeclaredFacts,
    source: RowSource,
    rng: np.random.Generator,
    moving: slice,
    *,
    beta: float = 0.0,
) -> Iterator[Built]:
    """Yield the points at the start, and after each round of :func:`grow`; an empty table has no round."""
    problem, table = open_table(plan, facts, source)
    parameters, width = plan.parameters, problem.design.width
    points, rows = Points(np.zeros((0, width)), np.zeros(0), np.zeros(0)), np.zeros(0, dtype=np.int64)
    yield Built(problem, table, points, rows)
    if not table.count:
        return
    guide = problem._replace(model=make_robust(problem.model, beta)) if beta else problem
    residuals = make_residuals(guide, table, rng, draws=parameters[DRAWS.name], minibatch=parameters[MINIBATCH.name])
    candidates = Minibatches(table, parameters[CANDIDATES.name], rng)
    geometry = make_step_geometry(table, within_bounds=parameters.get(WITHIN_BOUNDS.name, False))
    scale = LinearScale(table.count / plan.size)
    schedule = Schedule(COSINE, parameters[RATE.name], parameters[ITERATIONS.name])
    for _ in range(plan.size):
        indices, x, y = candidates.next()
        best = _choose_candidate(residuals, points, x, y)
        if best is not None:
            points = _add(points, x[best], y[best])
            rows = np.append(rows, indices[best])
        points = descend(
            residuals,
            points,
            geometry,
            scale,
            schedule,
            moving=NONE if best is None else moving,
            still=schedule.iterations // 2,
        )
        yield Built(problem, table, points, rows)


def _choose_candidate(residuals: Residuals, points: Points, x: Array64, y: Array64) -> int | None:
    """Choose the candidate to add; None if a present point has the same correlation or a larger one."""
    residual = residuals.on(points, x, y)
    correlation = residual.correlation(x, y)
    best = int(np.argmax(correlation))
    inside = np.abs(residual.correlation(points.u, points.y)).max(initial=-np.inf)
    return best if correlation[best] > inside else None


def _add(points: Points, x: Array64, y: Array64) -> Points:
    return Points(np.vstack((points.u, x)), np.append(points.y, y), np.append(points.weights, 0.0))
