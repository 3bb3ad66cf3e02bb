"""What every model owes: a new one inherits the suite and says which targets its rows may have."""

from abc import ABC, abstractmethod
from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.special import expit, ndtr
from scipy.stats import norm, poisson

from app.errors import InvalidRequest
from app.inference.laplace import laplace
from app.inference.models.definition import Family
from app.inference.priors import NormalPrior
from app.inference.protocol import Array32, Array64, Column, Model, ModelSpec
from app.inference.registry import families, family

N, P, S = 7, 4, 5
STEP = 1e-5
TINY = np.finfo(np.float32).tiny
CLIPS = (0.03, 0.5, 4.0, 300.0)
BINARY = Column("y", "binary")
NUMBER = Column("y", "real", -2.0, 10.0)
CLASSES = Column("y", "categorical", categories=("a", "b", "c"))
COUNT = Column("y", "integer", 0.0, 30.0)


def _differences(f: Callable[[Array64], float], at: Array64) -> Array64:
    """Central finite differences of a scalar function, in the shape of ``at``."""
    gradient = np.empty_like(at)
    for index in np.ndindex(at.shape):
        up, down = at.copy(), at.copy()
        up[index] += STEP
        down[index] -= STEP
        gradient[index] = (f(up) - f(down)) / (2 * STEP)
    return gradient


