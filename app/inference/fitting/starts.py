"""The problem that a model makes of a target, and the points that descent starts from, if it has to."""

import numpy as np

from app.inference.core.model import Model
from app.inference.core.priors import Prior
from app.inference.fitting.bends import Bends, OfClasses, OfLink, OfNoise
from app.inference.fitting.classes import balance_classes
from app.inference.fitting.construct import Construction
from app.inference.fitting.links import link_of
from app.inference.fitting.loose import loose
from app.inference.fitting.points import Points
from app.inference.fitting.problem import LinkedProblem, Problem
from app.inference.fitting.regions import Region
from app.inference.fitting.span import find_span
from app.inference.fitting.target import Target
from app.inference.models.linear import LinearRegressionOfUnknownNoise
from app.inference.models.multinomial import MultinomialLogistic

_ROTATIONS = 4


def find_starts(
    model: Model,
    prior: Prior,
    target: Target,
    shape: tuple[int, int],
    rng: np.random.Generator,
    *,
    heaviest: float,
    region: Region | None,
) -> tuple[Problem, list[Points]]:
    """The problem of finding ``(M, p)`` points, and where to start."""
    size, width = shape
    if isinstance(model, MultinomialLogistic) and model.predictors > 1:
        precision = prior.precision(target.mean)
        start = balance_classes(target, precision, model.predictors, size, rng)
        return Problem(model, OfClasses(), prior, target, width, None), [start]
    link = link_of(model, target.mean, prior)
    bends: Bends = OfLink(link)
    if isinstance(model, LinearRegressionOfUnknownNoise):
        bends = OfNoise(model.noise)
    problem = LinkedProblem(model, bends, prior, target, width, link.target_bounds, link=link)
    return problem, _construct(problem, Construction(link, size, heaviest, region), rng) or loose(problem, size, rng)


def _construct(problem: LinkedProblem, construction: Construction, rng: np.random.Generator) -> list[Points]:
    """The rotation that reaches least far (in a region: the one that settles there); none where numbers overflow."""
    rotations = _ROTATIONS if construction.region is None else 1
    try:
        span = find_span(*problem.coefficients(), problem.most_directions(construction.size))
        built = [construction.points(span, rng) for _ in range(rotations)]
    except np.linalg.LinAlgError:
        return []
    found = [points for points in built if points is not None]
    return sorted(found, key=lambda points: float(np.max(np.abs(points.u))))[:1]
