"""Exact beliefs about rows of a case, without any query."""

from typing import Final

import numpy as np

from app.inference.core.model import Array64
from app.inference.methods.surrogate.information import Frame, make_frame
from app.inference.methods.surrogate.rows import Rows
from support.surrogate_tables import Case

COUNT: Final = 5000.0
"""The number of rows."""


def draw_rows(case: Case, seed: int = 0, *, count: float = COUNT, draws: int = 600) -> Rows:
    """Draw a belief about ``count`` rows with normal columns."""
    rng = np.random.default_rng(seed)
    standard = rng.standard_normal((draws, case.features))
    standard = (standard - standard.mean(axis=0)) / standard.std(axis=0)
    x = np.column_stack([0.4 * standard, np.ones(draws)])
    return Rows(case.problem.model, count, standard, x, intercept=True, per_unit=1.0)


def make_case_frame(case: Case, rows: Rows, theta: Array64) -> Frame:
    """Make the frame of the rows' information and the prior's precision at ``theta``."""
    prior = case.problem.prior
    return make_frame(rows, theta, rows.information(theta) + prior.precision(theta), prior)
