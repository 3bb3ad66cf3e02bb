"""Lower bounds on a privacy loss, from the successes of a test.

A test decides from an answer whether the canary is in. Its rates of true and false positives are proportions, with
Clopper-Pearson bounds that hold at every sample size. Half of the permitted error is spent on each.

A bound on epsilon alone reads one point of the trade-off curve. It cannot reach the claimed epsilon at a small delta,
even with infinitely many answers (Nasr et al. 2023). A bound within a family of curves uses their shape: it is the
largest member whose claim these rates refute, and so all smaller members are refuted too.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import scipy
from scipy.special import betaincinv, ndtr, ndtri

from app.privacy.audit.laws import AnswerLaw, Array64

_THRESHOLDS = 161
_MOST_EPSILON = 600.0
_REACH = 6.0
"""Standard deviations beyond both means in which thresholds are searched."""


@dataclass(frozen=True, slots=True)
class Counts:
    """Positives of one test: ``true`` of ``present`` answers with the canary, ``false`` of ``absent`` without.

    Expected counts need not be whole numbers.
    """

    true: float
    present: float
    false: float
    absent: float

    def __add__(self, other: "Counts") -> "Counts":
        """Pool two samples of the same claim.

        The mean rates of several mechanisms obey a claim that each of them obeys, because trade-off functions of
        true positives are concave.
        """
        return Counts(
            self.true + other.true,
            self.present + other.present,
            self.false + other.false,
            self.absent + other.absent,
        )


def count_positives(answers: Array64, present: Array64, threshold: float) -> Counts:
    """Count answers above ``threshold``; ``present`` states for each whether the canary was in."""
    is_in, above = np.asarray(present, dtype=bool), np.asarray(answers) > threshold
    return Counts(
        float(np.sum(above & is_in)), float(np.sum(is_in)), float(np.sum(above & ~is_in)), float(np.sum(~is_in))
    )


def bound_proportion(successes: float, trials: float, error: float) -> tuple[float, float]:
    """Compute Clopper-Pearson bounds on a proportion.

    Each of them fails with probability ``error`` at most. Without trials they are 0 and 1.

    Raises:
        ValueError: for more successes than trials, or an error that is not between 0 and 1.
    """
    if not (0 <= successes <= trials and 0 < error < 1):
        raise ValueError("a proportion has at most as many successes as trials, and an error between 0 and 1")
    lower = float(betaincinv(successes, trials - successes + 1, error)) if successes > 0 else 0.0
    upper = float(betaincinv(successes + 1, trials - successes, 1 - error)) if successes < trials else 1.0
    return lower, upper


def bound_rates(counts: Counts, confidence: float) -> tuple[float, float]:
    """Bound true positives from below and false positives from above, as rates."""
    error = (1 - confidence) / 2
    return bound_proportion(counts.true, counts.present, error)[0], bound_proportion(
        counts.false, counts.absent, error
    )[1]


def bound_epsilon(counts: Counts, delta: float, confidence: float) -> float:
    """Bound epsilon at ``delta`` from below, without an assumption about the mechanism."""
    true, false = bound_rates(counts, confidence)
    odds = [(true - delta, false), (1 - false - delta, 1 - true)]
    return max([0.0, *(math.log(over / under) for over, under in odds if over > 0 and under > 0)])


def bound_separation(counts: Counts, confidence: float) -> float:
    """Bound mu of Gaussian differential privacy from below: smaller claims are refuted."""
    true, false = bound_rates(counts, confidence)
    return max(0.0, float(ndtri(true) - ndtri(false))) if true > 0 and false < 1 else 0.0


def find_separation(epsilon: float, delta: float) -> float:
    """Find mu of the Gaussian mechanism whose least epsilon at ``delta`` is ``epsilon``.

    Raises:
        ValueError: for an ``epsilon`` that is not positive.
    """
    if not 0 < epsilon < _MOST_EPSILON:
        raise ValueError("epsilon must be positive, and not huge")
    highest = 1.0
    while AnswerLaw(1 / highest).compute_epsilon(delta) < epsilon:
        highest *= 2
    least = highest
    while AnswerLaw(1 / least).compute_epsilon(delta) > epsilon:
        least /= 2
    return float(
        scipy.optimize.brentq(lambda mu: AnswerLaw(1 / mu).compute_epsilon(delta) - epsilon, least, highest, xtol=1e-12)
    )


def bound_rate(counts: Counts, noise: float, confidence: float) -> float:
    """Bound the sampling rate q from below: claims of this noise and a smaller rate are refuted."""
    true, false = bound_rates(counts, confidence)
    if not 0 < false < 1:
        return 0.0
    return min(1.0, max(0.0, (true - false) / (float(ndtr(ndtri(false) + 1 / noise)) - false)))


def bound_family(counts: Counts, claim: AnswerLaw, confidence: float) -> float:
    """Bound the parameter of the claim's family from below: smaller claims are refuted.

    At rate 1 the family is all Gaussian mechanisms, and the parameter is mu. Below, it is all rates at the claim's
    noise.
    """
    return bound_separation(counts, confidence) if claim.rate == 1 else bound_rate(counts, claim.noise, confidence)


def bound_law(counts: Counts, claim: AnswerLaw, confidence: float) -> AnswerLaw | None:
    """Find the largest member of the claim's family that the counts refute; None if they refute none."""
    found = bound_family(counts, claim, confidence)
    if found <= 0:
        return None
    return AnswerLaw(1 / found) if claim.rate == 1 else AnswerLaw(claim.noise, found)


def bound_epsilon_by_shape(counts: Counts, claim: AnswerLaw, delta: float, confidence: float) -> float:
    """Bound epsilon at ``delta`` from below, within the claim's family."""
    found = bound_law(counts, claim, confidence)
    return 0.0 if found is None else found.compute_epsilon(delta)


def is_refuted(counts: Counts, claim: AnswerLaw, confidence: float) -> bool:
    """Whether the rates contradict the claim, for every mechanism that obeys it."""
    true, false = bound_rates(counts, confidence)
    return true > claim.bound_power(false)


def bound_mean(present: Array64, absent: Array64, confidence: float) -> float:
    """Bound a difference of means from below, for normal samples of variance 1."""
    error = float(ndtri(confidence)) * math.sqrt(1 / len(present) + 1 / len(absent))
    return float(present.mean() - absent.mean()) - error


def choose_threshold(claim: AnswerLaw, present: int, absent: int, goal: Callable[[Counts], float]) -> float:
    """Choose the threshold with the largest expected bound ``goal`` if the claim is exact.

    It follows from the claim and the sample sizes alone, so the bounds hold at the threshold that it returns.
    """
    span = _REACH * claim.noise
    thresholds = np.linspace(-span, claim.shift + span, _THRESHOLDS)
    true, false = (np.minimum(claim.exceed(thresholds, present=flag), 1.0) for flag in (True, False))
    expected = [Counts(p * present, present, a * absent, absent) for p, a in zip(true, false, strict=True)]
    return float(thresholds[int(np.argmax([goal(counts) for counts in expected]))])