class ModelConformance(ABC):
    """Laws of a likelihood."""

    name: str
    good: Column | None
    bad: Column
    noise_scale: float | None = None
    least_single = -np.inf
    """Where the model bounds its log-likelihood in single precision, the bound."""

    @abstractmethod
    def outcomes(self, x: Array64, theta: Array64) -> tuple[Array64, Array64]:
        """Targets ``(K,)`` or ``(n, K)``, and their probabilities ``(n, K)`` at design rows ``x``."""

    def family(self) -> Family:
        return family(self.name)

    def model(self) -> Model:
        spec = ModelSpec(self.name, (), None, noise_scale=self.noise_scale)
        return self.family().bind(spec, P, self.good)

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

    def test_it_is_registered(self) -> None:
        assert self.family() in families()
        assert self.family().description

    def test_targets_are_checked(self) -> None:
        if self.good is not None:
            self.family().check_target(self.good)
        with pytest.raises(InvalidRequest) as caught:
            self.family().check_target(self.bad)
        assert caught.value.faults[0].pointer == "/model/target"

    def test_dimensions_fit_together(self) -> None:
        rng, model = np.random.default_rng(0), self.model()
        rows = self.rows(rng)
        assert rows.shape == (N, model.row_width)
        names = model.parameter_names([f"x{i}" for i in range(P)])
        assert len(set(names)) == len(names) == model.dimension >= model.predictors * P
        x = self.x(rng)
        again = model.features(model.fold(x, self.targets(rng, N)))
        assert np.all((again == x).all(axis=1) | (again == -x).all(axis=1))

    def test_the_gradient_in_points_is_that_of_the_log_likelihood(self) -> None:
        rng, model = np.random.default_rng(0), self.model()
        u, y, cotangent = self.x(rng), self.targets(rng, N), rng.standard_normal(S)
        draws = self.draws(rng)

        def value(u: Array64, y: Array64) -> float:
            return float(np.sum(model.log_likelihood(model.fold(u, y), draws) @ cotangent))

        by_point, by_target = model.point_gradient(u, y, draws, cotangent)
        scale = 1 + np.abs(by_point).max()
        np.testing.assert_allclose(by_point, _differences(lambda at: value(at, y), u), atol=1e-8 * scale)
        assert (by_target is None) is (self.good is None or self.good.type in {"binary", "categorical"})
        if by_target is not None:
            np.testing.assert_allclose(by_target, _differences(lambda at: value(u, at), y), atol=1e-8 * scale)
            assert np.all(model.target_step(y) > 0)

    def test_potentials_and_gradient_in_points_are_the_same_together(self) -> None:
        rng, model = np.random.default_rng(6), self.model()
        u, y, draws, cotangent = self.x(rng), self.targets(rng, N), self.draws(rng), rng.standard_normal(S)
        potentials, pull_back = model.point_potentials(u, y, draws)
        np.testing.assert_allclose(potentials, model.log_likelihood(model.fold(u, y), draws), rtol=1e-12, atol=1e-12)
        potentials[...] = np.nan
        for found, expected in zip(pull_back(cotangent), model.point_gradient(u, y, draws, cotangent), strict=True):
            assert (found is None) is (expected is None)
            assert found is None or expected is None or np.allclose(found, expected, rtol=1e-12, atol=1e-12)

    def test_potentials_of_points_are_finite_in_single_precision_however_far_they_are_out(self) -> None:
        rng, model = np.random.default_rng(6), self.model()
        u, y, draws = (each.astype(np.float32) for each in (self.x(rng), self.targets(rng, N), self.wild_draws(rng)))
        potentials, pull_back = model.point_potentials(u, y, draws)
        assert np.all(np.isfinite(potentials))
        assert np.all(np.isfinite(pull_back(np.ones(S, dtype=np.float32))[0]))

    def test_the_gradient_in_points_is_the_same_in_single_precision(self) -> None:
        for single, double in self.point_gradients(1.0):
            np.testing.assert_allclose(single, double, atol=1e-5 * (1 + np.abs(double).max()))

    def test_the_gradient_in_points_is_finite_in_single_precision_however_far_they_are_out(self) -> None:
        assert all(np.all(np.isfinite(single)) for single, _ in self.point_gradients(30.0))

    def point_gradients(self, spread: float) -> list[tuple[Array64, Array64]]:
        """In single and in double precision, at points and draws of that spread."""
        rng, model = np.random.default_rng(0), self.model()
        exact = (spread * self.x(rng), self.targets(rng, N), spread * self.draws(rng), rng.standard_normal(S))
        single, double = (model.point_gradient(*(each.astype(to) for each in exact)) for to in (np.float32, np.float64))
        return [(a, b) for a, b in zip(single, double, strict=True) if a is not None and b is not None]

    def test_the_expansion_is_that_of_the_log_likelihood(self) -> None:
        rng, model = np.random.default_rng(1), self.model()
        rows, weights, theta = self.rows(rng), rng.uniform(0, 3, N), self.theta(rng)
        expansion = model.expand(rows, weights, theta)

        def value(at: Array64) -> float:
            return float(weights @ model.log_likelihood(rows, at[None, :])[:, 0])

        scale = 1 + np.abs(expansion.information).max()
        assert expansion.value == pytest.approx(value(theta), rel=1e-12)
        np.testing.assert_allclose(expansion.gradient, _differences(value, theta), atol=1e-9 * scale)
        moves = STEP * np.eye(model.dimension)
        slopes = [[model.expand(rows, weights, theta + way * move).gradient for move in moves] for way in (1, -1)]
        numeric = (np.array(slopes[1]) - np.array(slopes[0])) / (2 * STEP)
        np.testing.assert_allclose(expansion.information, numeric, atol=1e-8 * scale)

    def test_potentials_are_stable_and_alike_in_both_precisions(self) -> None:
        rng, model = np.random.default_rng(2), self.model()
        rows, draws = self.rows(rng), self.wild_draws(rng)
        double = model.log_likelihood(rows, draws)
        out = np.empty((N, S), dtype=np.float32)
        single = model.log_likelihood(rows.astype(np.float32), draws.astype(np.float32), out=out)
        assert single is out
        assert np.all(np.isfinite(double))
        np.testing.assert_allclose(single, np.maximum(double, self.least_single), rtol=1e-4, atol=1e-4)

    def test_losses_of_pairs_are_potentials_with_the_other_sign_up_to_a_constant_a_row(self) -> None:
        rng, model = np.random.default_rng(2), self.model()
        rows, centre, deviations = self.rows(rng), self.theta(rng), 0.3 * self.draws(rng)
        expected = -model.log_likelihood(rows, np.concatenate((centre + deviations, centre - deviations)))
        x, c, h = (each.astype(np.float32) for each in (rows, centre, deviations))
        for out in (np.empty_like(expected, dtype=np.float32), np.empty_like(expected.T, dtype=np.float32).T):
            difference = model.paired_losses(x, c, h, out) - expected
            np.testing.assert_allclose(difference - difference[:, :1], 0, atol=1e-4)

    def test_a_null_row_says_nothing(self) -> None:
        rng, model = np.random.default_rng(3), self.model()
        null, theta = np.zeros((1, model.row_width)), self.theta(rng)
        assert np.ptp(model.log_likelihood(null, self.draws(rng))) == 0
        expansion = model.expand(null, np.ones(1), theta)
        assert not np.any(expansion.gradient)
        assert not np.any(expansion.information)
        single = null.astype(np.float32)
        assert not np.any(model.scores(single, theta))
        assert not np.any(model.bounded_scores(single, theta, self.transform(rng), 1.0))
        assert not np.any(model.information_factors(single, theta))

    def test_sampled_targets_follow_the_likelihood(self) -> None:
        """At the true parameter the score has mean zero: within six standard errors over 20,000 rows."""
        rng, model = np.random.default_rng(5), self.model()
        x, theta = self.x(rng, 20_000), self.theta(rng)
        y = model.sample_targets(rng, x, theta)
        assert y.shape == (20_000,)
        if self.good is None:
            x = theta + (self.noise_scale or 1.0) * rng.standard_normal(x.shape)
        expansion = model.expand(np.asarray(model.fold(x, y)), np.ones(20_000), theta)
        assert np.all(np.abs(expansion.gradient) < 6 * np.sqrt(np.diag(expansion.information)))

    def test_starting_targets_have_the_shape_and_spread_of_targets(self) -> None:
        rng = np.random.default_rng(6)
        y = self.model().starting_targets(rng, self.x(rng, 9))
        assert y.shape == (9,)
        if self.good is not None:
            assert np.ptp(y) > 0
        if self.good is not None and self.good.lower is not None and self.good.upper is not None:
            assert self.good.lower <= y.min() <= y.max() <= self.good.upper

    @pytest.mark.parametrize("scale", [0.1, 1.0, 50.0])
    @pytest.mark.parametrize("start", [0.0, 3.0])
    def test_laplace_finds_the_mode_of_an_independent_optimiser(self, scale: float, start: float) -> None:
        rng, model = np.random.default_rng(7), self.model()
        prior = NormalPrior(np.full(model.dimension, scale))
        rows, weights = self.rows(rng, 40), rng.uniform(0, 20, 40)
        found = laplace(model, rows, weights, prior, np.full(model.dimension, start))

        def energy(theta: NDArray[np.float64]) -> float:
            likelihood = float(weights @ model.log_likelihood(rows, theta[None, :])[:, 0])
            return -likelihood - float(prior.log_density(theta[None, :])[0])

        def slope(theta: NDArray[np.float64]) -> Array64:
            return -model.expand(rows, weights, theta).gradient - prior.gradient(theta)

        start_of_other = np.zeros(model.dimension)
        independent = minimize(energy, start_of_other, jac=slope, method="BFGS", options={"gtol": 1e-7}).x
        np.testing.assert_allclose(found.mean, independent, atol=1e-4 * max(1.0, scale))
        precision = found.factor @ found.factor.T
        information = model.expand(rows, weights, found.mean).information + prior.precision(found.mean)
        np.testing.assert_allclose(precision, information, rtol=1e-3, atol=1e-6 * np.abs(information).max())

    def test_scores_add_up_to_the_gradient(self) -> None:
        rng, model = np.random.default_rng(8), self.model()
        rows, theta = self.rows(rng), self.theta(rng)
        found = model.scores(rows.astype(np.float32), theta)
        assert found.dtype == np.float32
        gradients = [model.expand(row[None], np.ones(1), theta).gradient for row in rows]
        np.testing.assert_allclose(found, gradients, rtol=1e-4, atol=2e-5)

    @pytest.mark.parametrize("clip", CLIPS)
    def test_bounded_scores_are_bounded_whatever_the_row(self, clip: float) -> None:
        """W14: no value raises or warns, breaks the bound, or makes a number that takes longer."""
        rng, model = np.random.default_rng(9), self.model()
        wild = rng.choice(
            [0.0, 1.0, -1.0, 0.5, 1e-6, 1e3, -1e9, 1e30, np.inf, -np.inf, np.nan], (4000, model.row_width)
        )
        tame = self.rows(rng, 400)
        rows = np.concatenate((wild, tame)).astype(np.float32)
        for theta in (self.theta(rng), 60 * self.theta(rng)):
            found = model.bounded_scores(rows, theta, self.transform(rng), clip)
            assert found.shape == (len(rows), model.dimension)
            assert found.dtype == np.float32
            assert np.linalg.norm(found.astype(np.float64), axis=1).max() <= clip
            assert not np.any(found[~np.isfinite(rows).all(axis=1)])
            assert model.scores(rows, theta).shape == found.shape
            assert model.information_factors(rows, theta).shape[2] == model.dimension
            assert model.log_likelihood(rows, theta[None].astype(np.float32)).shape == (len(rows), 1)

    def test_no_tame_row_reaches_a_subnormal_number(self) -> None:
        """W14: subnormal numbers take longer, so none comes out, however far activations are."""
        rng, model = np.random.default_rng(10), self.model()
        rows = self.rows(rng, 2000).astype(np.float32)
        for scale in (1, 10, 100, 1000):
            theta = scale * self.theta(rng)
            for found in (
                model.scores(rows, theta),
                model.bounded_scores(rows, theta, np.eye(model.dimension), 1.0),
                model.information_factors(rows, theta),
            ):
                magnitude = np.abs(found[found != 0])
                assert magnitude.size
                assert magnitude.min() >= TINY

    @pytest.mark.parametrize("clip", CLIPS)
    def test_bounded_scores_are_conditionally_unbiased(self, clip: float) -> None:
        """Under the model at ``theta``, the mean given the design row is zero: by enumeration of the targets."""
        rng, model = np.random.default_rng(11), self.model()
        x, theta, transform = self.x(rng), self.theta(rng), self.transform(rng)
        rows, probabilities = self.all_outcomes(x, theta)
        flat = rows.reshape(-1, rows.shape[-1])
        found = model.bounded_scores(flat, theta, transform, clip).reshape(*rows.shape[:2], -1)
        lengths = np.sqrt(np.einsum("nk,nkd->n", probabilities, found.astype(np.float64) ** 2))
        mean = np.einsum("nk,nkd->nd", probabilities, found)
        assert np.all(np.linalg.norm(mean, axis=1) < 2e-5 * lengths)

    def test_bounded_scores_are_scores_where_nothing_is_cut(self) -> None:
        rng, model = np.random.default_rng(12), self.model()
        rows, theta, transform = self.rows(rng).astype(np.float32), self.theta(rng), self.transform(rng)
        loose = model.bounded_scores(rows, theta, transform, 1e6)
        np.testing.assert_allclose(loose, model.scores(rows, theta) @ transform.T, rtol=1e-3, atol=1e-4)

    def test_a_usual_bound_keeps_most_of_the_information(self) -> None:
        """With C the root mean square of scores, the bounded ones follow more than half of every score's length."""
        rng, model = np.random.default_rng(13), self.model()
        x, theta = self.x(rng), self.theta(rng)
        rows, probabilities = self.all_outcomes(x, theta)
        flat, identity = rows.reshape(-1, rows.shape[-1]), np.eye(model.dimension)
        scores = model.scores(flat, theta).reshape(*rows.shape[:2], -1)
        squares = np.einsum("nk,nkd,nkd->", probabilities, scores, scores) / len(x)
        bounded = model.bounded_scores(flat, theta, identity, float(np.sqrt(squares))).reshape(scores.shape)
        assert np.einsum("nk,nkd,nkd->", probabilities, scores, bounded) / len(x) > 0.5 * squares

    def test_information_factors_are_the_expected_information(self) -> None:
        rng, model = np.random.default_rng(14), self.model()
        x, theta = self.x(rng), self.theta(rng)
        rows, probabilities = self.all_outcomes(x, theta)
        scores = model.scores(rows.reshape(-1, rows.shape[-1]), theta).astype(np.float64)
        scores = scores.reshape(*rows.shape[:2], -1)
        expected = np.einsum("nk,nkd,nke->nde", probabilities, scores, scores)
        for outcome in (0, -1):  # which target a row has does not matter
            factors = model.information_factors(np.ascontiguousarray(rows[:, outcome]), theta).astype(np.float64)
            found = np.einsum("nrd,nre->nde", factors, factors)
            np.testing.assert_allclose(found, expected, atol=1e-4 * np.abs(expected).max())


