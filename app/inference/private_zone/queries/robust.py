"""Sums under beta-likelihoods (:mod:`app.inference.models.robust`).

The oracle's model is that of the plan, so each query states its ``beta``, above 0 and at most 1. Contributions are
clipped and rounded as without ``beta``.
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from app.errors import InvalidRequest
from app.inference.core.design import Design
from app.inference.core.model import Array32, Model
from app.inference.core.query import Integers
from app.inference.models.robust import make_robust
from app.inference.private_zone.mechanisms import BadQuery
from app.inference.private_zone.queries.information import InformationSum
from app.inference.private_zone.queries.potentials import PotentialSum
from app.inference.private_zone.queries.scores import BoundedScoreSum


@dataclass(frozen=True, slots=True, eq=False)
class RobustPotentialSum(PotentialSum):
    """The sum of clipped, centred beta-potentials."""

    beta: float = 1.0
    kind: ClassVar[str] = "robust_potential_sum"

    def check(self, model: Model, design: Design) -> None:
        """Check the draws, and that the model has a likelihood of this ``beta``."""
        PotentialSum.check(self, model, design)
        _check_beta(model, self.beta)

    def sum(self, model: Model, rows: Array32, present: NDArray[np.bool_], rows_per_unit: int) -> Integers:
        """Compute the sum as :meth:`app.inference.core.query.Query.sum`."""
        return PotentialSum.sum(self, make_robust(model, self.beta), rows, present, rows_per_unit)


@dataclass(frozen=True, slots=True, eq=False)
class RobustScoreSum(BoundedScoreSum):
    """The sum of bounded beta-scores."""

    beta: float = 1.0
    kind: ClassVar[str] = "robust_score_sum"

    def check(self, model: Model, design: Design) -> None:
        """Check the arrays, and that the model has a likelihood of this ``beta``."""
        BoundedScoreSum.check(self, model, design)
        _check_beta(model, self.beta)

    def sum(self, model: Model, rows: Array32, present: NDArray[np.bool_], rows_per_unit: int) -> Integers:
        """Compute the sum as :meth:`app.inference.core.query.Query.sum`."""
        return BoundedScoreSum.sum(self, make_robust(model, self.beta), rows, present, rows_per_unit)


@dataclass(frozen=True, slots=True, eq=False)
class RobustInformationSum(InformationSum):
    """The sum of clipped information matrices of a beta-likelihood."""

    beta: float = 1.0
    kind: ClassVar[str] = "robust_information_sum"

    def check(self, model: Model, design: Design) -> None:
        """Check the arrays, and that the model has a likelihood of this ``beta``."""
        InformationSum.check(self, model, design)
        _check_beta(model, self.beta)

    def sum(self, model: Model, rows: Array32, present: NDArray[np.bool_], rows_per_unit: int) -> Integers:
        """Compute the upper triangle, row by row, as :meth:`app.inference.core.query.Query.sum`."""
        return InformationSum.sum(self, make_robust(model, self.beta), rows, present, rows_per_unit)


def _check_beta(model: Model, beta: float) -> None:
    if not 0 < beta <= 1:
        raise BadQuery("beta must be above 0 and at most 1")
    try:
        make_robust(model, beta)
    except InvalidRequest:
        raise BadQuery("this query needs a model with a beta-likelihood") from None
