"""Fits weighted points, whose posterior is close to a given Gaussian."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from app.inference.core.bounds import project
from app.inference.core.design import Design
from app.inference.core.model import Array64, Model
from app.inference.core.priors import Prior
from app.inference.fitting.descent import minimise_divergence
from app.inference.fitting.gaussian_mean import fit_gaussian_mean
from app.inference.fitting.mode import compute_distance
from app.inference.fitting.parametrisation import Parametrisation
from app.inference.fitting.points import Points
from app.inference.fitting.problem import FitProblem
from app.inference.fitting.regions import Box, Region, read_region
from app.inference.fitting.starts import find_starts
from app.inference.fitting.target import make_target
from app.inference.models.gaussian import GaussianMean
from app.inference.models.robust import strip_beta

REACH = 30.0
"""Largest coordinate of a design row during descent, unless a starting point has a larger one."""
GOOD_ENOUGH = 1e-6
"""Divergence in nats up to which points are good enough, so that descent is skipped."""
_MOST_ITERATIONS = 100
_MOST_ITERATIONS_WITHIN_BOUNDS = 300
_MOST_ITERATIONS_FOR_CLASSES = 2000
_BUDGET, _LARGE_BUDGET = 2e9, 2e10
"""Largest number of floating-point operations of one descent: usually, and with declared bounds or several classes."""
_HEAVIEST = 10.0
"""Largest sum of weights, divided by the number of units."""


@dataclass(frozen=True, slots=True)
class Fitted:
    """Weighted points and the divergence of their posterior from the target.

    Design rows ``u`` are ``(M, p)``, with intercepts of exactly 1. Targets ``y`` are ``(M,)``, or None for a model
    without a target. ``weight`` is ``(M,)``. ``kl`` is the divergence of the points' Laplace approximation from the
    target Gaussian, in nats; it is computed without approximation.
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

    For models with one linear predictor, there is a closed form. If ``size`` is large enough, its points are exact (see
    :attr:`app.inference.core.model.Model.smallest_exact`). Otherwise they are exact in a subspace: the directions whose
    omission would add the largest divergence. Descent then improves them. For models with several predictors, the
    points come from descent alone.

    The closed form costs ``O(M D^2 + D^3)``. An iteration of descent costs about as much. There are at most 300
    iterations, or 2000 with several predictors, and fewer for large problems.

    The points' coordinates may be outside the declared bounds. In descent their size is at most 30, or the largest
    size at the start if that is larger. With ``within_bounds`` they stay inside the declared bounds.

    The function raises nothing for any target, even with NaN and infinities. If the target cannot be a posterior, the
    points approximate a posterior near it.

    Args:
        model: of the posterior; a beta-likelihood is left out, because points are used with the model itself.
        design: gives the declared bounds.
        prior: on the D parameters.
        mean: of the target, ``(D,)``.
        precision: of the target, ``(D, D)``.
        size: the number M of points.
        rng: chooses rotations and starting points.
        within_bounds: whether points must be inside the declared bounds, which may increase the divergence.
        total: the number of units, if known. The sum of weights is then at most ten times this number,
            except for :class:`GaussianMean`.
    """
    model = strip_beta(model)
    target = make_target(mean, precision, prior.mean, prior.precision(prior.mean))
    if isinstance(model, GaussianMean):
        points = fit_gaussian_mean(model, prior, target, size)
        if within_bounds:
            points = replace(points, u=project(design, points.u))
        return Fitted(points.u, None, points.weight, compute_distance(model, points, prior, target))
    region = read_region(design) if within_bounds else None
    heaviest = np.inf if total is None else _HEAVIEST * total
    problem, starts = find_starts(model, prior, target, (size, design.width), rng, heaviest=heaviest, region=region)
    if region is not None:
        starts = [replace(start, u=region.rows(region.coordinates(start.u))) for start in starts]
    kl, points = _find_closest(problem, starts)
    if kl > GOOD_ENOUGH:
        weightless = replace(points, weight=np.zeros(size))  # its posterior is the prior, which has a mode
        kl, points = _find_closest(problem, [points, *_descend(problem, starts, heaviest, region), weightless])
    return Fitted(points.u, points.y, points.weight, kl)


def _find_closest(problem: FitProblem, candidates: Sequence[Points]) -> tuple[float, Points]:
    distances = [compute_distance(problem.model, each, problem.prior, problem.target) for each in candidates]
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
    """Choose the number of iterations from the budget of operations.

    One iteration costs about three expansions and factorisations.
    """
    most, budget = (_MOST_ITERATIONS_WITHIN_BOUNDS, _LARGE_BUDGET) if within_bounds else (_MOST_ITERATIONS, _BUDGET)
    if problem.model.predictors > 1:
        most, budget = _MOST_ITERATIONS_FOR_CLASSES, _LARGE_BUDGET
    parameters = len(problem.target.mean)
    return int(np.clip(budget / (20 * parameters**2 * (size + parameters)), 5, most))
