"""The parameter ``beta`` of private methods, and the model that it decorates."""

from collections.abc import Mapping
from typing import Any, Final

from app.errors import InvalidRequest
from app.inference.core.knobs import Parameter
from app.inference.core.model import Model
from app.inference.models.robust import LEAST_BETA, make_robust

BETA: Final = Parameter(
    "beta",
    "number",
    0,
    1,
    f"Power of densities in a likelihood that limits the influence of rows that do not fit; 0 is off, and the least "
    f"other value is {LEAST_BETA:g}. Models of counts have none.",
    0.0,
)


def read_beta(parameters: Mapping[str, Any], model: Model) -> float:
    """Read ``beta`` from checked ``parameters``, and check that ``model`` has such a likelihood.

    Raises:
        InvalidRequest: at ``/parameters/beta``.
    """
    beta = float(parameters.get(BETA.name, 0.0))
    if 0 < beta < LEAST_BETA:
        raise InvalidRequest.at("/parameters/beta", f"Use 0, or a number of at least {LEAST_BETA:g} and at most 1.")
    decorate(model, beta)
    return beta


def decorate(model: Model, beta: float) -> Model:
    """Decorate ``model`` with its beta-likelihood; ``beta`` 0 returns the model itself."""
    return make_robust(model, beta) if beta else model
