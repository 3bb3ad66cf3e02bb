"""Integrals over normal rows, checked by sampling them; and their inverse."""

import numpy as np
import pytest
from scipy.special import expit, ndtr

from app.inference.core.model import Array64
from app.inference.methods.surrogate.isotropy import Isotropic
from app.inference.methods.surrogate.single_index import BinaryResponse, SingleIndex
from support.surrogate_tables import Case

COLUMNS, CENTRE = 12, 0.4
SLOPE, OFFSET = 1.7, -0.3


def labels(family: str = "logistic-regression") -> BinaryResponse:
    return BinaryResponse(Case(family=family, features=COLUMNS).problem.model, COLUMNS + 1)


def _law(family: str = "logistic-regression") -> SingleIndex:
    return SingleIndex(labels(family), COLUMNS, CENTRE)


def _sampled(n: int = 400_000) -> tuple[Array64, Array64]:
    """Predictors' first coordinate and rows over their length ``(n, 3)``: along, across, intercept."""
    rng = np.random.default_rng(0)
    z = rng.standard_normal((n, COLUMNS))
    inverse = 1 / np.sqrt(np.square(z).sum(axis=1) + 1)
    return z[:, 0], np.column_stack([z[:, 0], z[:, 1], np.ones(n)]) * inverse[:, None]


@pytest.mark.parametrize(
    ("family", "law"), [("logistic-regression", expit), ("probit-regression", ndtr)], ids=["logistic", "probit"]
)
def test_labels_follow_the_model(family: str, law: np.ufunc) -> None:
    predictor = np.linspace(-4, 4, 9)
    np.testing.assert_allclose(labels(family).rate(predictor), law(predictor), rtol=2e-4)
    assert labels(family).predictor(float(law(0.7))) == pytest.approx(0.7, abs=1e-3)
    rate, most = labels(family).at(-0.5)
    assert (rate, most) == pytest.approx((law(-0.5), law(0.5)), rel=1e-4)


def test_means_are_those_of_sampled_rows() -> None:
    along, rows = _sampled()
    residual = expit(SLOPE * along + OFFSET) - CENTRE
    np.testing.assert_allclose(
        _law().means(SLOPE, OFFSET), (residual[:, None] * rows[:, [0, 2]]).mean(axis=0), rtol=0.01
    )


def test_what_is_seen_across_the_predictor_is_what_sampled_rows_show() -> None:
    along, rows = _sampled()
    rate = expit(SLOPE * along + OFFSET)
    across, squared = _law().across(SLOPE, OFFSET), rows[:, 1] ** 2 / rows[:, 2]
    assert across.own == pytest.approx((rate * (1 - rate) * squared).mean(), rel=0.01)
    assert across.information == pytest.approx((rate * (1 - rate)).mean(), rel=0.01)
    assert across.variance == pytest.approx((rate * (1 - 2 * CENTRE) + CENTRE**2).mean(), rel=0.01)
    assert _law().mean_label(SLOPE, OFFSET) == pytest.approx(rate.mean(), rel=0.01)


@pytest.mark.parametrize(
    ("family", "law"), [("logistic-regression", expit), ("probit-regression", ndtr)], ids=["logistic", "probit"]
)
def test_what_a_sum_does_not_share_with_scores_is_what_a_regression_leaves(family: str, law: np.ufunc) -> None:
    along, rows = _sampled()
    rng, predictor = np.random.default_rng(1), SLOPE * along + OFFSET
    label = rng.random(len(along)) < law(predictor)
    zero, one = labels(family).residuals(predictor)
    part, score = (label - CENTRE) * rows[:, 1], np.where(label, one, zero) * rows[:, 1] / rows[:, 2]
    left = np.mean(part**2) - np.mean(part * score) ** 2 / np.mean(score**2)
    found = _law(family).across(SLOPE, OFFSET).beside_the_mode(COLUMNS) / COLUMNS
    assert found == pytest.approx(left, rel=0.12)


@pytest.mark.parametrize(("slope", "offset"), [(0.1, 0.0), (1.7, -0.3), (4.0, 1.5)])
def test_slope_and_offset_follow_from_means(slope: float, offset: float) -> None:
    assert _law().solved(_law().means(slope, offset)) == pytest.approx((slope, offset), abs=0.01)


@pytest.mark.parametrize("means", [(5.0, 0.0), (-1.0, 3.0), (0.0, -9.0)])
def test_means_that_there_are_not_have_a_slope_and_offset_within_limits(means: tuple[float, float]) -> None:
    slope, offset = _law().solved(np.array(means))
    assert 0 < slope <= 12
    assert abs(offset) <= 8


def test_the_spread_is_that_of_what_follows_from_noised_means() -> None:
    rows, rng = Isotropic(10_000.0, np.zeros(COLUMNS), 1.0, 0.0, 0.0, 0.0), np.random.default_rng(1)
    law, variance = _law(), 30.0**2
    exact = law.means(SLOPE, OFFSET)
    found = [law.solved(exact + 30.0 / rows.count * rng.standard_normal(2)) for _ in range(200)]
    expected = law.spread(SLOPE, OFFSET, rows, variance)
    np.testing.assert_allclose(np.std(found, axis=0), np.sqrt(expected.diagonal()), rtol=0.15)
    miscounted = Isotropic(10_000.0, np.zeros(COLUMNS), 1.0, 0.05, 0.0, 0.0)
    assert law.spread(SLOPE, OFFSET, miscounted, variance)[0, 0] > 1.5 * expected[0, 0]
