"""How much longer rows are in the metric that they are asked in than in that of the population."""

import numpy as np
import pytest
from scipy.special import expit

from app.inference.methods.surrogate.elongation import believed_lengths, elongation, shortening
from app.inference.methods.surrogate.matrices import metric
from app.inference.models.logistic import LogisticRegression

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
def test_lengths_are_those_of_the_metric_of_the_belief(factor: float) -> None:
    """``max(p, 1 - p) n`` with the length there, a second derivation."""
    theta = np.array([1.0, -0.5, 0.2, 0.0, 0.3])
    chance = expit(ROWS @ theta)
    information = factor * (ROWS * (chance * (1 - chance))[:, None]).T @ ROWS
    own, believed = metric(information / factor), metric(information)
    expected = np.maximum(chance, 1 - chance) * np.linalg.norm(ROWS @ believed.whitening.T, axis=1)
    found = believed_lengths(LogisticRegression(5), ROWS.astype(np.float32), theta, own, believed)
    np.testing.assert_allclose(found, expected, rtol=1e-3)


def test_a_wider_metric_shortens_rows_by_what_it_is_wider_along_them() -> None:
    believed = metric(np.diag([1.0, 4.0]))
    asked = metric(np.diag([1.0, 4.0 * 400]))
    found = shortening(np.array([[1.0, 0.0], [0.0, 3.0], [0.0, 0.0], [3.0, 8.0]]), believed, asked)
    np.testing.assert_allclose(found, [1, 1 / 20, 1, np.sqrt(9 + 0.04) / 5])
    np.testing.assert_array_equal(shortening(np.ones((2, 2)), believed, believed), [1, 1])
