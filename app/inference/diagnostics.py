"""How figures of a release are stated: no finer than they are known, and never as what JSON cannot hold."""

import math

from app.inference.design import Design
from app.inference.protocol import Array64, Model


def stated(value: float) -> float:
    """Four significant digits; what is not finite is stated as -1."""
    return float(f"{value:.4g}") if math.isfinite(value) else -1.0


def stated_by_parameter(model: Model, design: Design, values: Array64) -> dict[str, float]:
    """``values`` ``(D,)`` by the names of the model's parameters."""
    names = model.parameter_names([column.name for column in design.columns])
    return {name: stated(float(value)) for name, value in zip(names, values, strict=True)}
