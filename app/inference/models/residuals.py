"""Scores whose residuals are cut at one distance, for targets that need not follow the family.

A score is ``e s x``: a standardised residual ``e``, a scale ``s`` that depends on the design row, and the row ``x``. An
unknown noise scale adds ``e^2 - m``. Bounds that depend on the row and on the residual together are unbiased only if
residuals follow the family. Here the residual is cut to ``+-c`` first, the same in every row. Then a weight that
depends on the row alone bounds the score. What the cut takes, the excess, is one number a row, so its sum along few
directions costs little noise.

All functions are in the row zone: total, without warnings; a row that is not finite gives zero.
"""

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np

from app.inference.core.model import Array32, Array64
from app.inference.models.bounded import SHRINK, compute_norms
from app.inference.private_zone.rowwise import zero_rows_unless


@dataclass(frozen=True, slots=True)
class Residuals:
    """``standard`` ``(n,)`` is e, ``scale`` ``(n,)`` is s."""

    standard: Array32
    scale: Array32


@runtime_checkable
class UnboundedTargets(Protocol):
    """A model whose residuals have no natural bound, beside :class:`app.inference.core.model.Model`."""

    @property
    def squares(self) -> bool:
        """Whether the last parameter's score is ``e^2 - m``."""

    def residuals(self, rows: Array32, theta: Array64) -> Residuals:
        """Compute the residuals of folded ``rows`` at ``theta``. Row zone."""

    def largest_residual(self, theta: Array64) -> float:
        """Bound ``|e|`` by declared facts, for rows with predictions within the declared bounds."""

    def cut_scores(self, rows: Array32, theta: Array64, transform: Array64, clip: float, cut: float) -> Array32:
        """Compute scores ``(n, D)`` in the coordinates ``transform @ score``, with residuals cut to ``+-cut``.

        A weight that depends on the design row alone bounds each to L2 norm ``clip``. Row zone.
        """


def require_residuals(model: object) -> UnboundedTargets:
    """Return ``model`` if its residuals have no natural bound.

    Raises:
        TypeError: its residuals have one.
    """
    if not isinstance(model, UnboundedTargets):
        raise TypeError("this model's residuals have a natural bound")
    return model


def weigh_scores(
    directions: Array32, residual: Array32, cut: float, clip: float, squares: tuple[Array32, Array32] | None = None
) -> Array32:
    """Compute ``w (e v + (e^2 - m) k)`` in place, with e cut to ``+-cut``.

    ``directions`` ``v`` are ``(n, D)`` with the scale, ``residual`` e is ``(n,)``. ``squares`` holds ``k`` ``(D,)`` and
    the presence ``m`` ``(n,)``. The weight w bounds the norm to ``clip``.
    """
    most, limit = np.float32(clip), np.float32(cut)
    norm = compute_norms(directions)
    bound = limit * norm
    e = np.clip(residual, -limit, limit)
    if squares is not None:
        constant, presence = squares
        bound = bound + np.maximum(limit * limit, np.float32(1)) * compute_norms(constant[None, :])[0]
    factor = np.minimum(1, most * SHRINK / bound)
    first = factor * e
    directions *= first[:, None]
    zero_rows_unless(directions, np.isfinite(first * (norm + np.abs(residual))))
    if squares is not None:
        second = factor * (np.square(e) - 1) * np.clip(presence, 0, 1)
        zero_rows_unless(second, np.isfinite(second * (norm + np.abs(residual))))
        directions += second[:, None] * constant
    return directions
