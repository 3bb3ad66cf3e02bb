"""The queries of a surrogate but for matrices and scores, as a setup makes them.

Columns in wide bounds often lie far from zero for how much they vary, and then the noise in their squares hides their
variance. So means are asked first, squares around them, and the scale is that of what is left.
"""

from typing import Final

import numpy as np

from app.inference.core.model import Array64
from app.inference.methods.surrogate.moments import on_grid
from app.inference.methods.surrogate.state import Setup
from app.inference.methods.surrogate.winsorised import clip_of_tails
from app.inference.private_zone.queries import InformationMomentSum, LengthHistogram, MeanSum, MomentSum, TailSum
from app.inference.private_zone.queries.tails import LEAST_DEVIATION, MOST_DEVIATION

_MOST_OF_MOMENTS: Final = 4.0


def features(setup: Setup) -> int:
    """Design columns but for the intercept."""
    return setup.design.width - int(setup.design.intercept)


def lengths(setup: Setup, scale: float, *, squares: bool = False, centre: Array64 | float = 0.0) -> LengthHistogram:
    """Of units, or with ``squares`` of what the moments sum; a row's bounded coordinates bound the first."""
    most = (2.0 if np.ndim(centre) else 1.0) ** 2 * features(setup)
    if squares:
        most = _MOST_OF_MOMENTS * (features(setup) + 1) * setup.rows_per_unit**2
    width, intercept = setup.design.width, setup.design.intercept
    return LengthHistogram(scale, width, intercept=intercept, largest=most, squares=squares, centre=centre)


def means(setup: Setup, scale: float, clip: float) -> MeanSum:
    """The query for means alone."""
    return MeanSum(scale, setup.design.width, intercept=setup.design.intercept, clip=clip)


def moments(setup: Setup, scale: float, clip: float, centre: Array64 | float = 0.0) -> MomentSum:
    """The query for means and squares."""
    return MomentSum(scale, setup.design.width, intercept=setup.design.intercept, clip=clip, centre=centre)


def columns(setup: Setup, scale: float, theta: Array64, clip: float) -> InformationMomentSum:
    """The query for the information of single columns at ``theta``."""
    return InformationMomentSum(scale, setup.design.width, intercept=setup.design.intercept, theta=theta, clip=clip)


def tails(setup: Setup, centre: Array64, deviation: Array64) -> TailSum:
    """The query for columns' tails."""
    clip, within = clip_of_tails(features(setup)), np.clip(deviation, LEAST_DEVIATION, MOST_DEVIATION)
    return TailSum(1.0, setup.design.width, intercept=True, deviation=within, clip=clip, centre=on_grid(centre))
