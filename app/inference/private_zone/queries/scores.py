"""Sums of scores, bounded without bias or clipped."""

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from app.inference.core.design import Design
from app.inference.core.model import Array32, Array64, Model
from app.inference.core.query import Integers
from app.inference.models.residuals import UnboundedTargets
from app.inference.private_zone.mechanisms import GRID, BadQuery, raise_clip
from app.inference.private_zone.queries.blocks import check_array, compute_clipped_sum


@dataclass(frozen=True, slots=True, eq=False)
class _ScoreSum:
    """A sum of scores at ``theta`` ``(D,)`` in the coordinates ``W score``.

    ``transform`` W is ``(D, D)``; the answer is ``(D,)``.
    """

    theta: Array64
    transform: Array64
    clip: float

    @property
    def length(self) -> int:
        """The number D of parameters."""
        return len(self.theta)

    def check(self, model: Model, design: Design) -> None:
        """Raise BadQuery unless all arrays are finite and of the shape of ``model``'s parameter."""
        check_array(self.theta, (model.dimension,), "theta")
        check_array(self.transform, (self.length, self.length), "transform")
        raise_clip(self.clip)

    def scales(self, sigma: float) -> float:
        """``sigma K`` for every coordinate."""
        return sigma * GRID

    def answer(self, noised: Integers) -> Array64:
        """Convert to ``(D,)`` numbers in the transformed coordinates."""
        return noised.astype(np.float64) * (raise_clip(self.clip) / GRID)


@dataclass(frozen=True, slots=True, eq=False)
class BoundedScoreSum(_ScoreSum):
    """The sum ``sum_b w_b W score(x_b)`` of conditionally unbiased bounded scores.

    The weight ``w_b`` bounds the norm by C. It does not depend on the target, so the mean is zero if ``theta`` is the
    true parameter (Kuensch, Stefanski & Carroll, *JASA* 84, 1989). The sum over a unit of several rows is clipped to C
    in addition.
    """

    kind: ClassVar[str] = "bounded_score_sum"

    def sum(self, model: Model, rows: Array32, present: NDArray[np.bool_], rows_per_unit: int) -> Integers:
        """Compute the sum as :meth:`app.inference.core.query.Query.sum`."""
        clip = raise_clip(self.clip)

        def bound_scores(block: Array32) -> Array32:
            return model.bounded_scores(block, self.theta, self.transform, clip)

        return compute_clipped_sum(bound_scores, rows, present, rows_per_unit, length=self.length, clip=clip)


@dataclass(frozen=True, slots=True, eq=False)
class CutScoreSum(_ScoreSum):
    """The sum ``sum_b w_b W score(x_b)`` of scores with residuals cut to ``+-cut``.

    The weight ``w_b`` depends on the design row alone and bounds the norm by C. The mean is biased by the part of
    residuals beyond the cut, which :class:`app.inference.private_zone.queries.residuals.ExcessSum` measures. Scores
    that redescend have a wider scale instead, and are clipped to C. The sum over a unit of several rows is clipped to C
    in addition. The model has :class:`app.inference.models.residuals.UnboundedTargets`.
    """

    cut: float
    kind: ClassVar[str] = "cut_score_sum"

    def check(self, model: Model, design: Design) -> None:
        """Check the arrays and the cut, and that the model has unbounded residuals."""
        super(CutScoreSum, self).check(model, design)
        if not (math.isfinite(self.cut) and self.cut > 0):
            raise BadQuery("a cut must be positive and finite")
        if not isinstance(model, UnboundedTargets):
            raise BadQuery("this query needs a model with unbounded residuals")

    def sum(self, model: Model, rows: Array32, present: NDArray[np.bool_], rows_per_unit: int) -> Integers:
        """Compute the sum as :meth:`app.inference.core.query.Query.sum`."""
        clip = raise_clip(self.clip)
        assert isinstance(model, UnboundedTargets)
        cut_scores = model.cut_scores

        def bound_scores(block: Array32) -> Array32:
            return cut_scores(block, self.theta, self.transform, clip, self.cut)

        return compute_clipped_sum(bound_scores, rows, present, rows_per_unit, length=self.length, clip=clip)


@dataclass(frozen=True, slots=True, eq=False)
class ClippedScoreSum(_ScoreSum):
    """The sum ``sum_b clip_C(W score(x_b))`` of clipped scores; it is biased if scores exceed C."""

    kind: ClassVar[str] = "clipped_score_sum"

    def sum(self, model: Model, rows: Array32, present: NDArray[np.bool_], rows_per_unit: int) -> Integers:
        """Compute the sum as :meth:`app.inference.core.query.Query.sum`."""
        with np.errstate(all="ignore"):
            transform = self.transform.astype(np.float32)

        def transform_scores(block: Array32) -> Array32:
            scores: Array32 = (transform @ model.scores(block, self.theta).T).T
            return scores

        clip = raise_clip(self.clip)
        return compute_clipped_sum(transform_scores, rows, present, rows_per_unit, length=self.length, clip=clip)
