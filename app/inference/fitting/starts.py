"""The fitting problem of a model, and the starting points of descent."""

import numpy as np

from app.inference.core.model import Model
from app.inference.core.priors import Prior
from app.inference.fitting.closed_form import ClosedForm
from app.inference.fitting.fallback_starts import make_fallback_starts
from app.inference.fitting.links import make_link
from app.inference.fitting.outlier_pairs import make_outlier_pair
from app.inference.fitting.points import Points
from app.inference.fitting.potential_derivatives import (
    LinkDerivatives,
    PotentialDerivatives,
    SoftmaxDerivatives,
    UnknownNoiseDerivatives,
)
from app.inference.fitting.problem import FitProblem, OnePredictorProblem
from app.inference.fitting.regions import Region
from app.inference.fitting.shapes import StudentShape
from app.inference.fitting.softmax_start import make_balanced_classes
from app.inference.fitting.subspaces import find_subspace
from app.inference.fitting.target import Target
from app.inference.models.linear import LinearRegressionOfUnknownNoise
from app.inference.models.multinomial import MultinomialLogistic
from app.inference.models.student_t import StudentTRegressionOfUnknownScale

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
) -> tuple[FitProblem, list[Points]]:
    """Set up the fitting problem and make starting points of ``shape`` ``(M, p)``.

    For one linear predictor, the starting points are the closed form if there is one.
    """
    size, width = shape
    if isinstance(model, MultinomialLogistic) and model.predictors > 1:
        precision = prior.precision(target.mean)
        start = make_balanced_classes(target, precision, model.predictors, size, rng)
        return FitProblem(model, SoftmaxDerivatives(), prior, target, width, None), [start]
    link = make_link(model, target.mean, prior)
    derivatives: PotentialDerivatives = LinkDerivatives(link)
    if isinstance(model, LinearRegressionOfUnknownNoise):
        derivatives = UnknownNoiseDerivatives(model.noise)
    if isinstance(model, StudentTRegressionOfUnknownScale):
        derivatives = UnknownNoiseDerivatives(model.noise, StudentShape(model.degrees_of_freedom))
    problem = OnePredictorProblem(model, derivatives, prior, target, width, link.target_bounds, link=link)
    exact = _build(problem, ClosedForm(link, size, heaviest, region), rng)
    return problem, exact or make_fallback_starts(problem, size, rng)


def _build(problem: OnePredictorProblem, form: ClosedForm, rng: np.random.Generator) -> list[Points]:
    """Build points by several random rotations and take the one with the smallest coordinates.

    With a region there is one rotation. The list is empty if there is no closed form, or numbers overflow.
    """
    rotations = _ROTATIONS if form.region is None else 1
    try:
        if isinstance(problem.model, StudentTRegressionOfUnknownScale):
            built = [make_outlier_pair(problem, problem.model, form, rng) for _ in range(rotations)]
        else:
            subspace = find_subspace(*problem.coefficients(), problem.most_directions(form.size))
            built = [form.points(subspace, rng) for _ in range(rotations)]
    except np.linalg.LinAlgError:
        return []
    successes = [points for points in built if points is not None]
    return sorted(successes, key=lambda points: float(np.max(np.abs(points.u))))[:1]
