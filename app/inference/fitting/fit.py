"""Fits a given number of weighted points to a Gaussian posterior."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from app.inference.core.bounds import project
from app.inference.core.design import Design
from app.inference.core.model import Array64, Model
from app.inference.core.priors import Prior
from app.inference.fitting.descent import minimise_divergence
from app.inference.fitting.gaussian_mean import fit_gaussian_mean
from app.inference.fitting.mode import distance
from app.inference.fitting.parametrisation import Parametrisation
from app.inference.fitting.points import Points
from app.inference.fitting.problem import FitProblem
from app.inference.fitting.regions import Box, Region, read_region
from app.inference.fitting.starts import find_starts
from app.inference.fitting.target import make_target
from app.inference.models.gaussian import GaussianMean

REACH = 30.0
"""Largest coordinate of a design row in descent."""
GOOD_ENOUGH = 1e-6
"""Divergence in nats below which points are not improved by descent."""
_MOST_ITERATIONS = 100
_MOST_ITERATIONS_WITHIN_BOUNDS = 300
_MOST_ITERATIONS_FOR_CLASSES = 1000
_BUDGET, _BUDGET_WITHIN_BOUNDS = 2e9, 2e10
"""Floating-point operations of descent at most."""
_HEAVIEST = 10.0
"""Largest sum of weights, relative to the number of units."""


@dataclass(frozen=True, slots=True)
class Fitted:
    """Weighted points and the divergence of their posterior from the target.

    Design rows ``u`` ``(M, p)`` have intercepts of exactly 1; targets ``y`` ``(M,)`` are None for a model without a
    target; ``weight`` is ``(M,)``. ``kl`` is the exact divergence of their Laplace approximation from the target
    Gaussian, in nats.
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
    """Fit ``size`` points whose Laplace approximation is close to ``N(mean, precision^-1)``.

    For models with one linear predictor, the points are exact in closed form if ``size`` allows it (see
    :attr:`app.inference.core.model.Model.smallest_exact`). Otherwise they are exact in the directions with the largest
    divergence, and descent improves them. For models with several predictors, descent does all the work.

    The closed form costs ``O(M D^2 + D^3)``. A step of descent costs about as much; there are at most a few hundred,
    and fewer for large problems. Coordinates have the mean square of the information. Descent keeps them within 30, or
    within the largest at its start. For a hard bound, use ``within_bounds``.

    Total: for a target that is not a posterior, the points approximate a posterior near it.

    Args:
        model: of the posterior.
        design: gives the declared bounds.
        prior: on the D parameters.
        mean: of the target, ``(D,)``.
        precision: of the target, ``(D, D)``.
        size: the number M of points.
        rng: chooses rotations and starting points.
        within_bounds: whether points must be inside the declared bounds; the divergence is then larger.
        total: the number of units; the sum of weights is at most ten times as large.
    """
    target = make_target(mean, precision, prior.precision(np.zeros(len(mean))))
    if isinstance(model, GaussianMean):
        points = fit_gaussian_mean(model, prior, target, size)
        if within_bounds:
            points = replace(points, u=project(design, points.u))
        return Fitted(points.u, None, points.weight, distance(model, points, prior, target))
    region = read_region(design) if within_bounds else None
    heaviest = np.inf if total is None else _HEAVIEST * total
    problem, starts = find_starts(model, prior, target, (size, design.width), rng, heaviest=heaviest, region=region)
    if region is not None:
        starts = [replace(start, u=region.rows(region.coordinates(start.u))) for start in starts]
    kl, points = _find_closest(problem, starts)
    if kl > GOOD_ENOUGH:
        weightless = replace(points, weight=np.zeros(size))  # its posterior is the prior; no other may have a mode
        kl, points = _find_closest(problem, [points, *_descend(problem, starts, heaviest, region), weightless])
    return Fitted(points.u, points.y, points.weight, kl)


def _find_closest(problem: FitProblem, candidates: Sequence[Points]) -> tuple[float, Points]:
    distances = [distance(problem.model, each, problem.prior, problem.target) for each in candidates]
    return min(zip(distances, candidates, strict=True), key=lambda pair: pair[0])


def _descend(problem: FitProblem, starts: Sequence[Points], heaviest: float, region: Region | None) -> list[Points]:
    ends = []
    for start in starts:
        box = region or Box(problem.width, max(REACH, float(np.max(np.abs(start.u)))))
        parametrisation = Parametrisation(start, box, problem.moving_targets, heaviest)
        iterations = _choose_iterations(problem, len(start.weight), within_bounds=region is not None)
        ends.append(minimise_divergence(problem, parametrisation, iterations))
    return [points for points in ends if points is not None]


def _choose_iterations(problem: FitProblem, size: int, *, within_bounds: bool) -> int:
    """Choose the number of iterations from the budget; one costs about three expansions and factorisations."""
    most = _MOST_ITERATIONS_WITHIN_BOUNDS if within_bounds else _MOST_ITERATIONS
    if problem.model.predictors > 1:
        most = _MOST_ITERATIONS_FOR_CLASSES
    parameters, budget = len(problem.target.mean), _BUDGET_WITHIN_BOUNDS if within_bounds else _BUDGET
    return int(np.clip(budget / (20 * parameters**2 * (size + parameters)), 5, most))
