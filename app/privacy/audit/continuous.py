"""An e-process that also detects a defect which starts after years.

Answers come in batches of one *stream* each: many canaries at once, or one kind of query. A stream has a capital of 1.
Before each batch, a share of its reserve is split evenly among the alternatives of
:func:`~app.privacy.audit.sequential.list_alternatives`. The bet on an alternative is then multiplied by the
likelihood ratio of the batch. The reserve stays as it is. After n batches it is ``1 / (n + 1)``, so the bets of batch n
start with ``1 / (n (n + 1))``.

The ratio of a batch has the expected value 1 under the claim, for every past. So the expected capital never
grows, and the same holds for a mean of the capitals of all streams with fixed weights. By Ville's inequality it
reaches ``1 / a`` at any time with probability at most ``a``. A batch that fails counts as if its ratio were 0, so
errors may depend on answers.

A process without a reserve loses all its capital while the claim is true, and needs as long again to detect a later
defect. Here a defect from batch n on costs ``log(n (n + 1))`` more nats only.

Source: Shin, Ramdas & Rinaldo, *E-detectors: a nonparametric framework for sequential change detection*, 2023.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np
from scipy.special import logsumexp

from app.privacy.audit.laws import AnswerLaw, Array64
from app.privacy.audit.sequential import list_alternatives

DEFECT: Final = 0.98
"""Factor of the noise in the smallest defect that a continuous audit is built to detect."""
CERTAIN: Final = 1e6
"""Largest logarithm of a bet; also that of answers which the claim excludes."""
ALTERNATIVES: Final = tuple(each.name for each in list_alternatives(AnswerLaw(1.0, 0.02)))
"""Names of all alternatives; those about the sampling rate do not exist at rate 1."""


@dataclass(frozen=True, slots=True)
class Capital:
    """The capital of one stream after ``batches`` batches; ``bets`` are logarithms, empty before the first."""

    batches: int = 0
    bets: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        count = len(ALTERNATIVES) if self.batches else 0
        if self.batches < 0 or len(self.bets) != count or not all(map(math.isfinite, self.bets)):
            raise ValueError("a capital has a finite bet on each alternative")

    def bet(self, claim: AnswerLaw, answers: Array64, present: Array64) -> "Capital":
        """Return the capital after a batch of answers.

        ``answers`` ``(n,)`` are aligned, and their queries have this claim. ``present`` states for each whether the
        canary was in. It must not depend on the answer.
        """
        number = self.batches + 1
        before = np.array(self.bets or [-np.inf] * len(ALTERNATIVES))
        stake = -math.log(number * (number + 1) * len(ALTERNATIVES))
        after = np.logaddexp(before, stake) + compute_log_ratios(claim, answers, present)
        return Capital(number, tuple(float(each) for each in np.minimum(after, CERTAIN)))

    def forfeit(self) -> "Capital":
        """Return the capital after a batch that failed: as if its ratio were 0, up to ``exp(-CERTAIN)``.

        All bets are lost with their new stakes, and the reserve stays.
        """
        return Capital(self.batches + 1, (-CERTAIN,) * len(ALTERNATIVES))

    def compute_log(self) -> float:
        """Compute the logarithm of the capital."""
        return float(logsumexp([-math.log(self.batches + 1), *self.bets]))


def compute_log_ratios(claim: AnswerLaw, answers: Array64, present: Array64) -> Array64:
    """Compute the log-likelihood ratio of a batch for each of :data:`ALTERNATIVES`.

    Alternatives that do not exist for this claim have ratio 1. Answers that are not numbers contradict the claim.
    """
    found = dict.fromkeys(ALTERNATIVES, 0.0)
    with np.errstate(all="ignore"):
        base = claim.compute_log_density(answers, present)
        for each in list_alternatives(claim):
            ratio = float(np.sum(each.compute_log_density(answers, present) - base))
            found[each.name] = ratio if math.isfinite(ratio) else CERTAIN
    return np.array(list(found.values()))


def compute_log_evidence(capitals: Mapping[str, Capital], weights: Mapping[str, float]) -> float:
    """Compute the logarithm of the mean capital; ``weights`` of all streams sum to 1."""
    logs = [capitals.get(name, Capital()).compute_log() for name in weights]
    return float(logsumexp(logs, b=list(weights.values())))


def expect_batches(capital: Capital, weight: float, log_threshold: float, answers: int) -> int:
    """Estimate the number of batches until :data:`DEFECT` raises the alarm.

    The defect starts now, and a batch has ``answers`` answers. Earlier bets are ignored. The growth is that of the
    exact alternative at rate 1, in closed form.
    """
    growth = (DEFECT**2 - 1) / 2 - math.log(DEFECT)
    number = capital.batches + 1
    needed = log_threshold - math.log(weight) + math.log(number * (number + 1) * len(ALTERNATIVES))
    return max(1, math.ceil(needed / (growth * answers)))
