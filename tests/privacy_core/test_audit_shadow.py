"""The trained likelihood ratio: the best test of normal laws, and thresholds from training alone."""

import numpy as np
import pytest
from scipy import stats

from app.privacy.audit.bounds import bound_separation, count_positives, find_separation
from app.privacy.audit.laws import AnswerLaw, Array64
from app.privacy.audit.shadow import NormalRatio, choose_by_training, compute_area, estimate_separation

RUNS = 4000


def _draw(seed: int, shift: float) -> tuple[Array64, Array64]:
    """Draw features with one informative direction, and one without information, of another scale."""
    rng, present = np.random.default_rng(seed), np.repeat([0.0, 1.0], RUNS)
    informative = 0.1 * (rng.standard_normal(2 * RUNS) + shift * present)
    return np.stack([informative, 3 + 0.01 * rng.standard_normal(2 * RUNS)], axis=1), present


def test_scores_separate_as_well_as_the_best_test() -> None:
    """Neyman and Pearson: the area under the curve of the best test is ``Phi(shift / sqrt(2))``."""
    features, present = _draw(0, 1.5)
    attack = NormalRatio.fit(features, present)
    fresh, worlds = _draw(1, 1.5)
    assert compute_area(attack.score(fresh), worlds) == pytest.approx(stats.norm.cdf(1.5 / np.sqrt(2)), abs=0.02)
    assert estimate_separation(attack.score(fresh), worlds) == pytest.approx(1.5, abs=0.1)


def test_worlds_of_equal_means_are_told_apart_by_their_spread() -> None:
    rng, present = np.random.default_rng(2), np.repeat([0.0, 1.0], RUNS)
    draws = [rng.standard_normal(2 * RUNS) * 0.1 * (1 + 2 * present) for _ in range(2)]
    attack = NormalRatio.fit(draws[0][:, None], present)
    assert compute_area(attack.score(draws[1][:, None]), present) > 0.7


def test_a_threshold_of_training_gives_a_bound_below_the_truth() -> None:
    """The bound on fresh runs shows most of the separation, and not more."""
    features, present = _draw(3, 2.0)
    attack = NormalRatio.fit(features, present)
    threshold = choose_by_training(attack.score(features), present, lambda counts: bound_separation(counts, 0.999))
    fresh, worlds = _draw(4, 2.0)
    found = bound_separation(count_positives(attack.score(fresh), worlds, threshold), 0.999)
    assert 1.6 < found < 2.0


def test_a_threshold_separates_even_if_training_bounds_nothing() -> None:
    scores, present = np.linspace(-1.0, 1.0, 200), np.repeat([0.0, 1.0], 100)
    assert abs(choose_by_training(scores, present, lambda _: 0.0)) < 0.05


def test_the_area_counts_ties_as_halves() -> None:
    assert compute_area(np.array([1.0, 1.0, 2.0]), np.array([1.0, 0.0, 1.0])) == pytest.approx(0.75)


def test_the_area_is_the_share_of_ordered_pairs() -> None:
    rng = np.random.default_rng(0)
    scores, present = rng.integers(0, 6, 40).astype(float), rng.random(40) < 0.3
    pairs = [(up > down) + (up == down) / 2 for up in scores[present] for down in scores[~present]]
    assert compute_area(scores, present) == pytest.approx(np.mean(pairs), rel=1e-12)


def test_complete_separation_has_a_finite_estimate() -> None:
    found = estimate_separation(np.arange(20.0), np.repeat([0.0, 1.0], 10))
    assert 2 < found < 5


@pytest.mark.parametrize("features", [np.full((4, 1), np.nan), np.zeros((2, 1))])
def test_too_few_runs_or_missing_features_are_refused(features: Array64) -> None:
    present = np.array([0.0, 1.0, 0.0, 1.0])[: len(features)]
    with pytest.raises(ValueError, match="two runs"):
        NormalRatio.fit(features, present)


@pytest.mark.parametrize("epsilon", [0.01, 1.0, 8.0, 200.0])
def test_the_separation_of_an_epsilon_has_this_epsilon(epsilon: float) -> None:
    assert AnswerLaw(1 / find_separation(epsilon, 1e-6)).compute_epsilon(1e-6) == pytest.approx(epsilon)


@pytest.mark.parametrize("epsilon", [0.0, -1.0, np.nan, 2000.0])
def test_an_epsilon_without_a_separation_is_refused(epsilon: float) -> None:
    with pytest.raises(ValueError, match="positive"):
        find_separation(epsilon, 1e-6)
