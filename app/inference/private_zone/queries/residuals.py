"""A histogram of residuals, and sums of their parts beyond a cut.

They are for models whose targets have no natural bound. Both have few numbers, so they cost little noise.
"""

from dataclasses import dataclass
from typing import ClassVar, Final

import numpy as np
from numpy.typing import NDArray

from app.inference.core.design import Design
from app.inference.core.model import Array32, Array64, Model
from app.inference.core.query import Integers
from app.inference.models.residuals import UnboundedTargets
from app.inference.private_zone.mechanisms import GRID, BadQuery, raise_clip
from app.inference.private_zone.queries.blocks import check_array, compute_clipped_sum

EDGES: Final = 2.0 ** (0.5 * np.arange(19))
"""Lower edges of the bins of ``|e|``, in deviations: from 1 to 512, with the ratio ``sqrt(2)``. The last is open."""


@dataclass(frozen=True, slots=True, eq=False)
class ResidualHistogram:
    """A histogram of standardised residuals beyond 1 at ``theta`` ``(D,)``.

    The answer is ``(2 B,)`` for B edges: counts of negative residuals, then of positive ones. The counts of a unit are
    clipped to L2 norm 1.
    """

    theta: Array64
    kind: ClassVar[str] = "residual_histogram"

    @property
    def length(self) -> int:
        """Two counts for each edge."""
        return 2 * len(EDGES)

    def check(self, model: Model, design: Design) -> None:
        """Raise BadQuery unless ``theta`` fits and the model has unbounded residuals."""
        check_array(self.theta, (model.dimension,), "theta")
        _check_model(model)

    def sum(self, model: Model, rows: Array32, present: NDArray[np.bool_], rows_per_unit: int) -> Integers:
        """Compute the sum as :meth:`app.inference.core.query.Query.sum`."""
        assert isinstance(model, UnboundedTargets)

        def count(block: Array32) -> Array32:
            e = model.residuals(block, self.theta).standard
            return _indicate(e)

        return compute_clipped_sum(count, rows, present, rows_per_unit, length=self.length, clip=1.0)

    def scales(self, sigma: float) -> float:
        """``sigma K`` for every count."""
        return sigma * GRID

    def answer(self, noised: Integers) -> Array64:
        """Convert to counts."""
        return noised.astype(np.float64) / GRID


def _indicate(e: Array32) -> Array32:
    """Compute indicators ``(n, 2 B)`` of the bins of residuals ``(n,)``. Row zone; not finite gives zero."""
    size = np.abs(e)[:, None]
    edges = EDGES.astype(np.float32)
    above = (size >= edges) & np.isfinite(size)
    beyond = np.concatenate([above[:, 1:], np.zeros((len(e), 1), dtype=np.bool_)], axis=1)
    within = above & ~beyond
    negative = (e < 0)[:, None]
    found: Array32 = np.concatenate([within & negative, within & ~negative], axis=1).astype(np.float32)
    return found


@dataclass(frozen=True, slots=True, eq=False)
class ExcessSum:
    """The sum over rows of the parts of residuals beyond a cut.

    The sums are ``a s``, ``a s t`` and ``q b``. With the residual ``e`` cut to ``+-cut``, ``a = e - clip(e)`` and
    ``b = e^2 - clip(e)^2``. ``s`` is the model's scale over ``scale``. ``t`` is the first linear predictor at ``theta``
    ``(D,)``, less ``centre``, over ``spread``, clipped to +-1. ``q`` is ``squares``; if it is 0, there is no third sum.
    A unit's contribution is clipped to the L2 norm ``clip``. The answer is ``(3,)`` or ``(2,)``.
    """

    theta: Array64
    cut: float
    scale: float
    centre: float
    spread: float
    squares: float
    clip: float
    kind: ClassVar[str] = "excess_sum"

    @property
    def length(self) -> int:
        """Two sums, and one of squares if ``squares`` is positive."""
        return 2 + int(self.squares > 0)

    def check(self, model: Model, design: Design) -> None:
        """Raise BadQuery unless all numbers are in range, and the model has unbounded residuals."""
        check_array(self.theta, (model.dimension,), "theta")
        check_array(np.array([self.cut, self.scale, self.centre, self.spread, self.squares]), (5,), "excess")
        if min(self.cut, self.scale, self.spread) <= 0 or self.squares < 0:
            raise BadQuery("a cut, a scale and a spread must be positive, and a weight of squares not negative")
        raise_clip(self.clip)
        _check_model(model)

    def sum(self, model: Model, rows: Array32, present: NDArray[np.bool_], rows_per_unit: int) -> Integers:
        """Compute the sum as :meth:`app.inference.core.query.Query.sum`."""
        assert isinstance(model, UnboundedTargets)
        with np.errstate(all="ignore"):
            cut, single = np.float32(self.cut), self.theta.astype(np.float32)

        def exceed(block: Array32) -> Array32:
            found = model.residuals(block, self.theta)
            x = model.features(block)
            cut_off = np.clip(found.standard, -cut, cut)
            excess = (found.standard - cut_off) * found.scale / np.float32(self.scale)
            t = (x @ single[: x.shape[1]] - np.float32(self.centre)) / np.float32(self.spread)
            parts = [excess, excess * np.clip(t, -1, 1)]
            if self.squares:
                parts.append((np.square(found.standard) - np.square(cut_off)) * np.float32(self.squares))
            values: Array32 = np.column_stack(parts).astype(np.float32, copy=False)
            return values

        clip = raise_clip(self.clip)
        return compute_clipped_sum(exceed, rows, present, rows_per_unit, length=self.length, clip=clip)

    def scales(self, sigma: float) -> float:
        """``sigma K`` for every value."""
        return sigma * GRID

    def answer(self, noised: Integers) -> Array64:
        """Convert to sums, ``(2,)`` or ``(3,)``."""
        return noised.astype(np.float64) * (raise_clip(self.clip) / GRID)


def _check_model(model: Model) -> None:
    if not isinstance(model, UnboundedTargets):
        raise BadQuery("this query needs a model with unbounded residuals")
