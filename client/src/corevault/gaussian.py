"""Normal beliefs over named coefficients, as a Laplace approximation gives them."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Self

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_solve, cholesky, solve_triangular

from corevault._arguments import import_pandas, require_number, what_came
from corevault.errors import InvalidArgument, WrongType
from corevault.prediction import Outcome, predict_mean, predict_probability

if TYPE_CHECKING:
    import pandas as pd

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Gaussian:
    """``N(mean, covariance)`` over coefficients ``names``; shapes ``(p,)`` and ``(p, p)``, positive definite.

    ``outcome`` says what the model predicts; None where the belief was made by hand.
    """

    names: tuple[str, ...]
    mean: Array
    covariance: Array
    outcome: Outcome | None = None

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
            raise WrongType(f"rng must be a generator, such as numpy.random.default_rng(); {what_came(rng)}.")
        if not isinstance(n, int | np.integer):
            raise WrongType(f"n must be a whole number; {what_came(n)}.")
        require_number(n, "n", lower=0)
        root = cholesky(self.covariance, lower=True)
        draws: Array = self.mean + rng.standard_normal((n, len(self.mean))) @ root.T
        return draws

    def summary(self) -> list[dict[str, float | str]]:
        """One row a coefficient: name, mean, sd and the central 95 % interval."""
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
            raise WrongType(f"The other belief must be a Gaussian; {what_came(other)}.")
        if self.names != other.names:
            raise InvalidArgument("The two beliefs are about different coefficients.")
        root = cholesky(other.covariance, lower=True)
        own = cholesky(self.covariance, lower=True)
        spread = np.sum(solve_triangular(root, own, lower=True) ** 2)
        shift = np.sum(solve_triangular(root, self.mean - other.mean, lower=True) ** 2)
        log_ratio = 2.0 * (np.sum(np.log(np.diag(root))) - np.sum(np.log(np.diag(own))))
        return float(0.5 * (spread + shift - len(self.mean) + log_ratio))

    def predict_probability(self, x: Array) -> Array:
        """Posterior predictive probabilities for design rows ``x`` ``(n, p)``.

        ``(n,)`` of a 1 under logistic and probit regression, ``(n, K)`` of each class in declared order under
        multinomial logistic regression. Probit is exact; the others shrink each logit by ``1/√(1 + π s²/8)`` (MacKay,
        1992). A belief that was made by hand counts as one of logistic regression.

        Raises ``InvalidArgument`` for a family without probabilities, and for an ``x`` that is no design matrix.
        """
        outcome = self.outcome or Outcome("logistic-regression", self.names)
        return predict_probability(outcome, self.mean, self.covariance, x)

    def predict_mean(self, x: Array) -> Array:
        """The posterior predictive mean of the target, ``(n,)``, for design rows ``x`` ``(n, p)``.

        It is in the target's own units: the expected count under Poisson regression, the expected target under linear
        regression (both exact for this normal belief), the probability of a 1 under logistic and probit regression.

        Raises ``InvalidArgument`` for a family without a mean to predict, for a belief that was made by hand, and
        for an ``x`` that is no design matrix.
        """
        if self.outcome is None:
            raise InvalidArgument("This belief does not say of which model it is; take one from core.laplace().")
        return predict_mean(self.outcome, self.mean, self.covariance, x)

    def about(self, outcome: Outcome) -> Self:
        """The same belief, which knows what its model predicts."""
        return replace(self, outcome=outcome)


def from_precision(names: Sequence[str], mean: Array, root: tuple[Array, bool]) -> Gaussian:
    """A Gaussian from its mean and the Cholesky factor of its precision, as ``scipy.linalg.cho_factor`` has it."""
    covariance = cho_solve(root, np.eye(len(mean)))
    return Gaussian(tuple(names), mean, 0.5 * (covariance + covariance.T))
