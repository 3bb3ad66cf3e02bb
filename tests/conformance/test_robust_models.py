"""Every beta-likelihood: its limit, unbiased scores, bounds, derivatives, and totality on extreme rows.

Tests of models apply to it as well, where the fixture ``case`` is a decorated model.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from app.errors import InvalidRequest
from app.inference.core.model import Array32, Array64, Model
from app.inference.core.priors import NormalPrior
from app.inference.models.robust import make_robust
from app.inference.models.robust.labels import RobustLabels
from app.inference.post.laplace import fit_laplace
from app.inference.registry import list_families
from tests.conformance.models import CASES, CorrelatedMean, ModelCase, N, P
from tests.conformance.test_model_likelihoods import (
    test_expansion_is_that_of_the_log_likelihood as test_expansion,
)
from tests.conformance.test_model_likelihoods import (
    test_gradient_in_distant_points_is_finite_in_single_precision as test_distant_gradient,
)
from tests.conformance.test_model_likelihoods import (
    test_gradient_in_points_is_that_of_the_log_likelihood as test_gradient_in_points,
)
from tests.conformance.test_model_likelihoods import (
    test_losses_of_pairs_are_negative_potentials_up_to_a_constant as test_losses_of_pairs,
)
from tests.conformance.test_model_likelihoods import (
    test_potentials_and_gradient_in_points_are_the_same_together as test_pull_back,
)
from tests.conformance.test_model_likelihoods import (
    test_potentials_of_distant_points_are_finite_in_single_precision as test_distant_potentials,
)
from tests.conformance.test_model_scores import (
    test_bounded_scores_are_bounded_for_every_row as test_bounds,
)
from tests.conformance.test_model_scores import (
    test_bounded_scores_are_conditionally_unbiased as test_unbiased,
)
from tests.conformance.test_model_scores import (
    test_no_ordinary_row_makes_a_subnormal_number as test_subnormals,
)
from tests.conformance.test_model_scores import (
    test_scores_add_up_to_the_gradient as test_scores,
)
from tests.conformance.test_models import (
    test_dimensions_fit_together as test_dimensions,
)
from tests.conformance.test_models import (
    test_null_row_contributes_zero as test_null_row,
)

__all__ = [
    "test_bounds",
    "test_dimensions",
    "test_distant_gradient",
    "test_distant_potentials",
    "test_expansion",
    "test_gradient_in_points",
    "test_losses_of_pairs",
    "test_null_row",
    "test_pull_back",
    "test_scores",
    "test_subnormals",
    "test_unbiased",
]
COUNTS = {"poisson-regression", "negative-binomial-regression"}
BETAS = (0.05, 0.3, 1.0)


@dataclass(frozen=True)
class RobustCase:
    """A case whose model has a beta-likelihood; with the rows and targets of the plain case."""

    plain: ModelCase
    beta: float

    def __getattr__(self, name: str) -> Any:
        member = getattr(type(self.plain), name, None)
        if callable(member) and name != "model":
            return member.__get__(self)  # calls of ``model`` in it get the decorated one
        return getattr(self.plain, name)

    def model(self) -> Any:
        return make_robust(self.plain.model(), self.beta)


def _is_correlated(case: ModelCase) -> bool:
    return isinstance(case, CorrelatedMean)


ROBUST = [
    RobustCase(case, beta) for case in CASES if case.name not in COUNTS and not _is_correlated(case) for beta in BETAS
]


@pytest.fixture(params=ROBUST, ids=lambda case: f"{type(case.plain).__name__}-{case.beta:g}")
def case(request: pytest.FixtureRequest) -> RobustCase:
    robust: RobustCase = request.param
    return robust


def _density(case: RobustCase, rows: Array64, theta: Array64) -> Array64:
    """The density relative to its largest value, from plain potentials."""
    return np.asarray(np.exp(case.plain.model().log_likelihood(rows, theta[None, :])[:, 0]))


def _squares(case: RobustCase, rows: Array64, theta: Array64) -> Array64:
    """Squared distances of a Gaussian mean, in standard deviations of the noise."""
    return np.asarray(np.square((rows[:, :P] - rows[:, -1:] * theta) / 0.8).sum(axis=1))


def _damp(case: RobustCase, rows: Array32) -> Array64:
    """Compute the weights of rows: for labels, 0.25 over the mean square of features."""
    if not isinstance(case.model(), RobustLabels):
        return np.ones(len(rows))
    return np.asarray(np.minimum(1, 0.25 / np.square(rows[:, :-1].astype(np.float64)).mean(axis=1)))


@pytest.mark.parametrize("size", [0.1, 1.0, 3.0])
def test_bounded_scores_are_damped_scores_if_loose(case: RobustCase, size: float) -> None:
    """Wrong features lie far from the centre of the declared bounds."""
    rng, model = np.random.default_rng(12), case.model()
    rows, theta, transform = case.rows(rng).astype(np.float32), case.theta(rng), case.transform(rng)
    if isinstance(model, RobustLabels):
        rows[:, :-1] *= size
        assert np.any(_damp(case, rows) < 0.9) == (size >= 1)
    loose = model.bounded_scores(rows, theta, transform, 1e6)
    expected = _damp(case, rows)[:, None] * (model.scores(rows, theta) @ transform.T)
    np.testing.assert_allclose(loose, expected, rtol=1e-3, atol=1e-4)


def test_every_family_has_a_beta_likelihood_or_refuses() -> None:
    of_rows = {family.name for family in list_families() if family.bind is not None}
    assert {case.plain.name for case in ROBUST} | COUNTS == of_rows
    for case in CASES:
        if case.name in COUNTS or _is_correlated(case):
            with pytest.raises(InvalidRequest) as caught:
                make_robust(case.model(), 0.2)
            assert caught.value.faults[0].pointer == "/parameters/beta"


def test_potential_is_the_power_of_the_density_minus_its_mean(case: RobustCase) -> None:
    """By definition, with the integral summed over all outcomes; up to one constant for all parameters."""
    rng, model = np.random.default_rng(20), case.model()
    x, beta = case.x(rng), case.beta
    rows, thetas = case.rows(rng), [case.theta(rng) for _ in range(4)]
    expected = []
    for theta in thetas:
        if case.plain.good is None:
            expected.append(np.exp(-0.5 * beta * _squares(case, rows, theta)) / beta)
            continue
        outcomes, probabilities = case.plain.all_outcomes(model.features(rows).astype(np.float64) * 1.0, theta)
        flat = outcomes.reshape(-1, outcomes.shape[-1]).astype(np.float64)
        powers = _density(case, flat, theta).reshape(probabilities.shape) ** beta
        mean = np.einsum("nk,nk->n", probabilities, powers)
        expected.append(_density(case, rows, theta) ** beta / beta - mean / (1 + beta))
    found = np.array([model.log_likelihood(rows, theta[None, :])[:, 0] for theta in thetas])
    difference = found - np.array(expected)
    np.testing.assert_allclose(difference, np.broadcast_to(difference[:1], difference.shape), atol=2e-5)
    assert x.shape == (N, P)


def test_small_beta_is_the_plain_model(case: RobustCase) -> None:
    rng, plain = np.random.default_rng(21), case.plain.model()
    robust, rows, theta = make_robust(plain, 1e-6), case.rows(rng), case.theta(rng)
    draws = case.draws(rng)
    near, exact = robust.log_likelihood(rows, draws), plain.log_likelihood(rows, draws)
    if case.plain.good is None:
        exact = np.array([-0.5 * _squares(case, rows, draw) for draw in draws]).T
    np.testing.assert_allclose(near, exact, atol=1e-4, rtol=1e-4)
    near_expansion, expansion = (each.expand(rows, np.ones(N), theta) for each in (robust, plain))
    np.testing.assert_allclose(near_expansion.gradient, expansion.gradient, atol=1e-3, rtol=1e-4)
    np.testing.assert_allclose(near_expansion.information, expansion.information, atol=1e-2, rtol=1e-4)
    assert near_expansion.scoring is not None
    single = rows.astype(np.float32)
    for name in ("scores", "information_factors"):
        close = getattr(robust, name)(single, theta), getattr(plain, name)(single, theta)
        shape = (len(rows), -1, plain.dimension)
        first, second = (np.einsum("nrd,nre->nde", each.reshape(shape), each.reshape(shape)) for each in close)
        np.testing.assert_allclose(first, second, atol=1e-3, rtol=1e-3)


def test_scores_have_mean_zero_under_the_model(case: RobustCase) -> None:
    """Given the design row, summed over all outcomes (exact enumeration or quadrature)."""
    rng, model = np.random.default_rng(22), case.model()
    x, theta = case.x(rng), case.theta(rng)
    rows, probabilities = case.plain.all_outcomes(x, theta)
    scores = model.scores(rows.reshape(-1, rows.shape[-1]), theta).astype(np.float64).reshape(*rows.shape[:2], -1)
    mean = np.einsum("nk,nkd->nd", probabilities, scores)
    size = np.sqrt(np.einsum("nk,nkd->n", probabilities, scores**2))
    assert np.all(np.linalg.norm(mean, axis=1) < 2e-5 * size)


def test_information_is_the_expected_curvature(case: RobustCase) -> None:
    """``E[p^beta s s']`` by enumeration, which is also the expected negative Hessian."""
    if case.plain.good is None:
        pytest.skip("outcomes of a Gaussian mean do not follow the density in every direction")
    rng, model = np.random.default_rng(23), case.model()
    x, theta = case.x(rng, 3), case.theta(rng)
    rows, probabilities = case.plain.all_outcomes(x, theta)
    for index in range(3):
        outcomes = rows[index].astype(np.float64)
        expected = model.expand(outcomes, probabilities[index], theta)
        for outcome in (0, -1):
            factors = model.information_factors(np.ascontiguousarray(rows[index, outcome][None]), theta)
            found = np.einsum("nrd,nre->de", factors.astype(np.float64), factors.astype(np.float64))
            np.testing.assert_allclose(found, expected.information, atol=2e-4 * np.abs(expected.information).max())


def test_information_of_a_gaussian_mean_is_the_expected_curvature() -> None:
    """Products of one-dimensional integrals: ``E[exp(-beta z^2 / 2) z^2] = (1 + beta)^(-3/2)``."""
    case = next(each for each in ROBUST if each.plain.good is None and each.beta == 0.3)
    e = np.linspace(-9, 9, 20_001)
    mass = np.exp(-0.5 * e**2) / np.sqrt(2 * np.pi) * (e[1] - e[0])
    height, square = (float(mass @ (np.exp(-0.15 * e**2) * e**power)) for power in (0, 2))
    factors = case.model().information_factors(np.ones((1, P + 1), dtype=np.float32), np.zeros(P))[0]
    np.testing.assert_allclose(factors.T @ factors, height ** (P - 1) * square / 0.64 * np.eye(P), rtol=1e-5)


def test_scoring_is_never_indefinite(case: RobustCase) -> None:
    rng, model = np.random.default_rng(24), case.model()
    for scale in (1, 10):
        expansion = model.expand(case.rows(rng), rng.uniform(0, 3, N), scale * case.theta(rng))
        assert expansion.scoring is not None
        assert np.linalg.eigvalsh(expansion.scoring)[0] >= -1e-9 * np.abs(expansion.scoring).max()


def test_potentials_are_finite_and_equal_in_both_precisions(case: RobustCase) -> None:
    """Also at larger parameters, within the limits at which models clip in single precision."""
    rng, model = np.random.default_rng(25), case.model()
    rows, draws = case.rows(rng), case.draws(rng)
    for at in (draws, 5 * draws):
        double = model.log_likelihood(rows, at)
        out = np.empty(double.shape[::-1], dtype=np.float32).T
        single = model.log_likelihood(rows.astype(np.float32), at.astype(np.float32), out=out)
        assert single is out
        assert np.all(np.isfinite(double))
        np.testing.assert_allclose(single, double, rtol=1e-3, atol=1e-4 / case.beta)


def test_potentials_are_within_the_stated_range(case: RobustCase) -> None:
    """For rows of the design at any parameters; in both precisions, up to rounding."""
    rng, model = np.random.default_rng(26), case.model()
    if model.potential_range is None:
        assert case.plain.noise_scale is None
        return
    rows = case.rows(rng, 300)
    draws = np.concatenate([scale * case.draws(rng) for scale in (0, 0.3, 3, 30, 1000)])
    for kind in (np.float64, np.float32):
        values = model.log_likelihood(rows.astype(kind), draws.astype(kind))
        assert np.ptp(values, axis=1).max() <= model.potential_range * (1 + 1e-5)
    if case.beta == 1.0:
        assert np.ptp(values, axis=1).max() > 0.9 * model.potential_range  # the bound is met


def test_no_potential_is_subnormal_on_the_way(case: RobustCase, monkeypatch: pytest.MonkeyPatch) -> None:
    """W14: every exponential is a normal number or zero error, for rows of any size."""
    rng, model = np.random.default_rng(27), case.model()
    rows = np.concatenate([scale * case.rows(rng, 200) for scale in (1, 30, 1e3)]).astype(np.float32)
    made: list[Array32] = []
    exp = np.exp

    def record(values: Any, *args: Any, **named: Any) -> Any:
        found = exp(values, *args, **named)
        made.append(np.array(found))
        return found

    monkeypatch.setattr(np, "exp", record)
    model.log_likelihood(rows, np.concatenate([case.draws(rng), 30 * case.draws(rng)]).astype(np.float32))
    model.scores(rows, case.theta(rng))
    monkeypatch.undo()
    assert made
    for values in made:
        magnitude = values[(values != 0) & np.isfinite(values)]
        assert magnitude.size == 0 or magnitude.min() >= np.finfo(np.float32).tiny


def test_one_far_row_does_not_move_the_mode(case: RobustCase) -> None:
    """40 rows that follow the model and 4 far ones: the robust mode is nearer to that of the 40 than the plain one."""
    if case.beta < 0.3 or case.plain.name != "linear-regression":
        pytest.skip("for residuals without a bound, at a usual beta")
    rng, plain = np.random.default_rng(28), case.plain.model()
    x, theta = case.x(rng, 200), case.theta(rng)
    y = plain.sample_targets(rng, x, theta)
    far = x.copy(), y.copy()
    far[1][:20] += 6
    prior = NormalPrior(np.full(plain.dimension, 10.0))

    def mode(model: Model, targets: Array64) -> Array64:
        rows = np.asarray(model.fold(x, targets))
        return fit_laplace(model, rows, np.ones(200), prior, np.zeros(model.dimension)).mean

    clean = mode(plain, y)
    moved: Callable[[Model], float] = lambda model: float(np.linalg.norm(mode(model, far[1]) - clean))  # noqa: E731
    assert moved(case.model()) < 0.25 * moved(plain)
