"""The belief at which groups are compared: a normal distribution that the request states, or the prior."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from app.errors import InvalidRequest
from app.inference.core.knobs import NormalLaw
from app.inference.core.model import Array64
from app.inference.core.priors import Prior

MOST_PARAMETERS: Final = 100
BELIEF: Final = NormalLaw(
    "belief",
    MOST_PARAMETERS,
    "Normal distribution of the parameters at which groups are compared, in the design's coordinates: the posterior of "
    "an earlier release, for example. By default, the prior.",
)
_POINTER: Final = "/parameters/belief"
_TOLERANCE: Final = 1e-9


@dataclass(frozen=True, slots=True)
class Normal:
    """``N(mean, factor factor')``; ``mean`` is ``(D,)``, ``factor`` ``(D, D)``."""

    mean: Array64
    factor: Array64

    def sample(self, rng: np.random.Generator, n: int) -> Array64:
        """Draw ``(n, D)`` parameters."""
        return self.mean + rng.standard_normal((n, len(self.mean))) @ self.factor.T


def read_law(parameters: Mapping[str, Any], names: Sequence[str], prior: Prior) -> Normal | Prior:
    """Read the belief of checked ``parameters``, in the order of ``names``; without one, the prior.

    Raises:
        InvalidRequest: below ``/parameters/belief``, for other names or a matrix that is no covariance.
    """
    stated = parameters.get(BELIEF.name)
    if stated is None:
        return prior
    given = list(stated["parameters"])
    if sorted(given) != sorted(names):
        raise InvalidRequest.at(f"{_POINTER}/parameters", "Name each parameter of the model once, and no others.")
    order = [given.index(name) for name in names]
    mean = np.array(stated["mean"], dtype=np.float64)[order]
    if "variance" in stated:
        variance = np.array(stated["variance"], dtype=np.float64)[order]
        if not np.all(variance > 0):
            raise InvalidRequest.at(f"{_POINTER}/variance", "Use numbers above 0.")
        return Normal(mean, np.diag(np.sqrt(variance)))
    return Normal(mean, _factorise(np.array(stated["covariance"], dtype=np.float64)[np.ix_(order, order)]))


def _factorise(covariance: Array64) -> Array64:
    scale = float(np.abs(covariance).max())
    if not scale or float(np.abs(covariance - covariance.T).max()) > _TOLERANCE * scale:
        raise InvalidRequest.at(f"{_POINTER}/covariance", "Use a symmetric matrix that is not zero.")
    values, vectors = np.linalg.eigh(covariance / scale)
    if values[0] < -_TOLERANCE:
        raise InvalidRequest.at(f"{_POINTER}/covariance", "Use a matrix without negative eigenvalues.")
    return np.asarray(vectors * np.sqrt(np.maximum(values, 0) * scale))
