"""What bounds take from single directions, and how much of it is restored."""

import numpy as np
import pytest

from app.inference.core.model import Array64
from app.inference.methods.surrogate.directions import LEAST, Informations, growth, informations, weights_of
from app.inference.methods.surrogate.matrices import Metric, metric

RNG = np.random.default_rng(6)
ROWS = RNG.standard_normal((5000, 4)) * np.array([1.0, 2.0, 0.5, 1.0])
ROWS[:, 3] *= RNG.random(5000) < 0.01
WITHIN, PRIOR = metric(ROWS.T @ ROWS + np.eye(4)), np.eye(4)
WEIGHTS = np.where(ROWS[:, 3] == 0, 1.0, 0.2)


def _found(weights: Array64 = WEIGHTS, rows: Array64 = ROWS) -> Informations:
    found = informations(rows @ WITHIN.whitening.T, weights, WITHIN, PRIOR)
    assert found is not None
    return found


def test_what_few_rows_hold_keeps_as_little_as_they_do() -> None:
    shares = _found().shares
    assert shares[0] == pytest.approx(0.2, abs=0.02)
    assert np.all(shares[1:] > 0.95)


def test_what_was_lost_is_restored() -> None:
    """A score of the bounded rows becomes that of all of them: ``back`` times one's information is the other's."""
    kept = _found().kept(WITHIN, WITHIN, 0.01)
    assert kept is not None
    full, left = ROWS.T @ ROWS, (ROWS * WEIGHTS[:, None]).T @ ROWS
    np.testing.assert_allclose(kept.back @ left, full, rtol=0.02, atol=0.02 * full[3, 3])
    assert kept.share == pytest.approx(0.8, abs=0.03)


@pytest.mark.parametrize("nats", [0.1, 1.0, 5.0, 100.0])
def test_noise_grows_to_so_many_nats_at_most(nats: float) -> None:
    """Or, where it is more than that already, as if all directions were alike at worst."""
    kept = _found().kept(WITHIN, WITHIN, nats)
    assert kept is not None
    grown = growth(kept.back @ WITHIN.factor, WITHIN)
    assert grown >= 1
    assert nats * grown <= 60 or grown <= 1.5 / LEAST**2
    assert nats * grown > 30 or nats < 5 or nats > 60


def test_noise_of_a_wider_metric_counts_as_well() -> None:
    """Where it is four times as large in every direction already, there is less left to restore with."""
    wider = Metric(4 * WITHIN.factor, WITHIN.whitening / 4)
    kept = [_found().kept(WITHIN, asked, 2.0) for asked in (WITHIN, wider)]
    assert kept[0] is not None
    assert kept[1] is not None
    assert growth(kept[0].back @ WITHIN.factor, WITHIN) > 5
    assert 16 <= growth(kept[1].back @ wider.factor, WITHIN) <= 30


def test_growth_is_that_of_the_metric_in_which_it_is_felt() -> None:
    """By drawn noise: the belief has a thousand times less of the rare direction than rows have."""
    flat = metric(np.diag([1.0, 1.0, 1.0, 1e-3]) * 5000)
    found = _found()
    assert growth(flat.factor / 0.5, flat) == pytest.approx(4)
    restored = found.kept(WITHIN, WITHIN, 1.0)
    assert restored is not None
    drawn = flat.factor @ RNG.standard_normal((4, 20_000))
    felt = np.mean(np.sum((flat.whitening @ restored.back @ drawn) ** 2, axis=0)) / 4
    assert growth(restored.back @ flat.factor, flat) == pytest.approx(felt, rel=0.05)


def test_a_direction_without_rows_is_left_as_it_is() -> None:
    empty = ROWS * np.array([1.0, 1.0, 1.0, 0.0])
    kept = _found(np.ones(5000), empty).kept(WITHIN, WITHIN, 1.0)
    assert kept is not None
    np.testing.assert_allclose(kept.back, np.eye(4), atol=1e-6)


def test_where_restoring_would_be_noise_in_any_case_there_is_none() -> None:
    """In a metric of nearly alike coordinates, an even share for a single one is an oblique, large matrix."""
    oblique = metric(np.eye(4) + np.pad([[0.99999]], ((0, 3), (3, 0))) + np.pad([[0.99999]], ((3, 0), (0, 3))))
    found = _found(np.where(ROWS[:, 3] == 0, 1.0, 0.01))
    assert found.kept(oblique, oblique, 100.0) is None
    assert found.kept(WITHIN, WITHIN, 100.0) is not None


def test_weights_are_those_of_norms_however_small_scores_are() -> None:
    whole = np.array([[3.0, 4.0], [3e-30, 4e-30], [0.0, 0.0]], dtype=np.float32)
    bounded = whole * np.array([[0.5], [0.25], [1.0]], dtype=np.float32)
    np.testing.assert_allclose(weights_of(bounded, whole), [0.5, 0.25, 1.0], rtol=1e-5)
