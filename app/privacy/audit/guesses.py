"""A bound on epsilon from the guesses about many canaries in one run.

Each of m canaries is in or out by a fair coin. After the run an attacker guesses r of the coins, and v guesses are
correct. If the run is (epsilon, delta)-differentially private, v is dominated by a binomial number with the probability
``e^eps / (1 + e^eps)``, up to a term in delta. The bound assumes nothing about the run or about the canaries'
independence. Source: Steinke, Nasr & Jagielski, *Privacy auditing with one (1) training run*, 2023, Theorem 5.2.
"""

import numpy as np
from scipy.special import expit
from scipy.stats import binom

_MOST_EPSILON = 50.0


def compute_p_value(canaries: int, guesses: int, correct: int, epsilon: float, delta: float) -> float:
    """Bound the probability of at least ``correct`` guesses under (``epsilon``, ``delta``).

    Raises:
        ValueError: for numbers that are not in order.
    """
    if not 0 <= correct <= guesses <= canaries:
        raise ValueError("there are at most as many correct guesses as guesses, and as many guesses as canaries")
    p = float(expit(epsilon))
    tail = float(binom.sf(correct - 1, guesses, p))
    below = np.cumsum(binom.pmf(correct - np.arange(1, correct + 1), guesses, p))
    slope = float(np.max(below / np.arange(1, correct + 1), initial=0.0))
    return min(1.0, tail + 2 * canaries * delta * slope)


def bound_epsilon_by_guesses(canaries: int, guesses: int, correct: int, delta: float, confidence: float) -> float:
    """Bound epsilon at ``delta`` from below: smaller claims have a p-value of ``1 - confidence`` at most."""
    low, high = 0.0, _MOST_EPSILON
    if compute_p_value(canaries, guesses, correct, low, delta) > 1 - confidence:
        return 0.0
    for _ in range(60):
        middle = (low + high) / 2
        refuted = compute_p_value(canaries, guesses, correct, middle, delta) <= 1 - confidence
        low, high = (middle, high) if refuted else (low, middle)
    return low
