"""Starting points of descent for Student-t noise with an unknown scale: location points and a pair of outliers.

Location points have residuals near zero. They carry the information and the score of the coefficients. The outliers
have the residuals ``+-e`` at the centre of the design, so their scores in the coefficients cancel. With
``t = e^2 / (nu + e^2)``, of the weights ``W0`` of location points and ``W`` of outliers three equations remain:

    ``W ((nu + 1) t - 1) - W0 = g``,  ``W0 + W (1 - t)(1 - 2t) = n sigma^2 nu/(nu + 1)``,
    ``2 (nu + 1) W t (1 - t) = d``.

``n`` is the information of the intercept, ``d`` that of ``rho``, and ``g`` the prior's pull on ``rho``. They have one
solution. Under the model's Fisher information it is ``e = sqrt(3)``. The information between ``rho`` and the
coefficients is left to descent.
"""

from dataclasses import replace

import numpy as np

from app.inference.fitting.closed_form import ClosedForm
from app.inference.fitting.points import Points
from app.inference.fitting.problem import OnePredictorProblem
from app.inference.fitting.subspaces import find_subspace
from app.inference.models.student_t import StudentTRegression

OUTLIERS = 2
_MARGIN, _MOST = 0.05, 0.95
"""Distance of ``t`` from values without a solution, and its largest value."""


def make_outlier_pair(
    problem: OnePredictorProblem, model: StudentTRegression, form: ClosedForm, rng: np.random.Generator
) -> Points | None:
    """Make ``form.size`` points; None if there are too few of them, or no solution with positive weights.

    Raises:
        numpy.linalg.LinAlgError: numbers overflow.
    """
    nu, target, prior = model.degrees_of_freedom, problem.target, problem.prior
    sigma = model.scale(target.mean)
    information = target.precision - prior.precision(target.mean)
    n, d = information[problem.width - 1, problem.width - 1], information[-1, -1]
    sum_of_weights = n * sigma**2 * nu / (nu + 1) - prior.gradient(target.mean)[-1]
    if form.size <= OUTLIERS or not (n > 0 and d > 0 and sum_of_weights > 0):
        return None
    t = (2 * (nu + 1) * sum_of_weights - d * (nu - 2)) / (2 * (d + (nu + 1) * sum_of_weights))
    t = float(np.clip(t, max(1 / (nu + 1), 1 - nu / 2) + _MARGIN * nu / (nu + 1), _MOST))
    weight = sum_of_weights / (t * (nu - 2 + 2 * t))
    row = information[: problem.width, problem.width - 1] / n
    of_outliers = weight * (nu + 1) / nu * (1 - t) * (1 - 2 * t) / sigma**2
    coefficients, conditional = problem.coefficients()
    rest = replace(coefficients, precision=coefficients.precision - of_outliers * np.outer(row, row))
    subspace = find_subspace(rest, conditional, min(problem.width, form.size - OUTLIERS))
    form = replace(form, size=form.size - OUTLIERS, heaviest=form.heaviest - weight)
    location = form.points(subspace, rng)
    if location is None:
        return None
    residual = sigma * np.sqrt(nu * t / (1 - t))
    predictor = row @ target.mean[: problem.width]
    return Points(
        np.vstack((location.u, row, row)),
        np.concatenate((location.y, [predictor + residual, predictor - residual])),
        np.concatenate((location.weight, [weight / 2, weight / 2])),
    )
