"""One case for every model, with its possible rows and targets.

A new model adds a case to ``CASES``.
"""

from abc import ABC, abstractmethod

import numpy as np
from scipy.special import expit, ndtr
from scipy.stats import nbinom, norm, poisson, t

from app.inference.core.facts import Column
from app.inference.core.model import Array32, Array64, Model
from app.inference.core.plan import ModelSpec
from app.inference.models.definition import Family
from app.inference.registry import find_family

N, P, S = 7, 4, 5
BINARY = Column("y", "binary")
NUMBER = Column("y", "real", -2.0, 10.0)
CLASSES = Column("y", "categorical", categories=("a", "b", "c"))
COVARIANCE = np.diag(np.linspace(0.3, 1.2, P)) + 0.2
COUNT = Column("y", "integer", 0.0, 30.0)


class ModelCase(ABC):
    """A model with random rows, targets and parameters, on which its laws are tested."""

    name: str
    good: Column | None
    bad: Column
    noise_scale: float | None = None
    degrees_of_freedom: float | None = None
    dispersion: float | None = None
    least_single = -np.inf
    """The model's lower bound of the log-likelihood in single precision, if it has one."""
    least_kept = 0.5
    """Least share of the information under a bound at the root mean square."""

    @abstractmethod
    def outcomes(self, x: Array64, theta: Array64) -> tuple[Array64, Array64]:
        """Targets ``(K,)`` or ``(n, K)``, and their probabilities ``(n, K)`` at design rows ``x``."""

    def family(self) -> Family:
        return find_family(self.name)

    def model(self) -> Model:
        spec = ModelSpec(
            self.name,
            (),
            None,
            noise_scale=self.noise_scale,
            degrees_of_freedom=self.degrees_of_freedom,
            dispersion=self.dispersion,
        )
        bind = self.family().bind
        assert bind is not None
        return bind(spec, P, self.good)

    def x(self, rng: np.random.Generator, n: int = N) -> Array64:
        x = rng.uniform(-1, 1, (n, P))
        if self.family().intercept:
            x[:, -1] = 1
        return x

    def theta(self, rng: np.random.Generator) -> Array64:
        return 0.7 * rng.standard_normal(self.model().dimension)

    def draws(self, rng: np.random.Generator) -> Array64:
        return np.array([self.theta(rng) for _ in range(S)])

    def wild_draws(self, rng: np.random.Generator) -> Array64:
        return 300 * rng.standard_normal((S, self.model().dimension))

    def targets(self, rng: np.random.Generator, n: int) -> Array64:
        x = np.zeros((n, P))
        values, _ = self.outcomes(x, self.theta(rng))
        return rng.choice(np.broadcast_to(values, (n, values.shape[-1])).ravel(), n)

    def rows(self, rng: np.random.Generator, n: int = N) -> Array64:
        return np.asarray(self.model().fold(self.x(rng, n), self.targets(rng, n)))

    def all_outcomes(self, x: Array64, theta: Array64) -> tuple[Array32, Array64]:
        """Folded rows ``(n, K, row_width)`` of every outcome, and their probabilities ``(n, K)``."""
        values, probabilities = self.outcomes(x, theta)
        values = np.broadcast_to(values, probabilities.shape)
        repeated = np.repeat(x.astype(np.float32), values.shape[1], axis=0)
        rows = self.model().fold(repeated, values.ravel().astype(np.float32))
        return rows.reshape(*values.shape, -1), probabilities

    def transform(self, rng: np.random.Generator) -> Array64:
        dimension = self.model().dimension
        return np.eye(dimension) + 0.3 * rng.standard_normal((dimension, dimension))


class LogisticRegression(ModelCase):
    name, good, bad = "logistic-regression", BINARY, NUMBER
    least_single = -80.0

    def outcomes(self, x: Array64, theta: Array64) -> tuple[Array64, Array64]:
        p = expit(x @ theta)
        return np.array([0.0, 1.0]), np.stack((1 - p, p), axis=1)


