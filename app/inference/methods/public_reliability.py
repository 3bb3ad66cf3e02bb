"""Reliability of releases of public tables.

A method for public tables reads the rows. So the release can be compared with the posterior of the whole table: one
more pass gives the gradient and the information at the points' mode, and a Newton step from there.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np

from app.inference.core import reasons
from app.inference.core.model import Array64, Model
from app.inference.core.problems import Problem
from app.inference.core.release import CALIBRATED, Grade, Reliability, judge
from app.inference.fitting.mode import compute_distance, find_mode
from app.inference.fitting.points import Points as WeightedPoints
from app.inference.fitting.target import Target, compute_inverse_root
from app.inference.methods.psvi.residuals import Points
from app.inference.methods.public_table import PublicTable
from app.inference.post.diagnostics import MOST_FIT, compute_bearable_noise

_ROWS: Final = 4096
"""Rows that are expanded at once."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """The posterior of the points against that of the table.

    Attributes:
        kl: the divergence in nats.
        shift: the distance of the modes in nats.
        learned: the distance in nats between the prior's mean and the table's mode.
    """

    kl: float
    shift: float
    learned: float


_NO_MODE: Final = Comparison(np.inf, np.inf, 0.0)


@np.errstate(all="ignore")
def compare_with_table(
    problem: Problem, table: PublicTable, points: Points, of_table: Model | None = None
) -> Comparison:
    """Compare the posteriors; infinite if one of them has no mode, or if a Newton step does not connect them.

    The table's posterior may be that of another model ``of_table`` of the same design and parameter.
    """
    model, prior = problem.model, problem.prior
    weighted = WeightedPoints(points.u, points.y, points.weights)
    mode = find_mode(model, weighted, prior, prior.mean)
    if mode is None:
        return _NO_MODE
    gradient, information = _expand(problem._replace(model=of_table or model), table, mode)
    root = compute_inverse_root(information)
    if root is None:
        return _NO_MODE
    exact = Target(mode + root.T @ (root @ gradient), information)
    learned = exact.mean - prior.mean
    return Comparison(
        kl=compute_distance(model, weighted, prior, exact),
        shift=0.5 * float(np.sum(np.square(root @ gradient))),
        learned=0.5 * float(learned @ information @ learned),
    )


def judge_comparison(comparison: Comparison) -> Reliability:
    """Judge a release without noise: it is calibrated if its points represent the table's posterior."""
    if comparison.kl <= MOST_FIT:
        return CALIBRATED
    is_near = comparison.shift <= compute_bearable_noise(comparison.learned)
    return judge([(reasons.POINTS_DIFFER, Grade.CENTRE_ONLY if is_near else Grade.NOT_USABLE)])


def _expand(problem: Problem, table: PublicTable, theta: Array64) -> tuple[Array64, Array64]:
    """Compute gradient ``(D,)`` and information ``(D, D)`` of the table's log posterior at ``theta``."""
    model, prior = problem.model, problem.prior
    gradient, information = prior.gradient(theta), prior.precision(theta).copy()
    for x, y in table.chunks():
        for start in range(0, len(x), _ROWS):
            part = slice(start, start + _ROWS)
            rows = model.fold(x[part].astype(np.float64), y[part])
            expansion = model.expand(rows, np.ones(len(rows)), theta)
            gradient = gradient + expansion.gradient
            information += expansion.information
    return gradient, information
