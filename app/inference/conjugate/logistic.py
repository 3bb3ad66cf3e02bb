"""Logistic regression by Polya-Gamma variables (Park et al. 2020, Algorithm 5), as a conjugate-exponential model.

Each row has a Polya-Gamma variable whose expectation ``xi = tanh(c/2) / (2c)``, with ``c^2 = x'<theta theta'>x``,
depends on the current belief. Given these, the posterior of ``theta`` is normal: its precision is that of the prior
plus ``sum xi x x'``, and its mean solves this precision against ``sum (y - 1/2) x``. The first sum moves with the
belief, the second is fixed, so it is asked once.

The k features of a row are scaled, so that a row at the radius has features of length ``sqrt(k)``. A longer row counts
with a weight ``w = s^2``, where s is the radius over its length: ``s x`` has a squared length of at most
``R^2 = k + 1``. Then ``|w (y - 1/2) x| <= s R / 2 <= R / 2``, and ``|w xi x x'|_F <= R^2 / 4``, because ``xi`` is at
most 1/4. A weight of the features alone leaves the true coefficients as they are; cut rows would change them. Beliefs
and sums are in these scaled coordinates.

Three things differ from the published algorithm, which diverges where noise exceeds an eigenvalue of the curvature.
Fixed statistics are asked once. Eigenvalues of the noised curvature are raised to the edge of its noise. Steps of the
mean are 1.8 times as long: coordinate ascent minimises an upper bound of a convex function, so any factor below 2
converges, and it needs fewer answers.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Final

import numpy as np

from app.inference.conjugate.rows import (
    FoldedRows,
    compute_gains,
    scale_features,
    solve_with_prior,
)
from app.inference.core import reasons
from app.inference.core.belief import GAMMA, Block, make_block
from app.inference.core.facts import DeclaredFacts
from app.inference.core.linear_algebra import invert
from app.inference.core.model import Array32, Array64
from app.inference.core.plan import ModelSpec
from app.inference.core.priors import HierarchicalPrior, Prior
from app.inference.core.problems import make_problem
from app.inference.core.release import Grade
from app.inference.core.statistics import (
    STATISTIC_SUM,
    Averages,
    Conclusion,
    RowEncoder,
    StatisticBlock,
    Statistics,
    compute_packed_length,
    multiply_pairs,
    raise_to_noise,
    unpack_symmetric,
)
from app.inference.post.diagnostics import compute_bearable_noise

SCORE: Final = "score"
CURVATURE: Final = "curvature"
LENGTH: Final = 1.8
"""Factor of the steps."""
_LEAST_SQUARE = np.float32(1e-6)
"""Least ``c^2``; ``xi`` is there within 1e-7 of its limit 1/4."""


@dataclass(frozen=True, slots=True)
class PolyaGammaLogistic(FoldedRows):
    """The model with its prior; a belief ``(D + 1, D)`` is the mean and, below it, the covariance."""

    prior: Prior
    kind: ClassVar[str] = STATISTIC_SUM
    usual_share: ClassVar[float | None] = None
    usual_iterations: ClassVar[int] = 10
    usual_batch: ClassVar[int | None] = None
    tail: ClassVar[float] = 0.35

    @property
    def belief_shape(self) -> tuple[int, ...]:
        """``(D + 1, D)``."""
        return (self.design.width + 1, self.design.width)

    def list_blocks(self, radius: float, *, moving: bool) -> tuple[StatisticBlock, ...]:
        """List the curvature (moving) or the score (fixed)."""
        side = self.design.width
        if moving:
            return (StatisticBlock(CURVATURE, compute_packed_length(side), side / 4),)
        return (StatisticBlock(SCORE, side, math.sqrt(side) / 2),)

    @np.errstate(all="ignore")
    def contribute(self, rows: Array32, belief: Array64, radius: float, *, moving: bool) -> Array32:
        """Compute each row's ``w z / 2`` or packed ``w xi z z'``."""
        scaled, shares = scale_features(rows, radius)
        cut = scaled * shares
        if not moving:
            return cut * (shares * np.float32(0.5))
        second = (belief[1:] + np.outer(belief[0], belief[0])).astype(np.float32)
        c = np.sqrt(np.maximum(np.vecdot(scaled @ second, scaled), _LEAST_SQUARE))
        curvatures = multiply_pairs(cut)
        curvatures *= (np.tanh(c / 2) / (2 * c))[:, None]
        return curvatures

    def start(self, rng: np.random.Generator) -> Array64:
        """Zeros: a point mass at zero, where ``xi`` is largest."""
        return np.zeros(self.belief_shape)

    def update(self, averages: Averages, belief: Array64) -> Array64:
        """Take a long step from the last mean towards that of the normal posterior."""
        mean, precision, _ = self._solve(averages)
        return np.vstack((belief[0] + LENGTH * (mean - belief[0]), invert(precision)))

    def conclude(self, averages: Averages, columns: Sequence[str]) -> Conclusion:
        """Make the normal posterior; for a hierarchical prior also that of the common precision."""
        mean, precision, floored = self._solve(averages)
        covariance = invert(precision)
        score, curvature = averages.noise[SCORE] ** 2, averages.noise[CURVATURE] ** 2 / 2
        of_gradient = (score + curvature * mean @ mean) * np.eye(len(mean)) + curvature * np.outer(mean, mean)
        doubt = covariance @ of_gradient @ covariance
        gains = compute_gains(len(mean), averages.radius)
        moved = mean - self.prior.mean / gains
        noise_kl, learned = 0.5 * float(np.trace(precision @ doubt)), 0.5 * float(moved @ precision @ moved)
        findings = [(reasons.VARIATIONAL, Grade.CENTRE_ONLY)]
        if floored:
            findings.append((reasons.NOISE_NOT_KNOWN, Grade.CENTRE_ONLY))
        if noise_kl > compute_bearable_noise(learned):
            findings.append((reasons.NOISE_DOMINATES, Grade.NOT_USABLE))
        outer = np.outer(gains, gains)
        normal = gains * mean, precision / outer, doubt * outer
        return Conclusion(self._describe_prior(normal[0], covariance * outer), {"noise_kl": noise_kl}, findings, normal)

    def _solve(self, averages: Averages) -> tuple[Array64, Array64, bool]:
        """Compute the posterior's mean and precision in scaled coordinates.

        Also returns whether noise hides an eigenvalue of the curvature.
        """
        noised = unpack_symmetric(averages.sums[CURVATURE])
        curvature, floored = raise_to_noise(noised, averages.noise[CURVATURE])
        gains = compute_gains(len(curvature), averages.radius)
        return *solve_with_prior(curvature, averages.sums[SCORE], self.prior, gains), floored

    def _describe_prior(self, mean: Array64, covariance: Array64) -> tuple[Block, ...]:
        if not isinstance(self.prior, HierarchicalPrior):
            return ()
        half, squares = (
            self.prior.degrees_of_freedom / 2,
            ((mean - self.prior.mean) ** 2 + covariance.diagonal()) / self.prior.scales**2,
        )
        shape, rate = np.array([half + len(mean) / 2]), np.array([half + squares.sum() / 2])
        return (make_block("common_precision", GAMMA, ("common_precision",), {"shape": shape, "rate": rate}),)


def make_statistics(spec: ModelSpec, facts: DeclaredFacts) -> tuple[Statistics, RowEncoder]:
    """Make the model and its design."""
    model, design, prior = make_problem(spec, facts)
    return PolyaGammaLogistic(model, design, prior), design