class ProbitRegression(ModelCase):
    name, good, bad = "probit-regression", BINARY, COUNT
    least_single = float(norm.logcdf(-12.0))

    def outcomes(self, x: Array64, theta: Array64) -> tuple[Array64, Array64]:
        p = ndtr(x @ theta)
        return np.array([0.0, 1.0]), np.stack((1 - p, p), axis=1)


class MultinomialLogistic(ModelCase):
    name, good, bad = "multinomial-logistic", CLASSES, Column("y", "categorical", categories=("a",))

    def outcomes(self, x: Array64, theta: Array64) -> tuple[Array64, Array64]:
        odds = np.exp(np.column_stack((np.zeros(len(x)), x @ theta[:P], x @ theta[P:])))
        return np.array([0.0, 1.0, 2.0]), odds / odds.sum(axis=1, keepdims=True)

    def wild_draws(self, rng: np.random.Generator) -> Array64:
        """Draws within the range of single precision, because this log-likelihood has no lower bound."""
        return 8 * rng.standard_normal((S, 2 * P))


class PoissonRegression(ModelCase):
    name, good, bad = "poisson-regression", COUNT, Column("y", "integer", -1.0, 9.0)

    def outcomes(self, x: Array64, theta: Array64) -> tuple[Array64, Array64]:
        values = np.arange(0.0, 120.0)
        return values, poisson.pmf(values, np.exp(x @ theta)[:, None])

    def targets(self, rng: np.random.Generator, n: int) -> Array64:
        return rng.poisson(3.0, n).astype(np.float64)

    def wild_draws(self, rng: np.random.Generator) -> Array64:
        return 4 * rng.standard_normal((S, P))


class NegativeBinomialRegression(ModelCase):
    """Clipping residuals and subtracting their mean would keep 0.495 of the information; the most possible is 0.654."""

    name, good, bad = "negative-binomial-regression", COUNT, Column("y", "integer", -1.0, 9.0)
    alpha = 1.0
    least_kept = 0.45

    def outcomes(self, x: Array64, theta: Array64) -> tuple[Array64, Array64]:
        """Counts up to the one beyond which there is a mass of 1e-12."""
        k, mean = 1 / self.alpha, np.exp(x @ theta[:P])[:, None]
        values = np.arange(np.max(nbinom.isf(1e-12, k, k / (k + mean))) + 1)
        return values, nbinom.pmf(values, k, k / (k + mean))

    def targets(self, rng: np.random.Generator, n: int) -> Array64:
        return rng.negative_binomial(1.0, 0.25, n).astype(np.float64)

    def wild_draws(self, rng: np.random.Generator) -> Array64:
        return 4 * rng.standard_normal((S, self.model().dimension))


class NearlyPoissonRegression(NegativeBinomialRegression):
    dispersion = alpha = 0.01
    least_kept = 0.5


class OverdispersedRegression(NegativeBinomialRegression):
    """Clipping would keep 0.332 of the information; the most possible is 0.411."""

    dispersion = alpha = 5.0
    least_kept = 0.28


class LinearRegression(ModelCase):
    name, good, bad = "linear-regression", NUMBER, BINARY
    noise_scale: float | None = 1.5

    def sigma(self, theta: Array64) -> float:
        return 1.5 / 6.0

    def outcomes(self, x: Array64, theta: Array64) -> tuple[Array64, Array64]:
        """A fine grid over nine standard deviations, on which smooth integrands are exact."""
        e = np.linspace(-9, 9, 20_001)
        values = x @ theta[:P]
        targets = values[:, None] + self.sigma(theta) * e
        return targets, np.tile(norm.pdf(e) * (e[1] - e[0]), (len(x), 1))

    def targets(self, rng: np.random.Generator, n: int) -> Array64:
        return rng.uniform(-1, 1, n)


class LinearRegressionOfUnknownNoise(LinearRegression):
    noise_scale = None

    def sigma(self, theta: Array64) -> float:
        return float(0.25 * np.exp(theta[-1]))

    def wild_draws(self, rng: np.random.Generator) -> Array64:
        draws = 300 * rng.standard_normal((S, P + 1))
        draws[:, -1] /= 60
        return draws


