"""Clipped sums of centred potentials, group by group."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from app.errors import InvalidRequest
from app.inference.core.grouping import GroupedDesign, GroupedModel
from app.inference.core.model import Array32, Array64, Model
from app.inference.core.query import Integers
from app.inference.models.robust import make_robust
from app.inference.private_zone.mechanisms import GRID, BadQuery, clip_to_grid, raise_clip
from app.inference.private_zone.queries.blocks import check_array, iterate_unit_blocks


@dataclass(frozen=True, slots=True, eq=False)
class GroupPotentialSum:
    """The sums of centred potentials over the rows of each group; the answer is ``(G S,)``, group by group.

    A row contributes its log-likelihoods at ``draws`` ``(S, D)``, minus their mean over the draws, to the block of its
    group. With ``beta`` above 0 they are beta-potentials. All blocks of a unit are clipped together to norm ``clip``.
    So the sensitivity is ``clip`` for any number of groups, and for a person whose rows are in several of them.
    """

    draws: Array64
    clip: float
    groups: int
    beta: float = 0.0
    kind: ClassVar[str] = "group_potential_sum"

    @property
    def length(self) -> int:
        """One value for each group and draw."""
        return self.groups * len(self.draws)

    def check(self, model: GroupedModel, design: GroupedDesign) -> None:
        """Raise BadQuery for draws that are not finite parameters, or another number of groups."""
        if not isinstance(model, GroupedModel) or model.groups != self.groups:
            raise BadQuery("this query needs rows with their groups, of the planned number")
        check_array(self.draws, (len(self.draws), model.model.dimension), "draws")
        raise_clip(self.clip)
        _decorate(model.model, self.beta)

    def sum(self, model: GroupedModel, rows: Array32, present: NDArray[np.bool_], rows_per_unit: int) -> Integers:
        """Compute the sum as :meth:`app.inference.core.query.Query.sum`."""
        inner, clip, count = _decorate(model.model, self.beta), raise_clip(self.clip), len(self.draws)
        total = np.zeros((self.groups, count), dtype=np.int64)
        with np.errstate(all="ignore"):
            draws = self.draws.astype(np.float32, order="F")
            for block, there in iterate_unit_blocks(rows, present, rows_per_unit, max(count, self.groups)):
                potentials = inner.log_likelihood(np.ascontiguousarray(block[:, :-1]), draws)[: len(there)]
                potentials -= potentials.mean(axis=1, keepdims=True)
                members = _find_members(block[: len(there), -1], self.groups)
                total += _add_units(potentials, members, there.reshape(-1, rows_per_unit), clip)
        return total.ravel()

    def scales(self, sigma: float) -> float:
        """``sigma K`` for every value."""
        return sigma * GRID

    def answer(self, noised: Integers) -> Array64:
        """Convert to ``(G S,)`` numbers in nats."""
        return noised.astype(np.float64) * (raise_clip(self.clip) / GRID)


def _decorate(model: Model, beta: float) -> Model:
    if not beta:
        return model
    if not 0 < beta <= 1:
        raise BadQuery("beta must be 0, or above 0 and at most 1")
    try:
        return make_robust(model, beta)
    except InvalidRequest:
        raise BadQuery("this query needs a model with a beta-likelihood") from None


def _find_members(codes: Array32, groups: int) -> Array32:
    """Mark the group of each row, ``(n, G)``. Every row takes the same steps, and one of no group marks none."""
    marks: Array32 = (codes[:, None] == np.arange(groups, dtype=np.float32)).astype(np.float32)
    return marks


def _add_units(potentials: Array32, members: Array32, present: NDArray[np.bool_], clip: float) -> Integers:
    """Sum the clipped contributions of units, ``(G, S)``.

    ``potentials`` ``(n r, S)`` and ``members`` ``(n r, G)`` belong to rows; ``present`` is ``(n, r)``. The rows of a
    unit are added up by group, and its sums are clipped and rounded together. There are as many sums as rows, or as
    groups if these are fewer. With a sum for each row, the first row of a group holds its sum, and others hold zero.
    """
    units, rows = present.shape
    if rows == 1:
        return _scatter(members, clip_to_grid(potentials, present[:, 0], clip))
    potentials *= present.reshape(-1, 1)
    each = members.reshape(units, rows, -1)
    if rows < each.shape[2]:
        same = each @ each.transpose(0, 2, 1)
        is_first = np.tril(same, -1).sum(axis=2, keepdims=True) == 0
        mixing, places = same * is_first, members
    else:
        mixing = each.transpose(0, 2, 1)
        places = np.tile(np.eye(each.shape[2], dtype=np.float32), (units, 1))
    sums: Array32 = mixing @ potentials.reshape(units, rows, -1)
    whole = clip_to_grid(sums.reshape(units, -1), np.any(present, axis=1), clip)
    return _scatter(places, whole.reshape(len(places), -1))


def _scatter(places: Array32, whole: Array32) -> Integers:
    """Add integer rows ``(m, S)`` at their places ``(m, G)``. Double precision holds the sums exactly."""
    sums: Array64 = places.T.astype(np.float64) @ whole.astype(np.float64)
    return sums.astype(np.int64)
