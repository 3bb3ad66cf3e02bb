"""Scores with residuals cut at one distance, for targets without a natural bound.

A score is ``e s x``: a standardised residual ``e``, a scale ``s`` that depends on the design row, and the row ``x``. An
unknown noise scale adds a coordinate ``e^2 - m``, with the presence ``m`` (1, or 0 in a null row). Conditionally
unbiased scores (Kuensch, Stefanski & Carroll, *JASA* 84, 1989) clip each residual at a distance that depends on its
row. They are unbiased only if residuals follow the model. Here all residuals are cut to ``+-c`` first. Then a weight
that depends on the design row alone bounds the score. The part beyond the cut, the excess, is one number in each row.
So its sums along few directions cost little noise (:class:`app.inference.private_zone.queries.residuals.ExcessSum`).

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
    """The residuals of n rows: ``standard`` ``(n,)`` is e, ``scale`` ``(n,)`` is s."""

    standard: Array32
    scale: Array32


@runtime_checkable
class UnboundedTargets(Protocol):
    """A :class:`app.inference.core.model.Model` whose residuals have no natural bound."""

    @property
    def squares(self) -> bool:
        """Whether the noise scale is unknown: the last parameter's score is ``e^2 - m``."""

    @property
    def redescending(self) -> bool:
        """Whether far residuals have small scores, which hardly lead to the mode."""

    def residuals(self, rows: Array32, theta: Array64) -> Residuals:
        """Compute the residuals of folded ``rows`` ``(n, row_width)`` at ``theta`` ``(D,)``. Row zone."""

    def largest_residual(self, theta: Array64) -> float:
        """Bound ``|e|`` by declared facts.

        The bound holds for rows whose predictions are within the declared bounds of the target.
        """

    def cut_scores(self, rows: Array32, theta: Array64, transform: Array64, clip: float, cut: float) -> Array32:
        """Compute bounded scores with residuals cut to ``+-cut``. Row zone.

        Where scores redescend, a wider scale replaces the cut: they grow up to ``cut``.

        Args:
            rows: folded, ``(n, row_width)``.
            theta: the parameter, ``(D,)``.
            transform: ``(k, D)``; the result has the coordinates ``transform @ score``.
            clip: the largest L2 norm of a transformed score.
            cut: in units of ``e``, above 0.

        Returns:
            The scores ``(n, k)``.
        """


def require_residuals(model: object) -> UnboundedTargets:
    """Return ``model`` as a model whose residuals have no natural bound.

    Raises:
        TypeError: its residuals have a natural bound.
    """
    if not isinstance(model, UnboundedTargets):
        raise TypeError("this model's residuals have a natural bound")
    return model


def weigh_scores(
    directions: Array32, residual: Array32, cut: float, clip: float, squares: tuple[Array32, Array32] | None = None
) -> Array32:
    """Compute bounded scores with residuals cut to ``+-c``, in place.

    They are ``w (e v + (e^2 - 1) m k)`` with the cut residual e. The weight is ``w = min(1, C / (c ||v|| + max(c^2, 1)
    ||k||))``, so the norm is at most C for any residual. A row that is not finite gives zero.

    Args:
        directions: ``v`` ``(n, D)``, with the scale s; overwritten by the result.
        residual: ``e`` before the cut, ``(n,)``.
        cut: c.
        clip: C.
        squares: ``k`` ``(D,)`` and the presence ``m`` ``(n,)``, for an unknown noise scale.
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
