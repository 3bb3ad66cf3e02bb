"""A test that is trained on shadow runs: the likelihood ratio of two normal laws.

The attacker runs the mechanism on both neighbouring tables, and fits a normal law to the features of each world. The
score of a fresh run is the log-likelihood ratio. Training and its threshold use other runs than the bound, so the bound
holds for every score. Sources: Ye et al., *Enhanced membership inference attacks against machine learning models*,
2022; Nasr et al., *Tight auditing of differentially private machine learning*, 2023.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import numpy as np
import scipy
from numpy.typing import NDArray
from scipy.special import ndtri

from app.privacy.audit.bounds import Counts, count_positives
from app.privacy.audit.laws import Array64

_RIDGE: Final = 0.05
"""Share of the pooled variances in each covariance matrix."""
_THRESHOLDS: Final = 65
"""An odd number: the threshold in the middle separates worlds that do not overlap."""


def compress(features: Array64) -> Array64:
    """Compress ``features`` by ``asinh``, so that wide laws are closer to normal ones."""
    return np.asarray(np.arcsinh(features))


@dataclass(frozen=True, slots=True)
class NormalRatio:
    """The log-likelihood ratio of features ``(n, k)``.

    ``centre`` and ``scale`` ``(k,)`` standardise them. ``means`` ``(2, k)`` and ``precisions`` ``(2, k, k)`` are those
    of the worlds without and with the canary.
    """

    centre: Array64
    scale: Array64
    means: Array64
    precisions: Array64

    @classmethod
    def fit(cls, features: Array64, present: Array64) -> "NormalRatio":
        """Fit both laws to the features of shadow runs; ``present`` states for each whether the canary was in.

        Raises:
            ValueError: a world has fewer than two runs, or a feature is not finite.
        """
        is_in = np.asarray(present, dtype=bool)
        if min(is_in.sum(), (~is_in).sum()) < 2 or not np.isfinite(features).all():
            raise ValueError("each world needs two runs with finite features")
        compressed = compress(features)
        centre = compressed.mean(axis=0)
        scale = compressed.std(axis=0)
        scale = np.where(scale > 0, scale, 1.0)
        worlds = [(compressed[chosen] - centre) / scale for chosen in (~is_in, is_in)]
        ridge = _RIDGE * np.eye(features.shape[1])
        covariances = [np.atleast_2d(np.cov(world.T)) + ridge for world in worlds]
        return cls(
            centre,
            scale,
            np.stack([world.mean(axis=0) for world in worlds]),
            np.stack([np.linalg.inv(covariance) for covariance in covariances]),
        )

    def score(self, features: Array64) -> Array64:
        """Compute the log-likelihood ratios of fresh features: with the canary over without."""
        standard = (compress(features) - self.centre) / self.scale
        densities = []
        for mean, precision in zip(self.means, self.precisions, strict=True):
            residuals = standard - mean
            squares = np.einsum("ij,jk,ik->i", residuals, precision, residuals)
            densities.append((float(np.linalg.slogdet(precision)[1]) - squares) / 2)
        return np.asarray(densities[1] - densities[0])


def choose_by_training(scores: Array64, present: Array64, goal: Callable[[Counts], float]) -> float:
    """Choose the threshold with the largest bound ``goal`` on training ``scores``.

    Too few runs may bound nothing at any threshold. Of equal bounds, the one with the largest difference of rates wins.
    """

    def rank(threshold: float) -> tuple[float, float]:
        counts = count_positives(scores, present, threshold)
        return goal(counts), counts.true / counts.present - counts.false / counts.absent

    return float(max(np.quantile(scores, np.linspace(0.01, 0.99, _THRESHOLDS)), key=lambda found: rank(float(found))))


def compute_area(scores: Array64, present: Array64 | NDArray[np.bool_]) -> float:
    """Compute the area under the curve of ``scores``: how often a run with the canary has the higher score."""
    is_in = np.asarray(present, dtype=bool)
    ranks = scipy.stats.rankdata(scores)
    members = int(is_in.sum())
    return float((ranks[is_in].sum() - members * (members + 1) / 2) / (members * (len(ranks) - members)))


def estimate_separation(scores: Array64, present: Array64) -> float:
    """Estimate mu of the Gaussian mechanism with the same area under the curve.

    The area is that of its best test. Complete separation counts as half an exchanged pair, so the estimate is finite.
    """
    members = float(np.sum(present))
    pairs = members * (len(present) - members)
    area = min(max(compute_area(scores, present), 0.5 / pairs), 1 - 0.5 / pairs)
    return float(ndtri(area) * np.sqrt(2))
