"""The bound from guesses about many canaries in one run."""

import math

import numpy as np
import pytest
from scipy import stats

from app.privacy.audit.bounds import bound_proportion
from app.privacy.audit.guesses import bound_epsilon_by_guesses, compute_p_value


@pytest.mark.parametrize(("guesses", "correct"), [(100, 80), (500, 300), (40, 40)])
def test_without_delta_the_bound_is_that_of_a_proportion(guesses: int, correct: int) -> None:
    """A second derivation: the logit of a Clopper-Pearson bound."""
    lower = bound_proportion(correct, guesses, 1e-3)[0]
    found = bound_epsilon_by_guesses(2 * guesses, guesses, correct, 0.0, 0.999)
    assert found == pytest.approx(math.log(lower / (1 - lower)), rel=1e-6)


def test_randomised_response_is_refuted_as_rarely_as_stated() -> None:
    """Randomised response reaches the bound exactly, so its error rate can be summed."""
    epsilon, guesses = 1.0, 80
    p = 1 / (1 + math.exp(-epsilon))
    mass = stats.binom.pmf(np.arange(guesses + 1), guesses, p)
    refuted = [bound_epsilon_by_guesses(guesses, guesses, v, 0.0, 0.95) > epsilon for v in range(guesses + 1)]
    assert 0.01 < float(mass[refuted].sum()) <= 0.05


def test_leaks_of_probability_delta_are_covered() -> None:
    """Each canary is published with probability delta; otherwise there is nothing to see."""
    delta, canaries, v = 0.01, 100, 70
    published = stats.binom.pmf(np.arange(canaries + 1), canaries, delta)
    exact = sum(
        float(mass * stats.binom.sf(v - 1 - count, canaries - count, 0.5)) for count, mass in enumerate(published)
    )
    assert exact <= compute_p_value(canaries, canaries, v, 0.0, delta) < 1
    assert compute_p_value(canaries, canaries, v, 0.0, delta) > compute_p_value(canaries, canaries, v, 0.0, 0.0)


def test_guesses_by_chance_bound_nothing() -> None:
    assert bound_epsilon_by_guesses(100, 100, 52, 1e-6, 0.999) == 0
    assert compute_p_value(10, 5, 0, 1.0, 1e-6) == 1
    with pytest.raises(ValueError, match="guesses"):
        compute_p_value(10, 5, 6, 1.0, 1e-6)
