"""Sequential tests of a claim, which may stop at any time.

An *e-process* starts at 1 and has an expected value of at most 1 at every stopping time, if the claim holds. So it
reaches ``1 / a`` at any time with probability at most ``a`` (Ville's inequality). Both e-processes
here are mixtures: means of products, one for each alternative, with weights that are fixed beforehand.

:class:`LawWatch` tests the claimed law of answers itself, by likelihood ratios. :class:`PrivacyWatch` tests the
trade-off function alone, so it is valid for every mechanism that obeys it.

Sources: Ramdas, Gruenwald, Vovk & Shafer, *Game-theoretic statistics and safe anytime-valid inference*, 2023;
Waudby-Smith & Ramdas, *Estimating means of bounded random variables by betting*, 2024.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
from scipy.special import logsumexp

from app.privacy.audit.laws import AnswerLaw, Array64
from app.privacy.audit.thresholds import ALARM

_QUIETER: Final = (0.5, 0.8, 0.9, 0.95, 0.98, 0.99)
_LONGER: Final = (1.01, 1.02, 1.05, 1.1, 1.5, 3.0)
_OFTENER: Final = (1.02, 1.05, 1.1, 1.5, 3.0)
_OUTLIERS: Final = (1e-4, 1e-3, 1e-2)
_WIDTH: Final = 10.0
"""Scale of outliers in clipping norms."""
_THRESHOLDS: Final = np.linspace(-2.0, 3.0, 11)
"""Thresholds of bets in standard deviations of the noise, from the middle between both means."""
_STAKES: Final = 2.0 ** -np.arange(1, 9)
"""Stakes as shares of the largest possible one."""


@dataclass(frozen=True, slots=True)
class Alternative:
    """A law of answers that breaks the claim.

    ``outliers`` is the probability that the canary's contribution is not clipped. Its answer then has a Cauchy law of
    scale :data:`_WIDTH`.
    """

    name: str
    law: AnswerLaw
    outliers: float = 0.0

    def compute_log_density(self, answers: Array64, present: Array64) -> Array64:
        """Compute log-densities as :meth:`AnswerLaw.compute_log_density`."""
        density = self.law.compute_log_density(answers, present)
        if not self.outliers:
            return density
        wide = -np.log1p((np.asarray(answers) / _WIDTH) ** 2) - math.log(math.pi * _WIDTH)
        mixed = np.logaddexp(math.log1p(-self.outliers) + density, math.log(self.outliers) + wide)
        return np.where(present, mixed, density)


def list_alternatives(claim: AnswerLaw) -> tuple[Alternative, ...]:
    """List laws that are less private than ``claim``: less noise, longer contributions, a higher rate, outliers."""
    quieter = [Alternative(f"noise x {f:g}", replace(claim, noise=claim.noise * f)) for f in _QUIETER]
    longer = [Alternative(f"contribution x {f:g}", replace(claim, shift=claim.shift * f)) for f in _LONGER]
    rates = [f for f in _OFTENER if claim.rate * f <= 1 and claim.rate < 1]
    oftener = [Alternative(f"sampling rate x {f:g}", replace(claim, rate=claim.rate * f)) for f in rates]
    outliers = [Alternative(f"{share:g} not clipped", claim, share) for share in _OUTLIERS]
    return (*quieter, *longer, *oftener, *outliers)


class LawWatch:
    """An e-process against the claimed law of answers, by likelihood ratios."""

    def __init__(self, claim: AnswerLaw, alternatives: Sequence[Alternative] | None = None) -> None:
        self._claim = claim
        self._alternatives = list_alternatives(claim) if alternatives is None else tuple(alternatives)
        self._logs = np.zeros(len(self._alternatives))

    def add(self, answers: Array64, present: Array64) -> Array64:
        """Add aligned ``answers`` ``(n,)`` in order; return the logarithm of the evidence after each.

        ``present`` states for each whether the canary was in. It must not depend on the answer.
        """
        base = self._claim.compute_log_density(answers, present)
        steps = np.stack([each.compute_log_density(answers, present) - base for each in self._alternatives])
        paths = self._logs[:, None] + np.cumsum(steps, axis=1)
        self._logs = paths[:, -1]
        return np.asarray(logsumexp(paths, axis=0) - math.log(len(paths)))

    def compute_growth(self, truth: Alternative, share: float = 0.5) -> float:
        """Compute the expected growth of the log-evidence for each answer of ``truth``.

        It is that of the best alternative, in nats, by quadrature; a share ``share`` of answers has the canary.
        """
        return float(np.max(self._expect(truth, share)))

    def _expect(self, truth: Alternative, share: float) -> Array64:
        x = np.sinh(np.linspace(-12.0, 12.0, 200_001))
        step = np.gradient(x)
        growth = np.zeros(len(self._alternatives))
        for present, weight in ((1.0, share), (0.0, 1 - share)):
            flags = np.full(len(x), present)
            mass = np.exp(truth.compute_log_density(x, flags)) * step * weight
            base = self._claim.compute_log_density(x, flags)
            with np.errstate(invalid="ignore"):
                steps = np.stack([each.compute_log_density(x, flags) - base for each in self._alternatives])
                growth += np.nansum(np.where(mass > 0, steps * mass, 0.0), axis=1)
        return growth

    def expect_answers(self, truth: Alternative, alarm: float = ALARM) -> float:
        """Estimate the number of answers until the alarm, if they follow ``truth``."""
        return (math.log(alarm) + math.log(len(self._alternatives))) / self.compute_growth(truth)


class PrivacyWatch:
    """An e-process against every mechanism whose trade-off function is the claimed one.

    Whether the canary is in is decided by a fair coin, for each answer separately. For an event A and a slope
    ``e^eps``, the claim bounds ``P(A | in) - e^eps P(A | out)`` by its delta. A bet gains if the canary is in and A
    happens, and loses ``e^eps`` if it is out and A happens. Events are thresholds, and each has the claim's slope. The
    supporting lines of a concave curve determine it, so no part of the claim is left out.
    """

    def __init__(self, claim: AnswerLaw) -> None:
        events = claim.shift / 2 + claim.noise * _THRESHOLDS
        slopes = np.exp(claim.compute_log_ratio(events))
        self._events = events
        self._slopes = slopes
        self._deltas = claim.exceed(events, present=True) - slopes * claim.exceed(events, present=False)
        self._logs = np.zeros((len(events), len(_STAKES)))

    def add(self, answers: Array64, present: Array64) -> Array64:
        """Add aligned answers as :meth:`LawWatch.add`; return the logarithm of the evidence after each."""
        is_in = np.asarray(present, dtype=bool)
        above = np.asarray(answers)[None, :] > self._events[:, None]
        gains = np.where(is_in, above * 1.0, -self._slopes[:, None] * above) - self._deltas[:, None] / 2
        stakes = _STAKES[None, :] / (self._slopes + self._deltas / 2)[:, None]
        paths = self._logs[:, :, None] + np.cumsum(np.log1p(stakes[:, :, None] * gains[:, None, :]), axis=2)
        self._logs = paths[:, :, -1]
        return np.asarray(logsumexp(paths, axis=(0, 1)) - math.log(self._logs.size))


def find_alarm(log_evidence: Array64, alarm: float = ALARM) -> int | None:
    """Find the number of answers at which the evidence first reaches ``alarm``; None if it never does."""
    reached = np.flatnonzero(log_evidence >= math.log(alarm))
    return int(reached[0]) + 1 if len(reached) else None
