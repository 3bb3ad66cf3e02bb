"""Figures in the diagnostics of a release, and common limits for ``trusted``.

Figures are rounded to their accuracy, and are numbers that JSON can represent.
"""

import math
from typing import Final

import numpy as np

from app.inference.core.design import Design
from app.inference.core.model import Array64, Model

MOST_NOISE: Final = 0.5
"""Largest share of noise in the nats between the prior's mean and the posterior's."""
MOST_FIT: Final = 1.0
"""Largest divergence in nats between the posterior and that of the points."""
_TINY = 1e-300


def compute_bearable_noise(learned: float) -> float:
    """Compute the largest acceptable error in nats.

    ``learned`` is the distance in nats between the prior's mean and the posterior's.
    """
    return MOST_NOISE * max(learned, 1.0)


def compute_effective_size(weights: Array64) -> float:
    """Compute the effective sample size ``(sum w)**2 / sum w**2`` of ``weights`` ``(M,)``.

    It is zero if all weights are zero. Source: Kish 1965.
    """
    total = float(weights.sum())
    return total**2 / max(float(np.square(weights).sum()), _TINY)


def round_stated(value: float) -> float:
    """Round to four significant digits; a value that is not finite becomes -1."""
    return float(f"{value:.4g}") if math.isfinite(value) else -1.0


def round_by_parameter(model: Model, design: Design, values: Array64) -> dict[str, float]:
    """Map the names of the model's parameters to rounded ``values`` ``(D,)``."""
    names = model.parameter_names([column.name for column in design.columns])
    return {name: round_stated(float(value)) for name, value in zip(names, values, strict=True)}
