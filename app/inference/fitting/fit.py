"""Points to represent a Gaussian: exactly ``size`` of them, as close as their number allows."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from app.inference.core.bounds import project
from app.inference.core.design import Design
from app.inference.core.model import Array64, Model
from app.inference.core.priors import Prior
from app.inference.fitting.average import fit_average
from app.inference.fitting.charts import Chart
from app.inference.fitting.mode import distance
from app.inference.fitting.points import Points
from app.inference.fitting.polish import polish
from app.inference.fitting.problem import Problem
from app.inference.fitting.regions import Open, Region, read_region
from app.inference.fitting.starts import find_starts
from app.inference.fitting.target import target_of
from app.inference.models.gaussian import GaussianMean

REACH = 30.0
"""Descent keeps coordinates within this."""
GOOD_ENOUGH = 1e-6
"""Nats at which descent has nothing left to win."""
_MOST_ITERATIONS = 100
_MOST_ITERATIONS_WITHIN_BOUNDS = 300
_MOST_ITERATIONS_FOR_CLASSES = 1000
_BUDGET, _BUDGET_WITHIN_BOUNDS = 2e9, 2e10
"""Floating-point operations that descent may take; within bounds it has most to do."""
_HEAVIEST = 10.0
"""Weights in sum, relative to the units that there are."""


@dataclass(frozen=True, slots=True)
class Fitted:
    """Design rows ``u`` ``(M, p)`` with intercepts of exactly 1, targets ``y`` ``(M,)`` (None: the model has none),
    weights ``(M,)``, and ``kl``: the true divergence of their Laplace approximation from the target, in nats.
    """

    u: Array64
    y: Array64 | None
    weight: Array64
    kl: float


@np.errstate(all="ignore")
def fit_points(  # noqa: PLR0917  (a model, its design and prior, a Gaussian, a size: in the order of their use elsewhere)
    model: Model,
    design: Design,
    prior: Prior,
    mean: Array64,
    precision: Array64,
    size: int,
    rng: np.random.Generator,
    *,
    within_bounds: bool = False,
    total: float | None = None,
) -> Fitted:
    """``size`` points whose posterior's Laplace approximation is close to ``N(mean, precision^-1)``.

    ``mean`` is ``(D,)``, ``precision`` ``(D, D)``. With one linear predictor a row, exact in closed form where ``size``
    allows it (see :attr:`app.inference.core.model.Model.smallest_exact`), else exact in the directions that matter
    most, and improved by descent; with several, by descent alone. ``within_bounds`` keeps points inside the declared
    bounds, at a price in divergence; ``total``, the number of units, keeps weights from exceeding it tenfold. Total: a
    target that is no posterior gives points as near to one as there are.

    The closed form costs ``O(M D^2 + D^3)``; each of at most a few hundred steps of descent costs about as much, and
    large problems get fewer of them. Coordinates follow from the target, in mean square the information's own, and
    descent keeps them within 30 (or where they started): whoever needs a hard bound asks for ``within_bounds``.
    """
    target = target_of(mean, precision, prior.precision(np.zeros(len(mean))))
    if isinstance(model, GaussianMean):
        points = fit_average(model, prior, target, size)
        if within_bounds:
            points = replace(points, u=project(design, points.u))
        return Fitted(points.u, None, points.weight, distance(model, points, prior, target))
    region = read_region(design) if within_bounds else None
    heaviest = np.inf if total is None else _HEAVIEST * total
    problem, starts = find_starts(model, prior, target, (size, design.width), rng, heaviest=heaviest, region=region)
    if region is not None:
        starts = [replace(start, u=region.rows(region.coordinates(start.u))) for start in starts]
    kl, points = _closest(problem, starts)
    if kl > GOOD_ENOUGH:
        weightless = replace(points, weight=np.zeros(size))  # the prior: for posteriors so sharp that none has a mode
        kl, points = _closest(problem, [points, *_descend(problem, starts, heaviest, region), weightless])
    return Fitted(points.u, points.y, points.weight, kl)


def _closest(problem: Problem, candidates: Sequence[Points]) -> tuple[float, Points]:
    distances = [distance(problem.model, each, problem.prior, problem.target) for each in candidates]
    return min(zip(distances, candidates, strict=True), key=lambda pair: pair[0])


def _descend(problem: Problem, starts: Sequence[Points], heaviest: float, region: Region | None) -> list[Points]:
    found = []
    for start in starts:
        room = region or Open(problem.width, max(REACH, float(np.max(np.abs(start.u)))))
        chart = Chart(start, room, problem.moving_targets, heaviest)
        found.append(polish(problem, chart, _iterations(problem, len(start.weight), within_bounds=region is not None)))
    return [points for points in found if points is not None]


def _iterations(problem: Problem, size: int, *, within_bounds: bool) -> int:
    """What the budget affords: a step costs some three expansions and factorisations."""
    most = _MOST_ITERATIONS_WITHIN_BOUNDS if within_bounds else _MOST_ITERATIONS
    if problem.model.predictors > 1:
        most = _MOST_ITERATIONS_FOR_CLASSES
    parameters, budget = len(problem.target.mean), _BUDGET_WITHIN_BOUNDS if within_bounds else _BUDGET
    return int(np.clip(budget / (20 * parameters**2 * (size + parameters)), 5, most))