class TestLogisticRegression(ModelConformance):
    name, good, bad = "logistic-regression", BINARY, NUMBER
    least_single = -80.0

    def outcomes(self, x: Array64, theta: Array64) -> tuple[Array64, Array64]:
        p = expit(x @ theta)
        return np.array([0.0, 1.0]), np.stack((1 - p, p), axis=1)


class TestProbitRegression(ModelConformance):
    name, good, bad = "probit-regression", BINARY, COUNT
    least_single = float(norm.logcdf(-12.0))

    def outcomes(self, x: Array64, theta: Array64) -> tuple[Array64, Array64]:
        p = ndtr(x @ theta)
        return np.array([0.0, 1.0]), np.stack((1 - p, p), axis=1)


class TestMultinomialLogistic(ModelConformance):
    name, good, bad = "multinomial-logistic", CLASSES, Column("y", "categorical", categories=("a",))

    def outcomes(self, x: Array64, theta: Array64) -> tuple[Array64, Array64]:
        odds = np.exp(np.column_stack((np.zeros(len(x)), x @ theta[:P], x @ theta[P:])))
        return np.array([0.0, 1.0, 2.0]), odds / odds.sum(axis=1, keepdims=True)

    def wild_draws(self, rng: np.random.Generator) -> Array64:
        """Within the bounds of single precision, where the log-likelihood has no least value of its own."""
        return 8 * rng.standard_normal((S, 2 * P))


