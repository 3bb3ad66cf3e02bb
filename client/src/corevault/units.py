"""Coefficients in the units of the declared table.

The design maps declared bounds to −1 and 1, so coefficients of different columns can be compared. In original units, a
coefficient is the change of the linear predictor for one more unit of its column. The change is linear, so a normal
distribution remains normal.
"""

from collections.abc import Mapping
from typing import Final

import numpy as np
from numpy.typing import NDArray

from corevault._transforms import KINDS
from corevault.errors import InvalidArgument
from corevault.likelihoods import REFERENCE_NOISE
from corevault.prediction import Outcome

Array = NDArray[np.float64]
RATIOS: Final[Mapping[str, str]] = {
    "logistic-regression": "odds_ratio",
    "multinomial-logistic": "odds_ratio",
    "poisson-regression": "rate_ratio",
    "negative-binomial-regression": "rate_ratio",
}
"""The meaning of an exponentiated coefficient, by family."""


def undo_scaling(outcome: Outcome) -> tuple[Array, Array]:
    """``(A, b)`` with ``A theta + b`` the parameters in original units; shapes ``(D, D)`` and ``(D,)``.

    Coefficients of terms stay in the design's coordinates, because terms have no units of the table. Raises
    ``InvalidArgument`` for a design column of an unknown kind.
    """
    if outcome.family == "gaussian-mean":
        scales = [_affine(outcome, place) for place in range(len(outcome.columns))]
        return np.diag(np.array([scale for _, scale in scales])), np.array([center for center, _ in scales])
    block: Array = outcome.half * _undo_block(outcome)
    shift = np.zeros(len(outcome.columns))
    if outcome.center:
        shift[_find_intercept(outcome)] = outcome.center
    predictors = max(len(outcome.classes) - 1, 1)
    matrix: Array = np.kron(np.eye(predictors), block).astype(np.float64)
    offset = np.tile(shift, predictors)
    if outcome.has_unknown_noise:
        matrix = np.block([[matrix, np.zeros((len(matrix), 1))], [np.zeros((1, len(matrix))), np.ones((1, 1))]])
        offset = np.append(offset, np.log(REFERENCE_NOISE * outcome.half))
    return matrix, offset


def _undo_block(outcome: Outcome) -> Array:
    """The matrix ``(p, p)`` of one linear predictor."""
    matrix = np.eye(len(outcome.columns))
    for place, column in enumerate(outcome.design):
        kind = column.transform.get("kind")
        if kind not in {"constant", *KINDS}:
            raise InvalidArgument(
                f"The design column {column.name!r} has no units of the table; see core.posterior().summary()."
            )
        if kind == "affine":
            center, scale = _affine(outcome, place)
            matrix[place, place] = 1.0 / scale
            if center:
                matrix[_find_intercept(outcome), place] = -center / scale
        elif kind == "constant":
            matrix[place, place] = float(column.transform["value"])
    return matrix


def _affine(outcome: Outcome, place: int) -> tuple[float, float]:
    transform = outcome.design[place].transform
    if transform.get("kind") != "affine":
        raise InvalidArgument(f"The design column {outcome.columns[place]!r} has no units that could be undone.")
    return float(transform["center"]), float(transform["scale"])


def _find_intercept(outcome: Outcome) -> int:
    """The place of the constant column."""
    for place, column in enumerate(outcome.design):
        if column.transform.get("kind") == "constant":
            return place
    raise InvalidArgument("The design has no intercept, so the scaling of its columns cannot be undone.")
