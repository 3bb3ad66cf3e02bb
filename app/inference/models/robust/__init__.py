"""Beta-likelihoods: models whose potentials bound the influence of rows that do not fit.

The potential of a density ``p(x | theta)`` is

    ``f_beta = p^beta / beta - E_theta[p^beta] / (1 + beta)``,

up to constants; as ``beta`` tends to 0, it tends to ``log p``. Its gradient ``p^beta s - E_theta[p^beta s]``, with the
score ``s``, has mean zero under the model for every ``beta``. A row of small density has a small weight ``p^beta``. The
expected information is ``E_theta[p^beta s s']``. Densities are relative to their largest value at the model's reference
scale: constant factors would temper the posterior. Sources: Basu, Harris, Hjort & Jones, *Biometrika* 85, 1998;
Manousakas, thesis, Eq. 2.23 with the opposite sign, divided by ``1 + beta``.
"""

from typing import Final, cast

from app.errors import InvalidRequest
from app.inference.core.model import Model
from app.inference.models.gaussian import CorrelatedMean, GaussianMean
from app.inference.models.linear import LinearRegression
from app.inference.models.logistic import LogisticRegression
from app.inference.models.multinomial import MultinomialLogistic
from app.inference.models.probit import ProbitRegression
from app.inference.models.robust.decorator import Robust, RobustModel
from app.inference.models.robust.gaussian_mean import RobustGaussianMean
from app.inference.models.robust.labels import RobustLabels
from app.inference.models.robust.location_scale import RobustLocationScale
from app.inference.models.robust.multinomial import RobustMultinomial
from app.inference.models.student_t import StudentTRegression

__all__ = ["LEAST_BETA", "Robust", "RobustModel", "make_robust", "strip_beta"]

LEAST_BETA: Final = 1e-3
"""Least ``beta`` of a request: in single precision, the error of a potential is a rounding of ``1 / beta``."""


def strip_beta(model: Model) -> Model:
    """Return the model that is decorated, or ``model`` itself."""
    return cast(Model, model.model) if isinstance(model, Robust) else model


def make_robust(model: Model, beta: float) -> RobustModel:
    """Decorate ``model`` with its beta-likelihood, ``0 < beta <= 1``.

    Raises:
        InvalidRequest: at ``/parameters/beta``, for counts and for noise of a declared covariance.
    """
    match model:
        case LogisticRegression() | ProbitRegression():
            return RobustLabels(model, beta)
        case LinearRegression() | StudentTRegression():
            return RobustLocationScale(model, beta)
        case MultinomialLogistic():
            return RobustMultinomial(model, beta)
        case CorrelatedMean():
            raise InvalidRequest.at(
                "/parameters/beta", "Noise of a declared covariance has no beta-likelihood here; state a noise_scale."
            )
        case GaussianMean():
            return RobustGaussianMean(model, beta)
    raise InvalidRequest.at(
        "/parameters/beta",
        "Models of counts have no beta-likelihood, because its integral has no closed form; use another family, or a "
        "method without beta.",
    )
