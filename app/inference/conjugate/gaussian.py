"""The normal distribution of several columns, with unknown mean and covariance.

The prior is normal-inverse-Wishart and counts as one row: ``mean | Sigma ~ N(0, Sigma)`` and ``Sigma ~ IW(s^2 I, d +
2)``, so the expectation of ``Sigma`` is ``s^2 I`` in the design's coordinates, where ``s`` is the prior's scale. The
only statistic is fixed: ``v v'`` of ``v = (x, 1)``, which holds the count, the sums and the sums of products. Its
Frobenius norm is ``|v|^2``. So one answer is enough, and the belief has no error but its noise.

Source of the posterior: Gelman et al., *Bayesian Data Analysis*, 3rd ed., section 3.6.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from app.errors import InvalidRequest
from app.inference.conjugate.moments import FixedMoments, read_moments
from app.inference.core import reasons
from app.inference.core.belief import NORMAL_INVERSE_WISHART, make_block, make_normal
from app.inference.core.design import Design, build
from app.inference.core.facts import DeclaredFacts
from app.inference.core.plan import ModelSpec
from app.inference.core.priors import check_scale
from app.inference.core.release import Grade
from app.inference.core.statistics import Averages, Conclusion, RowEncoder, Statistics
from app.inference.models.without_likelihood import GAUSSIAN

MOST_COLUMNS: Final = 200
"""Largest number of columns; an answer then has 20,301 values."""
LEAST_COUNT: Final = 1e-6
MOST_NOISE: Final = 0.5
"""Largest noise of a variance, over the average variance, of a usable release."""


@dataclass(frozen=True, slots=True)
class NormalTable(FixedMoments):
    """The model for ``design``, whose prior has ``scale``; a belief is empty, as nothing moves."""

    design: Design
    scale: float

    @property
    def row_width(self) -> int:
        """The columns and the presence."""
        return self.design.width + 1

    @property
    def largest_radius(self) -> float:
        """The length of a row at a corner of the bounds."""
        return math.sqrt(self.design.largest_square)

    def fold(self, x: NDArray[np.floating[Any]], y: NDArray[np.floating[Any]]) -> NDArray[Any]:
        """Fold to ``[x, 1]``."""
        return np.column_stack((x, np.ones(len(x), dtype=x.dtype)))

    def conclude(self, averages: Averages, columns: Sequence[str]) -> Conclusion:
        """Make the normal-inverse-Wishart posterior, and the noise of its mean."""
        d = self.design.width
        moments, noise, findings = read_moments(averages, d)
        rows = max(float(moments[d, d]), LEAST_COUNT)
        count = 1 + rows
        mean = moments[:d, d] / count
        scale = self.scale**2 * np.eye(d) + moments[:d, :d] - count * np.outer(mean, mean)
        doubt = (noise**2 / 2 * np.eye(d) + noise**2 * np.outer(mean, mean)) / count**2
        arrays = {"mean": mean, "count": np.array([count]), "degrees": np.array([d + 2 + rows]), "scale": scale}
        blocks = (
            make_block("posterior", NORMAL_INVERSE_WISHART, columns, arrays),
            make_normal("noise", columns, np.zeros(d), doubt),
        )
        variance = float(np.trace(scale)) / (d * count)
        figures = {"rows": rows, "noise_of_variances": noise / count, "average_variance": variance}
        if noise / count > MOST_NOISE * variance:
            findings.append((reasons.NOISE_DOMINATES, Grade.NOT_USABLE))
        return Conclusion(blocks, figures, findings)


def make_statistics(spec: ModelSpec, facts: DeclaredFacts) -> tuple[Statistics, RowEncoder]:
    """Make the model and its design.

    Raises:
        InvalidRequest: pointing into ``/model``.
    """
    GAUSSIAN.check_settings(spec)
    design = build(spec, facts, GAUSSIAN)
    if design.width > MOST_COLUMNS:
        raise InvalidRequest.at("/model/features", f"Name at most {MOST_COLUMNS} features for this model.")
    if spec.prior.scales:
        raise InvalidRequest.at("/model/prior/scales", "This model has one prior scale; state it as scale.")
    if spec.prior.mean:
        raise InvalidRequest.at("/model/prior/mean", "This model has a prior mean of zero; leave it out.")
    if spec.prior.degrees_of_freedom is not None:
        raise InvalidRequest.at("/model/prior/degrees_of_freedom", "This model has no such prior; leave it out.")
    return NormalTable(design, check_scale(spec.prior.scale)), design
