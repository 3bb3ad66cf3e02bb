"""What all scores together say."""

from dataclasses import replace

import numpy as np
import pytest

from app.inference.core.model import Array64
from app.inference.methods.surrogate.population import Population
from app.inference.methods.surrogate.scores import Score, combined, newton

RNG = np.random.default_rng(1)
SIZE = 5
ROOT = RNG.normal(size=(SIZE, SIZE))
PRIOR = np.eye(SIZE)
HESSIAN = 200 * ROOT @ ROOT.T + PRIOR
MODE = RNG.normal(size=SIZE)
FLAT = Population(100.0, np.zeros(SIZE), np.eye(SIZE))
QUIET = 1e-12


def _score(theta: Array64, variance: float = QUIET, error: Array64 | None = None) -> Score:
    """Of a quadratic around the mode, with an ``error`` in the metric."""
    noise = np.zeros(SIZE) if error is None else np.linalg.cholesky(HESSIAN) @ error
    return Score(theta, HESSIAN @ (MODE - theta) + noise, variance, HESSIAN)


def test_noise_free_scores_of_a_quadratic_give_its_mode() -> None:
    scores = [_score(theta) for theta in (np.zeros(SIZE), RNG.normal(size=SIZE), 3 * MODE)]
    found = combined(scores, HESSIAN, PRIOR, FLAT, 1)
    np.testing.assert_allclose(found.mean, MODE, rtol=1e-6)
    np.testing.assert_allclose(found.kept, np.eye(SIZE), atol=1e-6)
    np.testing.assert_allclose(newton(scores[0], HESSIAN), MODE, rtol=1e-9)


def test_the_informations_along_the_way_are_averaged() -> None:
    """A score where the information is H, in a belief of 3 H: half the mean of both is 2 H."""
    np.testing.assert_allclose(newton(_score(np.zeros(SIZE)), 3 * HESSIAN), MODE / 2, rtol=1e-9)


def test_at_the_mode_weights_are_inverse_to_noise() -> None:
    """Errors along one direction, of which the average is read off."""
    errors = [0.3, -0.1]
    scores = [
        _score(MODE, variance, error * np.eye(SIZE)[0]) for variance, error in zip((1e-1, 1e-2), errors, strict=True)
    ]
    found = combined(scores, HESSIAN, PRIOR, FLAT, 1)
    assert found.newest == pytest.approx(10 / 11, rel=0.05)
    assert found.variance == pytest.approx(1 / (1 / 0.1 + 1 / 0.01), rel=0.02)


def test_scores_from_afar_count_for_less() -> None:
    near, far = _score(MODE, 1.0), _score(MODE + 10, 1.0)
    assert combined([far, near], HESSIAN, PRIOR, FLAT, 1).newest > 0.99
    near_again = combined([near, near], HESSIAN, PRIOR, FLAT, 1)
    assert near_again.newest == pytest.approx(0.5)


def test_scores_whose_information_is_disputed_count_for_less() -> None:
    disputed = replace(_score(np.zeros(SIZE), 1.0), information=5 * HESSIAN)
    agreed, last = _score(np.zeros(SIZE), 1.0), _score(0.9 * MODE, 1.0)
    with_dispute = combined([disputed, last], HESSIAN, PRIOR, FLAT, 1).newest
    assert with_dispute > combined([agreed, last], HESSIAN, PRIOR, FLAT, 1).newest


def test_a_longer_newest_step_replaces_what_the_last_score_says() -> None:
    found = combined([_score(np.zeros(SIZE))], HESSIAN, PRIOR, FLAT, 1, newest=2 * MODE)
    np.testing.assert_allclose(found.mean, 2 * MODE, rtol=1e-6)


def test_what_is_all_noise_shrinks_to_the_prior() -> None:
    found = combined([_score(np.zeros(SIZE), 1e9)], HESSIAN, PRIOR, FLAT, 1)
    values = np.linalg.eigvals(found.kept).real
    assert np.all(values < 1e-4)
    assert np.linalg.norm(found.mean) < 1e-3 * np.linalg.norm(MODE)


