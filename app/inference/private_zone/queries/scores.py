"""Sums of scores, bounded without bias or clipped."""

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import partial
from typing import ClassVar, cast

import numpy as np
from numpy.typing import NDArray

from app.inference.core.design import Design
from app.inference.core.model import Array32, Array64, Model
from app.inference.core.query import Integers
from app.inference.models.residuals import UnboundedTargets
from app.inference.private_zone.mechanisms import GRID, BadQuery, raise_clip
from app.inference.private_zone.queries.blocks import check_array, compute_clipped_sum


@dataclass(frozen=True, slots=True, eq=False)
class ScoreSum(ABC):
    """A sum of scores at ``theta`` ``(D,)`` in the coordinates ``W score``.

    ``transform`` W is ``(D, D)``; the answer is ``(D,)``. The sum over a unit of several rows is clipped to C.
    """

    theta: Array64
    transform: Array64
    clip: float
    kind: ClassVar[str]

    @property
    def length(self) -> int:
        """The number D of parameters."""
        return len(self.theta)

    def check(self, model: Model, design: Design) -> None:
        """Raise BadQuery unless all arrays are finite and of the shape of ``model``'s parameter."""
        check_array(self.theta, (model.dimension,), "theta")
        check_array(self.transform, (self.length, self.length), "transform")
        raise_clip(self.clip)

    @abstractmethod
    def bound_rows(self, model: Model, rows: Array32) -> Array32:
        """Compute the contributions ``(n, D)`` of single rows ``(n, row_width)``. Row zone."""

    def sum(self, model: Model, rows: Array32, present: NDArray[np.bool_], rows_per_unit: int) -> Integers:
        """Compute the sum as :meth:`app.inference.core.query.Query.sum`."""
        clip, bound = raise_clip(self.clip), partial(self.bound_rows, model)
        return compute_clipped_sum(bound, rows, present, rows_per_unit, length=self.length, clip=clip)

    def scales(self, sigma: float) -> float:
        """``sigma K`` for every coordinate."""
        return sigma * GRID

    def answer(self, noised: Integers) -> Array64:
        """Convert to ``(D,)`` numbers in the transformed coordinates."""
        return noised.astype(np.float64) * (raise_clip(self.clip) / GRID)


@dataclass(frozen=True, slots=True, eq=False)
class BoundedScoreSum(ScoreSum):
    """The sum ``sum_b w_b W score(x_b)`` of conditionally unbiased bounded scores.

    The weight ``w_b`` bounds the norm by C. It does not depend on the target, so the mean is zero if ``theta`` is the
    true parameter (Kuensch, Stefanski & Carroll, *JASA* 84, 1989).
    """

    kind: ClassVar[str] = "bounded_score_sum"

    def bound_rows(self, model: Model, rows: Array32) -> Array32:
        """Compute the contributions of single rows."""
        return model.bounded_scores(rows, self.theta, self.transform, raise_clip(self.clip))


@dataclass(frozen=True, slots=True, eq=False)
class CutScoreSum(ScoreSum):
    """The sum ``sum_b w_b W score(x_b)`` of scores with residuals cut to ``+-cut``.

    The weight ``w_b`` depends on the design row alone and bounds the norm by C. The mean is biased by the part of
    residuals beyond the cut, which :class:`app.inference.private_zone.queries.residuals.ExcessSum` measures. Scores
    that redescend have a wider scale instead, and are clipped to C. The model has
    :class:`app.inference.models.residuals.UnboundedTargets`.
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

    def bound_rows(self, model: Model, rows: Array32) -> Array32:
        """Compute the contributions of single rows."""
        cut_scores = cast(UnboundedTargets, model).cut_scores
        return cut_scores(rows, self.theta, self.transform, raise_clip(self.clip), self.cut)


@dataclass(frozen=True, slots=True, eq=False)
class ClippedScoreSum(ScoreSum):
    """The sum ``sum_b clip_C(W score(x_b))`` of clipped scores; it is biased if scores exceed C."""

    kind: ClassVar[str] = "clipped_score_sum"

    def bound_rows(self, model: Model, rows: Array32) -> Array32:
        """Compute the scores of single rows; a unit's sum is clipped."""
        scores: Array32 = (self.transform.astype(np.float32) @ model.scores(rows, self.theta).T).T
        return scores
