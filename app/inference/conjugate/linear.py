"""Linear regression with its conjugate prior, known or unknown noise.

The only statistic is fixed: ``v v'`` of ``v = (x, y)``, of Frobenius norm ``|v|^2``. It holds the count
too, because the design has an intercept. So one answer is enough, and the belief has no error but its noise.

With unknown noise the posterior is normal-gamma. Its prior differs from that of other methods, because conjugacy needs
coefficients whose prior scales with the noise: at the reference noise, a quarter of the half range, both are equal. The
gamma prior of the precision counts as one row with this noise.

Source of the posterior: Gelman et al., *Bayesian Data Analysis*, 3rd ed., sections 14.2 and 14.8.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import scipy

from app.errors import InvalidRequest
from app.inference.conjugate.moments import FixedMoments, read_moments
from app.inference.conjugate.rows import FoldedRows, solve_with_prior
from app.inference.core import reasons
from app.inference.core.belief import NORMAL_GAMMA, Block, make_block
from app.inference.core.facts import DeclaredFacts
from app.inference.core.linear_algebra import invert
from app.inference.core.model import Array64
from app.inference.core.plan import ModelSpec
from app.inference.core.priors import Prior
from app.inference.core.problems import make_problem
from app.inference.core.reasons import Reason
from app.inference.core.release import Grade
from app.inference.core.statistics import Averages, Conclusion, RowEncoder, Statistics
from app.inference.models.linear import LinearRegression
from app.inference.models.location_scale import REFERENCE
from app.inference.post.diagnostics import compute_bearable_noise

_PRIOR_ROWS: Final = 1.0
"""The number of rows that the prior of the noise counts for."""


@dataclass(frozen=True, slots=True)
class ConjugateLinear(FixedMoments, FoldedRows):
    """The model with its prior; ``noise`` is known, in half ranges of the target, or None. A belief is empty."""

    prior: Prior
    noise: float | None

    def conclude(self, averages: Averages, columns: Sequence[str]) -> Conclusion:
        """Make the posterior: normal for known noise, else normal-gamma and the normal close to it."""
        p = self.design.width
        moments, noise, findings = read_moments(averages, p - 1)
        products, across = moments[:p, :p], moments[:p, p]
        if self.noise is not None:
            mean, precision = solve_with_prior(products / self.noise**2, across / self.noise**2, self.prior, np.ones(p))
            doubt = _propagate(noise / self.noise**2, mean, invert(precision))
            return _judge((), findings, mean - self.prior.mean, (mean, precision, doubt))
        return self._conclude_unknown(products, across, float(moments[p, p]), noise, columns, findings)

    def _conclude_unknown(  # noqa: PLR0917  (the parts of one matrix, its noise, names and findings)
        self,
        products: Array64,
        across: Array64,
        squares: float,
        noise: float,
        columns: Sequence[str],
        findings: list[tuple[Reason, Grade]],
    ) -> Conclusion:
        p = len(across)
        prior = self.prior.precision(np.zeros(p + 1))[:p, :p] * REFERENCE**2
        precision = products + prior
        variance, centre = invert(precision), self.prior.mean[:p]
        mean = variance @ (across + prior @ centre)
        shape = (_PRIOR_ROWS + max(float(products[-1, -1]), 0.0)) / 2
        left = squares + float(centre @ prior @ centre - mean @ precision @ mean)
        rate = 0.5 * (_PRIOR_ROWS * REFERENCE**2 + max(left, 0.0))
        arrays = {"mean": mean, "variance": variance, "shape": np.array([shape]), "rate": np.array([rate])}
        block = make_block("conjugate", NORMAL_GAMMA, columns, arrays)
        # The normal with the expectation and the variance of log sigma, and coefficients at the expected precision.
        log_noise = 0.5 * (np.log(rate) - scipy.special.digamma(shape)) - np.log(REFERENCE)
        whole = np.zeros((p + 1, p + 1))
        whole[:p, :p], whole[p, p] = precision * (shape / rate), 4 / scipy.special.polygamma(1, shape)
        doubt = np.zeros((p + 1, p + 1))
        doubt[:p, :p] = _propagate(noise, mean, variance)
        doubt[p, p] = noise**2 * (1 + mean @ mean) ** 2 / (4 * rate) ** 2
        whole_mean = np.append(mean, log_noise)
        return _judge((block,), findings, whole_mean - self.prior.mean, (whole_mean, whole, doubt))


def _propagate(noise: float, mean: Array64, covariance: Array64) -> Array64:
    """Compute the covariance of the mean's error from the noise of packed moments.

    The gradient's error is ``d_xy - d_xx mean``. Off-diagonal values have half of the noise's variance, so its
    covariance is ``noise^2 / 2 ((1 + |mean|^2) I + mean mean')``.
    """
    of_gradient = noise**2 / 2 * ((1 + mean @ mean) * np.eye(len(mean)) + np.outer(mean, mean))
    return np.asarray(covariance @ of_gradient @ covariance)


def _judge(
    blocks: tuple[Block, ...],
    findings: list[tuple[Reason, Grade]],
    moved: Array64,
    normal: tuple[Array64, Array64, Array64],
) -> Conclusion:
    """Conclude with ``normal``: mean, precision and doubt. ``moved`` is the mean's distance from the prior's."""
    _, precision, doubt = normal
    noise_kl, learned = 0.5 * float(np.trace(precision @ doubt)), 0.5 * float(moved @ precision @ moved)
    if noise_kl > compute_bearable_noise(learned):
        findings = [*findings, (reasons.NOISE_DOMINATES, Grade.NOT_USABLE)]
    return Conclusion(blocks, {"noise_kl": noise_kl}, findings, normal)


def make_statistics(spec: ModelSpec, facts: DeclaredFacts) -> tuple[Statistics, RowEncoder]:
    """Make the model and its design; both take the target scaled by its bounds, of a square of at most 1.

    Raises:
        InvalidRequest: pointing into ``/model``.
    """
    model, design, prior = make_problem(spec, facts)
    assert isinstance(model, LinearRegression), "the family's model"
    noise = model.noise if model.dimension == design.width else None
    if noise is None and spec.prior.degrees_of_freedom is not None:
        raise InvalidRequest.at(
            "/model/prior/degrees_of_freedom", "The conjugate prior has none. Leave it out, or state noise_scale."
        )
    return ConjugateLinear(model, design, prior, noise), design
