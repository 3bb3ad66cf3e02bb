"""Common base of models of a numeric target with location ``x'beta`` and scale ``sigma``.

The design scales the target by its declared bounds to -1 and 1, as it does the features. So coefficients, their prior
and ``sigma`` are in half ranges of the target. Rows are ``[x, y]``. The noise is known (``noise_scale``, in units of
the target), or ``sigma = exp(rho) / 4`` with the last parameter ``rho``, named ``log_noise_scale``. Its prior is
``N(0, 1)``, so the prior median of ``sigma`` is a quarter of the half range. Standardised residuals are
``e = (y - x'beta) / sigma``. The presence ``m`` is the intercept's coordinate: 1, or 0 in a null row.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from app.inference.core.facts import Column
from app.inference.core.model import Array32, Array64
from app.inference.core.plan import ModelSpec
from app.inference.models.definition import check_noise
from app.inference.models.one_predictor import OnePredictor
from app.inference.models.residuals import Residuals, weigh_scores
from app.inference.models.targets import read_scaling

LOG_NOISE_SCALE: Final = "log_noise_scale"
REFERENCE: Final = 0.25
_MOST_LOG: Final[dict[type, float]] = {np.float32: 15.0, np.float64: 300.0}


@dataclass(frozen=True, slots=True)
class LocationScale(OnePredictor):
    """The part that does not depend on the distribution; ``noise`` is in half ranges of the target."""

    noise: float

    @property
    def row_width(self) -> int:
        """The design row and the target."""
        return self.width + 1

    def fold(self, x: NDArray[np.floating[Any]], y: NDArray[np.floating[Any]]) -> NDArray[Any]:
        """Fold to ``[x, y]``, shape ``(n, p + 1)``, dtype of ``x``."""
        return np.column_stack((x, y)).astype(x.dtype, copy=False)

    def features(self, rows: NDArray[Any]) -> NDArray[Any]:
        """Drop the target."""
        return rows[:, : self.width]

    def noise_at(self, theta: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
        """Read ``rho`` and ``sigma`` from parameters ``(..., D)``; ``rho`` is zero for known noise."""
        rho = np.zeros_like(theta[..., 0])
        return rho, np.full_like(rho, self.noise)

    def scale(self, theta: Array64) -> float:
        """Read ``sigma`` from a parameter ``(D,)``."""
        return float(self.noise_at(theta)[1])

    def compute_errors(self, rows: NDArray[Any], draws: NDArray[Any], out: NDArray[Any] | None) -> NDArray[Any]:
        """Compute ``y - x'beta``, shape ``(n, S)``."""
        ones = np.ones((len(draws), 1), dtype=draws.dtype)
        return np.matmul(rows, np.concatenate((-draws[:, : self.width], ones), axis=1).T, out=out)

    def _standardise(self, rows: Array32, theta: Array64) -> tuple[Array32, np.float32]:
        """Compute standardised residuals ``e`` ``(n,)`` and ``sigma``."""
        single = theta.astype(np.float32)
        sigma = self.noise_at(single)[1]
        e: Array32 = self.compute_errors(rows, single[None, :], None)[:, 0] / sigma
        return e, np.float32(sigma)

    @property
    def redescending(self) -> bool:
        """Whether scores of far residuals are small."""
        return False

    @property
    def squares(self) -> bool:
        """Whether the noise is unknown: it is the last parameter then."""
        return self.dimension > self.width

    @np.errstate(all="ignore")
    def residuals(self, rows: Array32, theta: Array64) -> Residuals:
        """Compute ``e``, with the scale ``1 / sigma`` in every row."""
        e, sigma = self._standardise(rows, theta)
        return Residuals(e, np.full_like(e, 1 / sigma))

    def largest_residual(self, theta: Array64) -> float:
        """Compute the range of the target, 2 in the design, in units of ``sigma``."""
        return float(2 / np.maximum(self.noise_at(theta)[1], 1e-30))

    @np.errstate(all="ignore")
    def cut_scores(self, rows: Array32, theta: Array64, transform: Array64, clip: float, cut: float) -> Array32:
        """Cut ``e`` to ``+-cut``, and weight by the design row (:func:`weigh_scores`)."""
        e, sigma = self._standardise(rows, theta)
        x, metric = self.features(rows), transform.astype(np.float32)
        if not self.squares:
            return weigh_scores(x @ (metric / sigma).T, e, cut, clip)
        return weigh_scores(x @ (metric[:, :-1] / sigma).T, e, cut, clip, (metric[:, -1], x[:, -1]))

    def starting_targets(self, rng: np.random.Generator, x: Array64) -> Array64:
        """Spread targets evenly over the declared bounds, in random order."""
        return rng.permutation(np.linspace(-1, 1, len(x)))

    def target_step(self, y: Array64) -> Array64:
        """Half the declared range."""
        return np.ones_like(y)


@dataclass(frozen=True, slots=True)
class UnknownScale(LocationScale):
    """The same with ``theta = (beta, rho)``; ``noise`` is ``sigma`` at ``rho = 0``."""

    @property
    def dimension(self) -> int:
        """One coefficient for each design column, and the noise."""
        return self.width + 1

    def parameter_names(self, columns: Sequence[str]) -> tuple[str, ...]:
        """The columns' names, and ``log_noise_scale``."""
        return (*columns, LOG_NOISE_SCALE)

    def noise_at(self, theta: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
        most = _MOST_LOG[theta.dtype.type]
        rho = np.clip(theta[..., -1], -most, most)
        return rho, np.exp(rho) * theta.dtype.type(self.noise)


def read_noise(spec: ModelSpec, target: Column | None) -> float | None:
    """Read the known noise in half ranges of the target; None if it is unknown.

    Raises:
        InvalidRequest: at ``/model/noise_scale`` or ``/model/target``.
    """
    half = read_scaling(target).half
    return None if spec.noise_scale is None else check_noise(spec.noise_scale / half)
