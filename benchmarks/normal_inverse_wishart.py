"""The normal distribution of unknown mean and covariance, for filters of particles.

``Sigma ~ IW(Psi, v)`` and ``mean | Sigma ~ N(m, Sigma / count)``. Let T be lower triangular, and ``T T'`` the inverse
of Sigma. A parameter is the mean, the logarithms of the diagonal of T, and the values of T below the diagonal. So every
vector of ``d + d (d + 1) / 2`` numbers is a parameter. The posterior of weighted rows is of the same family. Source:
Gelman et al., *Bayesian Data Analysis*, 3rd ed., section 3.6.
"""

from dataclasses import dataclass

import numpy as np
import scipy
from numpy.typing import NDArray
from scipy.linalg import solve_triangular

from app.inference.core.model import Array64


def fold_rows(x: Array64) -> Array64:
    """Fold rows ``(n, d)`` to ``[1, x, x x']``.

    Log densities are linear in the result, ``(n, 1 + d + d d)``.
    """
    return np.column_stack((np.ones(len(x)), x, (x[:, :, None] * x[:, None, :]).reshape(len(x), -1)))


@dataclass(frozen=True, slots=True)
class NormalRows:
    """The likelihood of folded rows of ``width`` columns."""

    width: int

    def log_likelihood(self, rows: Array64, draws: Array64) -> Array64:
        """Compute log densities ``(n, S)``, up to a constant."""
        mean, root, logs = split(draws, self.width)
        precision = root @ root.transpose(0, 2, 1)
        pulled = np.einsum("sij,sj->si", precision, mean)
        first = logs.sum(axis=1) - 0.5 * np.vecdot(pulled, mean)
        coefficients = np.column_stack((first, pulled, -0.5 * precision.reshape(len(draws), -1)))
        return np.asarray(rows @ coefficients.T)


@dataclass(frozen=True, slots=True, eq=False)
class NormalInverseWishart:
    """The distribution, with the arrays of a belief of the model ``gaussian``."""

    mean: Array64
    count: float
    scale: Array64
    degrees: float

    @property
    def dimension(self) -> int:
        """The number of parameters."""
        return len(self.mean) * (len(self.mean) + 3) // 2

    def update(self, x: Array64, weights: Array64) -> "NormalInverseWishart":
        """Compute the posterior of rows ``(n, d)`` with weights ``(n,)``."""
        count = self.count + float(weights.sum())
        mean = (self.count * self.mean + weights @ x) / count
        products = (x * weights[:, None]).T @ x
        scale = self.scale + products + self.count * np.outer(self.mean, self.mean) - count * np.outer(mean, mean)
        return NormalInverseWishart(mean, count, scale, self.degrees + float(weights.sum()))

    def log_density(self, theta: Array64) -> Array64:
        """Compute the log density at parameters ``(n, D)``, up to a constant.

        The Wishart density of ``T T'`` times the Jacobian ``prod_i 2 t_ii^(d - i + 1)``, times ``prod_i t_ii``.
        """
        d = len(self.mean)
        mean, root, logs = split(theta, d)
        powers = self.degrees - d + 1 + np.arange(d, 0, -1)
        trace = np.einsum("ij,sjk,sik->s", self.scale, root, root)
        off = np.einsum("sji,sj->si", root, mean - self.mean)
        return np.asarray(logs @ powers - 0.5 * trace - 0.5 * self.count * np.vecdot(off, off))

    def sample(self, rng: np.random.Generator, n: int) -> Array64:
        """Draw ``(n, D)`` parameters, by Bartlett's decomposition."""
        d = len(self.mean)
        inner = np.tril(rng.standard_normal((n, d, d)), -1)
        inner[:, range(d), range(d)] = np.sqrt(rng.chisquare(self.degrees - np.arange(d), (n, d)))
        root = np.linalg.cholesky(np.linalg.inv(self.scale)) @ inner
        normals = rng.standard_normal((n, d, 1)) / np.sqrt(self.count)
        mean = self.mean + np.linalg.solve(root.transpose(0, 2, 1), normals)[:, :, 0]
        row, column = np.tril_indices(d, -1)
        return np.column_stack((mean, np.log(np.diagonal(root, axis1=1, axis2=2)), root[:, row, column]))

    def compute_divergence(self, other: "NormalInverseWishart") -> float:
        """Compute the KL divergence of this distribution from ``other``, in nats."""
        d, half = len(self.mean), self.degrees / 2
        factor = np.linalg.cholesky(self.scale)
        ratio = solve_triangular(factor, np.linalg.cholesky(other.scale), lower=True)
        share = float(np.square(ratio).sum())
        logs = -2 * float(np.log(np.abs(ratio.diagonal())).sum())
        gammas = scipy.special.multigammaln(other.degrees / 2, d) - scipy.special.multigammaln(half, d)
        digammas = float(scipy.special.digamma(half - np.arange(d) / 2).sum())
        covariance = (
            0.5 * other.degrees * logs + gammas + 0.5 * (self.degrees - other.degrees) * digammas
            + 0.5 * self.degrees * (share - d)
        )  # fmt: skip
        shift = solve_triangular(factor, self.mean - other.mean, lower=True)
        counts = other.count / self.count
        mean = 0.5 * (d * (counts - 1 - np.log(counts)) + other.count * self.degrees * float(shift @ shift))
        return float(covariance + mean)


def split(theta: Array64, width: int) -> tuple[Array64, Array64, Array64]:
    """Split parameters ``(S, D)``.

    Returns:
        The means ``(S, d)``, the roots T ``(S, d, d)``, and the logarithms of their diagonals ``(S, d)``.
    """
    mean, logs, below = np.split(theta, [width, 2 * width], axis=1)
    root: NDArray[np.float64] = np.zeros((len(theta), width, width))
    row, column = np.tril_indices(width, -1)
    root[:, row, column] = below
    root[:, range(width), range(width)] = np.exp(logs)
    return mean, root, logs
