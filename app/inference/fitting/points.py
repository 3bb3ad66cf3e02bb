"""Weighted points during a fit."""

from dataclasses import dataclass

import numpy as np

from app.inference.core.model import Array64


@dataclass(frozen=True, slots=True)
class Points:
    """Design rows ``u`` ``(M, p)``, targets ``y`` ``(M,)`` and weights ``(M,)``."""

    u: Array64
    y: Array64
    weight: Array64

    @property
    def is_finite(self) -> bool:
        """Whether every number is finite."""
        return all(bool(np.all(np.isfinite(part))) for part in (self.u, self.y, self.weight))