class TestPoissonRegression(ModelConformance):
    name, good, bad = "poisson-regression", COUNT, Column("y", "integer", -1.0, 9.0)

    def outcomes(self, x: Array64, theta: Array64) -> tuple[Array64, Array64]:
        values = np.arange(0.0, 120.0)
        return values, poisson.pmf(values, np.exp(x @ theta)[:, None])

    def targets(self, rng: np.random.Generator, n: int) -> Array64:
        return rng.poisson(3.0, n).astype(np.float64)

    def wild_draws(self, rng: np.random.Generator) -> Array64:
        return 4 * rng.standard_normal((S, P))


class TestLinearRegression(ModelConformance):
    name, good, bad = "linear-regression", NUMBER, BINARY
    noise_scale: float | None = 1.5

    def sigma(self, theta: Array64) -> float:
        return 1.5 / 6.0

    def outcomes(self, x: Array64, theta: Array64) -> tuple[Array64, Array64]:
        """A fine grid over nine standard deviations, on which smooth integrands are exact."""
        e = np.linspace(-9, 9, 20_001)
        values = x @ theta[:P]
        targets = 4 + 6 * (values[:, None] + self.sigma(theta) * e)
        return targets, np.tile(norm.pdf(e) * (e[1] - e[0]), (len(x), 1))

    def targets(self, rng: np.random.Generator, n: int) -> Array64:
        return rng.uniform(-2, 10, n)