class StudentTRegression(LinearRegression):
    """Four degrees of freedom, by default."""

    name = "student-t-regression"
    noise_scale: float | None = 3.0
    nu = 4.0

    def sigma(self, theta: Array64) -> float:
        return 0.5

    def outcomes(self, x: Array64, theta: Array64) -> tuple[Array64, Array64]:
        """A grid in the angle with ``e = sqrt(nu) tan(angle)``, far into both tails."""
        angle = np.pi * ((np.arange(20_001) + 0.5) / 20_001 - 0.5)
        e = np.sqrt(self.nu) * np.tan(angle)
        mass = t.pdf(e, self.nu) * np.sqrt(self.nu) / np.cos(angle) ** 2 * np.pi / len(angle)
        return (x @ theta[:P])[:, None] + self.sigma(theta) * e, np.tile(mass, (len(x), 1))


class CauchyRegression(StudentTRegression):
    degrees_of_freedom = nu = 1.0


class StudentTRegressionOfUnknownScale(StudentTRegression):
    noise_scale = None

    def sigma(self, theta: Array64) -> float:
        return float(0.25 * np.exp(theta[-1]))

    def wild_draws(self, rng: np.random.Generator) -> Array64:
        return LinearRegressionOfUnknownNoise().wild_draws(rng)


class NearlyNormalRegressionOfUnknownScale(StudentTRegressionOfUnknownScale):
    degrees_of_freedom = nu = 100.0


class GaussianMean(ModelCase):
    name, good, bad = "gaussian-mean", None, BINARY
    noise_scale = 0.8

    def outcomes(self, x: Array64, theta: Array64) -> tuple[Array64, Array64]:
        return np.zeros(1), np.ones((len(x), 1))

    def all_outcomes(self, x: Array64, theta: Array64) -> tuple[Array32, Array64]:
        """Rows in pairs about ``theta``, scaled to the model's second moments."""
        z = np.random.default_rng(0).standard_normal((3000, P))
        z = z @ np.linalg.inv(np.linalg.cholesky(z.T @ z / len(z))).T
        rows = (theta + 0.8 * np.concatenate((z, -z))).astype(np.float32)
        folded = self.model().fold(rows, np.zeros(len(rows), dtype=np.float32))
        return np.tile(folded, (len(x), 1, 1)), np.full((len(x), len(rows)), 1 / len(rows))


class CorrelatedMean(GaussianMean):
    def model(self) -> Model:
        names = tuple(f"x{index}" for index in range(P))
        stated = {
            name: dict(zip(names, row, strict=True)) for name, row in zip(names, COVARIANCE.tolist(), strict=True)
        }
        bind = self.family().bind
        assert bind is not None
        return bind(ModelSpec(self.name, names, None, noise_covariance=stated), P, None)

    def all_outcomes(self, x: Array64, theta: Array64) -> tuple[Array32, Array64]:
        """Rows in pairs about ``theta``, scaled to the model's second moments."""
        z = np.random.default_rng(0).standard_normal((3000, P))
        z = z @ np.linalg.inv(np.linalg.cholesky(z.T @ z / len(z))).T @ np.linalg.cholesky(COVARIANCE).T
        rows = (theta + np.concatenate((z, -z))).astype(np.float32)
        folded = self.model().fold(rows, np.zeros(len(rows), dtype=np.float32))
        return np.tile(folded, (len(x), 1, 1)), np.full((len(x), len(rows)), 1 / len(rows))


CASES: tuple[ModelCase, ...] = (
    LogisticRegression(),
    ProbitRegression(),
    MultinomialLogistic(),
    PoissonRegression(),
    NegativeBinomialRegression(),
    NearlyPoissonRegression(),
    OverdispersedRegression(),
    LinearRegression(),
    LinearRegressionOfUnknownNoise(),
    StudentTRegression(),
    CauchyRegression(),
    StudentTRegressionOfUnknownScale(),
    NearlyNormalRegressionOfUnknownScale(),
    GaussianMean(),
    CorrelatedMean(),
)
