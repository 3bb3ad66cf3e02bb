"""What every model owes: a new one inherits the suite and says how to make rows of it."""

from abc import ABC, abstractmethod

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.optimize import minimize

from app.errors import InvalidRequest
from app.inference.laplace import laplace
from app.inference.models import logistic
from app.inference.models.family import Family
from app.inference.priors import NormalPrior
from app.inference.protocol import Array64, Column, Model, ModelSpec
from app.inference.registry import families

N, P, S = 7, 4, 5
STEP = 1e-5


def _differences(f: "np.ufunc | object", at: Array64) -> Array64:
    """Central finite differences of a scalar function, in the shape of ``at``."""
    assert callable(f)
    gradient = np.empty_like(at)
    for index in np.ndindex(at.shape):
        up, down = at.copy(), at.copy()
        up[index] += STEP
        down[index] -= STEP
        gradient[index] = (f(up) - f(down)) / (2 * STEP)
    return gradient


class ModelConformance(ABC):
    """Laws of a likelihood with a normal prior."""

    least_single = -np.inf
    """Where the model bounds its log-likelihood in single precision, the bound."""

    @abstractmethod
    def family(self) -> Family:
        """The family under test."""

    def model(self) -> Model:
        return self.family().bind(ModelSpec(self.family().name, (), None), P, None)

    @abstractmethod
    def targets(self, rng: np.random.Generator, n: int) -> Array64:
        """Targets in the table's units."""

    @abstractmethod
    def good_and_bad_target(self) -> tuple[Column, Column]:
        """A column that can be this model's target, and one that cannot."""

    def rows(self, rng: np.random.Generator, n: int = N) -> Array64:
        x = np.concatenate([rng.uniform(-1, 1, (n, P - 1)), np.ones((n, 1))], axis=1)
        return np.asarray(self.model().fold(x, self.targets(rng, n)))

    def test_it_is_registered(self) -> None:
        assert self.family() in families()

    def test_targets_are_checked(self) -> None:
        good, bad = self.good_and_bad_target()
        self.family().check_target(good)
        with pytest.raises(InvalidRequest) as caught:
            self.family().check_target(bad)
        assert caught.value.faults[0].pointer == "/model/target"

    def test_the_gradient_in_rows_is_that_of_the_log_likelihood(self) -> None:
        rng, model = np.random.default_rng(0), self.model()
        u, y, cotangent = rng.standard_normal((N, P)), self.targets(rng, N), rng.standard_normal(S)
        draws = rng.standard_normal((S, model.dimension))

        def value(u: Array64) -> float:
            return float(np.sum(model.log_likelihood(model.fold(u, y), draws) @ cotangent))

        by_point, _ = model.point_gradient(u, y, draws, cotangent)
        np.testing.assert_allclose(by_point, _differences(value, u), atol=1e-8)

    def test_the_expansion_is_that_of_the_log_likelihood(self) -> None:
        rng, model = np.random.default_rng(1), self.model()
        rows, weights, theta = self.rows(rng), rng.uniform(0, 3, N), rng.standard_normal(P)
        expansion = model.expand(rows, weights, theta)

        def value(at: Array64) -> float:
            return float(weights @ model.log_likelihood(rows, at[None, :])[:, 0])

        assert expansion.value == pytest.approx(value(theta), rel=1e-12)
        np.testing.assert_allclose(expansion.gradient, _differences(value, theta), atol=1e-8)
        columns = [
            _differences(lambda at, i=i: float(model.expand(rows, weights, at).gradient[i]), theta) for i in range(P)
        ]
        np.testing.assert_allclose(expansion.information, -np.array(columns), atol=1e-7)

    def test_potentials_are_stable_and_alike_in_both_precisions(self) -> None:
        rng, model = np.random.default_rng(2), self.model()
        rows, draws = self.rows(rng), 300 * rng.standard_normal((S, P))
        double = model.log_likelihood(rows, draws)
        out = np.empty((N, S), dtype=np.float32)
        single = model.log_likelihood(rows.astype(np.float32), draws.astype(np.float32), out=out)
        assert single is out
        assert np.all(np.isfinite(double))
        np.testing.assert_allclose(single, np.maximum(double, self.least_single), rtol=1e-4, atol=1e-4)

    def test_a_null_row_says_nothing(self) -> None:
        rng, model = np.random.default_rng(3), self.model()
        null, theta = np.zeros((1, P)), rng.standard_normal(P)
        assert np.ptp(model.log_likelihood(null, rng.standard_normal((S, P)))) == 0
        expansion = model.expand(null, np.ones(1), theta)
        assert not np.any(expansion.gradient)
        assert not np.any(expansion.information)

    def test_sampled_targets_follow_the_likelihood(self) -> None:
        """At the true parameter the score has mean zero: within six standard errors over 20,000 rows."""
        rng, model = np.random.default_rng(5), self.model()
        x = np.concatenate([rng.uniform(-1, 1, (20_000, P - 1)), np.ones((20_000, 1))], axis=1)
        theta = rng.standard_normal(P)
        y = model.sample_targets(rng, x, theta)
        assert y.shape == (20_000,)
        expansion = model.expand(np.asarray(model.fold(x, y)), np.ones(20_000), theta)
        assert np.all(np.abs(expansion.gradient) < 6 * np.sqrt(np.diag(expansion.information)))

    def test_starting_targets_have_the_shape_and_spread_of_targets(self) -> None:
        rng = np.random.default_rng(6)
        x = np.concatenate([rng.uniform(-1, 1, (9, P - 1)), np.ones((9, 1))], axis=1)
        y = self.model().starting_targets(rng, x)
        assert y.shape == (9,)
        assert np.ptp(y) > 0

    @pytest.mark.parametrize("prior_scale", [0.1, 1.0, 50.0])
    @pytest.mark.parametrize("start", [0.0, 30.0])
    def test_laplace_finds_the_mode_of_an_independent_optimiser(self, prior_scale: float, start: float) -> None:
        rng, model = np.random.default_rng(7), self.model()
        rows, weights, prior = self.rows(rng, 40), rng.uniform(0, 20, 40), NormalPrior(np.full(P, prior_scale))
        found = laplace(model, rows, weights, prior, np.full(P, start))

        def energy(theta: NDArray[np.float64]) -> float:
            likelihood = float(weights @ model.log_likelihood(rows, theta[None, :])[:, 0])
            return -likelihood - float(prior.log_density(theta[None, :])[0])

        independent = minimize(energy, np.zeros(P), method="BFGS", options={"gtol": 1e-7}).x
        np.testing.assert_allclose(found.mean, independent, atol=1e-4 * max(1.0, prior_scale))
        precision = found.factor @ found.factor.T
        information = model.expand(rows, weights, found.mean).information + np.eye(P) / prior_scale**2
        np.testing.assert_allclose(precision, information, rtol=1e-3, atol=1e-6)


class TestLogisticRegression(ModelConformance):
    least_single = -80.0

    """The suite on logistic regression."""

    def family(self) -> Family:
        return logistic.FAMILY

    def targets(self, rng: np.random.Generator, n: int) -> Array64:
        return rng.integers(0, 2, n).astype(np.float64)

    def good_and_bad_target(self) -> tuple[Column, Column]:
        return Column("y", "binary"), Column("x", "real", 0, 1)


def test_every_registered_model_is_held_to_the_suite() -> None:
    held = {suite().family() for suite in (TestLogisticRegression,)}
    assert held == set(families())