class TestLinearRegressionOfUnknownNoise(TestLinearRegression):
    noise_scale = None

    def sigma(self, theta: Array64) -> float:
        return float(0.25 * np.exp(theta[-1]))

    def wild_draws(self, rng: np.random.Generator) -> Array64:
        draws = 300 * rng.standard_normal((S, P + 1))
        draws[:, -1] /= 60
        return draws


class TestGaussianMean(ModelConformance):
    name, good, bad = "gaussian-mean", None, BINARY
    noise_scale = 0.8

    def outcomes(self, x: Array64, theta: Array64) -> tuple[Array64, Array64]:
        return np.zeros(1), np.ones((len(x), 1))

    def all_outcomes(self, x: Array64, theta: Array64) -> tuple[Array32, Array64]:
        """Rows in pairs about ``theta``, whose second moments are made those of the model."""
        z = np.random.default_rng(0).standard_normal((3000, P))
        z = z @ np.linalg.inv(np.linalg.cholesky(z.T @ z / len(z))).T
        rows = (theta + 0.8 * np.concatenate((z, -z))).astype(np.float32)
        folded = self.model().fold(rows, np.zeros(len(rows), dtype=np.float32))
        return np.tile(folded, (len(x), 1, 1)), np.full((len(x), len(rows)), 1 / len(rows))


SUITES: tuple[type[ModelConformance], ...] = (
    TestLogisticRegression,
    TestProbitRegression,
    TestMultinomialLogistic,
    TestPoissonRegression,
    TestLinearRegression,
    TestGaussianMean,
)


def test_every_registered_model_is_held_to_the_suite() -> None:
    assert {suite().family() for suite in SUITES} == set(families())