def test_directions_without_information_say_nothing() -> None:
    """Whatever a score says of them."""
    information = PRIOR + np.diag([500.0, 500, 500, 500, 0])
    score = Score(np.zeros(SIZE), np.full(SIZE, 100.0), 0.01, information)
    found = combined([score], information, PRIOR, FLAT, 1)
    assert found.mean[-1] == 0
    np.testing.assert_allclose(found.mean[:-1], 100 / 501, rtol=1e-3)


def test_between_the_limits_shrinkage_is_the_normal_means() -> None:
    """Signal 1 in the prior's units, seen h - 1 times as sharply as noise allows: ``(h - 1)/(h - 1 + variance)``."""
    information, variance = np.diag([1.0, 2, 5, 50, 500]), 7.0
    found = combined([Score(np.zeros(SIZE), np.zeros(SIZE), variance, information)], information, PRIOR, FLAT, 1)
    seen = information.diagonal() - 1
    np.testing.assert_allclose(found.kept.diagonal(), seen / (seen + variance), atol=1e-9)


def test_a_direction_in_which_noise_is_larger_shrinks_by_its_own_noise() -> None:
    """What bounds took from a rare level was restored, and its noise with it: times 30 here."""
    information, variance = np.diag([5.0, 5, 5, 5, 5]), 2.0
    loud = np.diag([1.0, 1, 1, 1, 30]) * 5
    found = combined(
        [Score(np.zeros(SIZE), np.zeros(SIZE), variance, information, 1.0, loud)], information, PRIOR, FLAT, 1
    )
    np.testing.assert_allclose(found.kept.diagonal(), 4 / (4 + variance * np.array([1, 1, 1, 1, 30])), atol=1e-9)


def test_scores_that_fall_short_by_one_share_are_followed_to_where_they_lead() -> None:
    """Each says half its way, along one line: what they have in common tells of the rest."""
    away = np.linalg.solve(np.linalg.cholesky(HESSIAN).T, 30 * np.ones(SIZE))
    scores = [replace(_score(MODE), theta=MODE - share * away, variance=1e-2) for share in (0.5, 0.25, 0.125)]
    scores = [replace(each, gradient=0.5 * HESSIAN @ (MODE - each.theta)) for each in scores]
    still = Population(100.0, np.zeros(SIZE), np.zeros((SIZE, SIZE)))
    left = combined(scores, HESSIAN, PRIOR, still, 1).mean - MODE
    last = scores[-1].theta + newton(scores[-1], HESSIAN) - MODE
    assert left @ HESSIAN @ left < 0.1 * (last @ HESSIAN @ last)


def test_scores_that_are_not_finite_leave_the_newest() -> None:
    scores = [_score(MODE, np.inf), _score(MODE, 1.0)]
    with np.errstate(all="ignore"):
        assert combined(scores, HESSIAN, PRIOR, FLAT, 1).newest == 1


def test_noise_of_an_average_has_the_scores_own_shapes() -> None:
    """As they weigh; alike directions have that of the information."""
    shape = HESSIAN + 5 * np.diag(np.eye(SIZE)[0])
    first = replace(_score(np.zeros(SIZE), 1.0), shape=shape)
    alone = combined([first], HESSIAN, PRIOR, FLAT, 1).shape
    assert alone is not None
    np.testing.assert_allclose(alone, shape)
    both = combined([first, _score(np.zeros(SIZE), 1.0)], HESSIAN, PRIOR, FLAT, 1).shape
    assert both is not None
    part = (both - HESSIAN)[0, 0] / 5
    assert 0 < part < 1
    np.testing.assert_allclose(both, HESSIAN + part * (shape - HESSIAN), rtol=1e-9)
    assert combined([_score(np.zeros(SIZE), 1.0)], HESSIAN, PRIOR, FLAT, 1).shape is None
