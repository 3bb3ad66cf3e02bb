"""Normal distributions of named coefficients, such as Laplace approximations of posteriors."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Self

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_solve, cholesky, solve_triangular

from corevault._arguments import describe, import_pandas, require_number
from corevault.errors import InvalidArgument, WrongType
from corevault.prediction import Outcome, predict_mean, predict_probability

if TYPE_CHECKING:
    import pandas as pd

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Gaussian:
    """``N(mean, covariance)`` over coefficients ``names``; shapes ``(p,)`` and ``(p, p)``, positive definite.

    ``outcome`` describes the model's predictions; it is None for an object that you constructed. ``noise`` ``(p, p)``
    is the part of ``covariance`` that a release states for its noise; it is None if ``covariance`` leaves noise out.
    """

    names: tuple[str, ...]
    mean: Array
    covariance: Array
    outcome: Outcome | None = None
    noise: Array | None = None

    @classmethod
    def prior(cls, names: Sequence[str], scale: float) -> Self:
        """``N(0, scale² I)``."""
        require_number(scale, "scale")
        return cls(tuple(names), np.zeros(len(names)), scale**2 * np.eye(len(names)))

    @property
    def sd(self) -> Array:
        """Standard deviations, shape ``(p,)``."""
        deviations: Array = np.sqrt(np.diag(self.covariance))
        return deviations

    def sample(self, n: int, rng: np.random.Generator) -> Array:
        """``n`` draws, shape ``(n, p)``."""
        if not isinstance(rng, np.random.Generator):
            raise WrongType(f"rng must be a generator, such as numpy.random.default_rng(); {describe(rng)}.")
        if not isinstance(n, int | np.integer):
            raise WrongType(f"n must be a whole number; {describe(n)}.")
        require_number(n, "n", lower=0)
        root = cholesky(self.covariance, lower=True)
        draws: Array = self.mean + rng.standard_normal((n, len(self.mean))) @ root.T
        return draws

    def summary(self) -> list[dict[str, float | str]]:
        """One row for each coefficient: name, mean, sd and the central 95 % interval.

        The interval is ``mean ± 1.96 sd``. It includes the noise of a release if ``noise`` is not None.
        """
        half = 1.959963984540054 * self.sd
        return [
            {"name": name, "mean": float(mean), "sd": float(sd), "low": float(mean - h), "high": float(mean + h)}
            for name, mean, sd, h in zip(self.names, self.mean, self.sd, half, strict=True)
        ]

    def to_pandas(self) -> "pd.DataFrame":
        """The summary as a DataFrame indexed by name (needs the ``pandas`` extra)."""
        return import_pandas().DataFrame(self.summary()).set_index("name")

    def kl(self, other: "Gaussian") -> float:
        """``KL(self ‖ other)`` in nats. Raises ``InvalidArgument`` for other coefficients."""
        if not isinstance(other, Gaussian):
            raise WrongType(f"The argument must be a Gaussian; {describe(other)}.")
        if self.names != other.names:
            raise InvalidArgument("The two Gaussians have different coefficients; compare releases of the same model.")
        root = cholesky(other.covariance, lower=True)
        own = cholesky(self.covariance, lower=True)
        spread = np.sum(solve_triangular(root, own, lower=True) ** 2)
        shift = np.sum(solve_triangular(root, self.mean - other.mean, lower=True) ** 2)
        log_ratio = 2.0 * (np.sum(np.log(np.diag(root))) - np.sum(np.log(np.diag(own))))
        return float(0.5 * (spread + shift - len(self.mean) + log_ratio))

    def predict_probability(self, x: Array) -> Array:
        """Posterior predictive probabilities for design rows ``x`` ``(n, p)``.

        Under logistic and probit regression the result is the probability of a 1, ``(n,)``. Under multinomial logistic
        regression it is the probability of each class in declared order, ``(n, K)``. Probit is exact; the others shrink
        each logit by ``1/√(1 + π s²/8)`` (MacKay, 1992). Without an ``outcome``, the model counts as logistic
        regression.

        Raises ``InvalidArgument`` for a family without probabilities, and if ``x`` is not a design matrix.
        """
        outcome = self.outcome or Outcome("logistic-regression", self.names)
        return predict_probability(outcome, self.mean, self.covariance, x)

    def predict_mean(self, x: Array) -> Array:
        """The posterior predictive mean of the target, ``(n,)``, for design rows ``x`` ``(n, p)``.

        It has the target's units: the expected count under Poisson and negative binomial regression, the expected
        target under linear and Student-t regression. These are exact for this normal distribution. Noise with 1 degree
        of freedom has no mean; the result is then the median. Under logistic and probit regression it is the
        probability of a 1.

        Raises ``InvalidArgument`` for a family without a mean to predict, without an ``outcome``, and if ``x`` is not a
        design matrix.
        """
        if self.outcome is None:
            raise InvalidArgument("This Gaussian has no model, so it predicts no mean; call core.laplace() for one.")
        return predict_mean(self.outcome, self.mean, self.covariance, x)

    def with_noise(self, noise: "Gaussian") -> Self:
        """The sum of this variable and an independent error with the distribution ``noise``.

        Means and covariances add up. Raises ``InvalidArgument`` for other coefficients.
        """
        if noise.names != self.names:
            raise InvalidArgument("The noise has other coefficients; pass the noise of the same release.")
        covariance = self.covariance + noise.covariance
        return replace(self, mean=self.mean + noise.mean, covariance=covariance, noise=noise.covariance)

    def with_outcome(self, outcome: Outcome) -> Self:
        """The same distribution, with the ``outcome`` of its model."""
        return replace(self, outcome=outcome)


def from_precision(names: Sequence[str], mean: Array, root: tuple[Array, bool]) -> Gaussian:
    """A Gaussian from its mean and ``cho_factor`` of its precision."""
    covariance = cho_solve(root, np.eye(len(mean)))
    return Gaussian(tuple(names), mean, 0.5 * (covariance + covariance.T))
