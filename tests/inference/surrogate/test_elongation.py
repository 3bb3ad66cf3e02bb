"""How much longer rows are in the metric that they are asked in than in that of the population."""

import numpy as np
import pytest
from scipy.special import expit

from app.inference.models.logistic import LogisticRegression
from app.inference.surrogate.elongation import believed_weights, elongation
from app.inference.surrogate.matrices import metric

RNG = np.random.default_rng(7)
ROWS = RNG.standard_normal((500, 5))


def test_where_beliefs_agree_rows_are_as_long_as_they_are() -> None:
    np.testing.assert_allclose(elongation(ROWS, np.eye(5)), 1.0)


@pytest.mark.parametrize("factor", [0.25, 4.0])
def test_what_is_believed_less_is_longer_by_the_root(factor: float) -> None:
    """Exactly along a direction of the belief, or where all of it is more or less."""
    turned = np.linalg.qr(RNG.standard_normal((5, 5)))[0]
    values = np.array([factor, 1.0, 1.0, 1.0, 1.0])
    found = elongation(turned.T, (turned * values) @ turned.T)
    np.testing.assert_allclose(found, 1 / np.sqrt(values))
    np.testing.assert_allclose(elongation(ROWS, factor * np.eye(5)), 1 / np.sqrt(factor))


def test_directions_of_hardly_any_information_do_not_rule() -> None:
    """Rows have a hundredth of their square there, by noise: exactly they would be three times as long."""
    row = np.array([[np.sqrt(0.99), 0.1, 0.0, 0.0, 0.0]])
    believed = np.diag([1.0, 1e-3, 1.0, 1.0, 1.0])
    assert np.sqrt(row @ np.linalg.inv(believed) @ row.T) > 3
    assert 1 < elongation(row, believed)[0] < 1.03


@pytest.mark.parametrize("factor", [0.1, 1.0, 10.0])
@pytest.mark.parametrize("clip", [0.05, 0.2, 5.0])
def test_weights_are_those_of_the_metric_that_is_asked_in(factor: float, clip: float) -> None:
    """``min(1, C / (max(p, 1 - p) n))`` with the length there, a second derivation; zero rows weigh one."""
    theta = np.array([1.0, -0.5, 0.2, 0.0, 0.3])
    rows = np.vstack([ROWS, np.zeros(5)])
    chance = expit(rows @ theta)
    information = factor * (rows * (chance * (1 - chance))[:, None]).T @ rows
    own = metric(information / factor)
    lengths = np.linalg.norm(rows @ metric(information).whitening.T, axis=1)
    expected = np.minimum(1, clip / np.maximum(np.maximum(chance, 1 - chance) * lengths, 1e-30))
    found = believed_weights(LogisticRegression(5), rows.astype(np.float32), theta, own, information, clip=clip)
    np.testing.assert_allclose(found, expected, rtol=1e-3)
