"""Statistics of guesses about many canaries in one run, and in several runs.

Each of m canaries is in or out by a fair coin. After the run an attacker guesses r of the coins, and v guesses are
correct. If the run is (epsilon, delta)-differentially private, v is dominated by a binomial number with the probability
``e^eps / (1 + e^eps)``, up to a term in delta. The bound assumes nothing about the run or about the canaries'
independence. Source: Steinke, Nasr & Jagielski, *Privacy auditing with one (1) training run*, 2023, Theorem 5.2.

Without that assumption, one run shows little: a mechanism may reveal all canaries at once, with a small probability.
The mean share of correct guesses in several runs has no such limit. Each guess is correct with a probability of at most
``(1 + d) / 2``, where d is the claim's delta at epsilon 0, the total variation distance. So bets on the share in each
run are an e-process, as in :mod:`app.privacy.audit.sequential`.
"""

import math
from typing import Final

import numpy as np
import scipy
from scipy.special import expit, logsumexp

from app.privacy.audit.laws import AnswerLaw, Array64

_MOST_EPSILON = 50.0
_STAKES: Final = np.array([0.25, 0.5, 0.9, 0.99])
"""Stakes as shares of the largest possible one, at which a run without correct guesses loses everything."""


def compute_p_value(canaries: int, guesses: int, correct: int, epsilon: float, delta: float) -> float:
    """Bound the probability of at least ``correct`` guesses under (``epsilon``, ``delta``).

    Raises:
        ValueError: for numbers that are not in order.
    """
    if not 0 <= correct <= guesses <= canaries:
        raise ValueError("there are at most as many correct guesses as guesses, and as many guesses as canaries")
    p = float(expit(epsilon))
    tail = float(scipy.stats.binom.sf(correct - 1, guesses, p))
    below = np.cumsum(scipy.stats.binom.pmf(correct - np.arange(1, correct + 1), guesses, p))
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


def compute_accuracy(claim: AnswerLaw) -> float:
    """Compute the largest probability of a correct guess about a fair coin."""
    return (1 + claim.compute_delta(0.0)) / 2


def weigh_shares(shares: Array64, claim: AnswerLaw) -> Array64:
    """Weigh the shares of correct guesses in n runs.

    There is one guess for each canary, and ``shares`` are ``(..., n)``. The canaries of a run may depend on each other.
    Each run has fresh coins, and obeys the claim for every outcome of earlier runs.

    Returns:
        The logarithm of the evidence against the claim after each run ``(..., n)``.
    """
    gains = np.asarray(shares) / compute_accuracy(claim) - 1
    paths = np.cumsum(np.log1p(np.multiply.outer(_STAKES, gains)), axis=-1)
    return np.asarray(logsumexp(paths, axis=0) - math.log(len(_STAKES)))
