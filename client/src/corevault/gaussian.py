"""A Gaussian belief over named coefficients: what a Laplace approximation gives, and what is asked of it."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_solve, cholesky, solve_triangular
from scipy.special import expit

if TYPE_CHECKING:
    import pandas as pd

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Gaussian:
    """``N(mean, covariance)`` over coefficients ``names``; shapes ``(p,)`` and ``(p, p)``, positive definite."""

    names: tuple[str, ...]
    mean: Array
    covariance: Array

    @classmethod
    def prior(cls, names: Sequence[str], scale: float) -> Self:
        """``N(0, scale² I)``."""
        return cls(tuple(names), np.zeros(len(names)), scale**2 * np.eye(len(names)))

    @property
    def sd(self) -> Array:
        """Standard deviations, shape ``(p,)``."""
        deviations: Array = np.sqrt(np.diag(self.covariance))
        return deviations

    def sample(self, n: int, rng: np.random.Generator) -> Array:
        """``n`` draws, shape ``(n, p)``."""
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
        import pandas as pd  # noqa: PLC0415 - an extra

        return pd.DataFrame(self.summary()).set_index("name")

    def kl(self, other: "Gaussian") -> float:
        """``KL(self ‖ other)`` in nats. Raises ``ValueError`` for other coefficients."""
        if self.names != other.names:
            raise ValueError("The two beliefs are about different coefficients.")
        root = cholesky(other.covariance, lower=True)
        own = cholesky(self.covariance, lower=True)
        spread = np.sum(solve_triangular(root, own, lower=True) ** 2)
        shift = np.sum(solve_triangular(root, self.mean - other.mean, lower=True) ** 2)
        log_ratio = 2.0 * (np.sum(np.log(np.diag(root))) - np.sum(np.log(np.diag(own))))
        return float(0.5 * (spread + shift - len(self.mean) + log_ratio))

    def predict_probability(self, x: Array) -> Array:
        """Posterior predictive probability of a 1 under logistic regression, shape ``(n,)``, for ``x`` ``(n, p)``.

        The probit approximation of MacKay (1992): the logit's mean shrinks by ``1/√(1 + π s²/8)``.
        """
        variance = np.einsum("np,pq,nq->n", x, self.covariance, x)
        probability: Array = expit((x @ self.mean) / np.sqrt(1.0 + np.pi * variance / 8.0))
        return probability


def from_precision(names: Sequence[str], mean: Array, root: tuple[Array, bool]) -> Gaussian:
    """A Gaussian from its mean and the Cholesky factor of its precision, as ``scipy.linalg.cho_factor`` has it."""
    covariance = cho_solve(root, np.eye(len(mean)))
    return Gaussian(tuple(names), mean, 0.5 * (covariance + covariance.T))
