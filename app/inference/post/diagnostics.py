"""How figures of a release are stated: no finer than they are known, and never as what JSON cannot hold.

And by which of them several methods judge whether a release can be trusted.
"""

import math
from typing import Final

import numpy as np

from app.inference.core.design import Design
from app.inference.core.model import Array64, Model

MOST_NOISE: Final = 0.5
"""Of the nats between the prior's mean and what was found: beyond, noise is most of it."""
MOST_FIT: Final = 1.0
"""Nats between what was found and the points' posterior."""
_TINY = 1e-300


def bearable_noise(learned: float) -> float:
    """Nats by which noise may move what was found, where ``learned`` nats lie between it and the prior's mean."""
    return MOST_NOISE * max(learned, 1.0)


def effective_size(weights: Array64) -> float:
    """``(sum w)**2 / sum w**2`` of ``weights`` w ``(M,)`` (Kish 1965); zero without any weight."""
    total = float(weights.sum())
    return total**2 / max(float(np.square(weights).sum()), _TINY)


def round_stated(value: float) -> float:
    """Four significant digits; what is not finite is stated as -1."""
    return float(f"{value:.4g}") if math.isfinite(value) else -1.0


def stated_by_parameter(model: Model, design: Design, values: Array64) -> dict[str, float]:
    """``values`` ``(D,)`` by the names of the model's parameters."""
    names = model.parameter_names([column.name for column in design.columns])
    return {name: round_stated(float(value)) for name, value in zip(names, values, strict=True)}
