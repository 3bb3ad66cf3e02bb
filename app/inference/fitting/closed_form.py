"""Closed-form points whose posterior has a given Laplace approximation.

Only three scalars are solved numerically (:mod:`app.inference.fitting.moment_equations`).

Let ``A`` be the information, ``h`` the intercept's coefficients in the subspace and ``n = h'A h``. A tight frame ``V``
of ``A`` gives points ``x_m = V_m / sqrt(c_m)`` with ``c = (V'h)^2``. Their intercepts are exactly 1 and ``sum c_m x_m
x_m' = A``. At the target's mode, their score cancels the prior's gradient if ``V s = pull``, with ``s_m = sqrt(c_m)
r_m / v_m``.
"""

from dataclasses import dataclass, replace

import numpy as np

from app.inference.core.model import Array64
from app.inference.fitting.links import Link
from app.inference.fitting.moment_equations import Moments, PredictorSolution, solve_labelled, solve_unlabelled
from app.inference.fitting.points import Points
from app.inference.fitting.regions import Region
from app.inference.fitting.subspaces import Subspace
from app.inference.fitting.tight_frames import make_points

_SHRINKAGE = (1.0, 0.9, 0.75, 0.5, 0.25, 0.1, 0.0)
_MOST_OF_SCORES = 0.9
"""Largest share of the scores' squared length for the prior's pull; beyond it, information is raised."""
_FURTHEST_TARGETS = 0.1
"""Largest mean squared distance of targets from their predictions, in units of linear predictors, by the pull."""
_MOST_RAISES = 4


@dataclass(frozen=True, slots=True)
class ClosedForm:
    """A builder of exactly ``size`` points, close to ``region`` if there is one.

    The sum of their weights is at most ``heaviest``.
    """

    link: Link
    size: int
    heaviest: float = np.inf
    region: Region | None = None

    def points(self, subspace: Subspace, rng: np.random.Generator) -> Points | None:
        """Build points with the information and mean of ``subspace``; None if it has no intercept.

        If no points reach the mean, it is moved towards zero. ``size`` points must be able to span the subspace.
        """
        for factor in _SHRINKAGE:
            scaled = replace(subspace, mean=factor * subspace.mean, pull=factor * subspace.pull)
            built = self._build_exactly(scaled, rng)
            if built is not None and built.is_finite and float(np.sum(built.weight)) <= self.heaviest:
                return built
        return None

    def _build_exactly(self, subspace: Subspace, rng: np.random.Generator) -> Points | None:
        for _ in range(_MOST_RAISES):  # raising the information changes the moments slightly
            moments = _compute_moments(subspace)
            if moments is None:
                return None
            solution = self._solve(moments)
            if solution is None:
                return None
            room = _compute_largest_pull(solution, moments.n)
            raised = _raise_information(subspace.information, np.square(subspace.pull), room)
            if np.all(raised <= subspace.information):
                return make_points(self.link, subspace, solution, rng, self.region)
            subspace = replace(subspace, information=raised)
        return None

    def _solve(self, moments: Moments) -> PredictorSolution | None:
        if self.link.labels:
            return solve_labelled(self.link, moments, self.size)
        return solve_unlabelled(moments, self.size, self.link.required_squares(moments.n))


def _compute_moments(subspace: Subspace) -> Moments | None:
    h, information = subspace.basis[-1], subspace.information
    n = float(np.square(h) @ information)
    if not 0 < n < np.inf:
        return None
    centre = float((h * information) @ subspace.mean) / n
    spread = float(np.sqrt(information @ np.square(subspace.mean - centre * h) / n))
    return Moments(n, centre, spread, float(h @ subspace.pull), float(subspace.mean @ subspace.pull))


def _compute_largest_pull(solution: PredictorSolution, n: float) -> float:
    """Compute the largest squared length of the pull, for the intercept's information ``n``.

    Targets other than labels adapt to the pull. But along a direction with hardly any information, it would need
    targets far away, or impossible ones.
    """
    if solution.ratio is None:
        return _FURTHEST_TARGETS * n
    return _MOST_OF_SCORES * float(solution.mass @ np.square(solution.ratio))


def _raise_information(information: Array64, pulls: Array64, room: float) -> Array64:
    """Raise ``information`` until ``sum pulls / information <= room``.

    Only the directions with the largest ``pulls / information`` are raised.
    """
    needs = pulls / np.maximum(information, np.finfo(np.float64).tiny)
    if float(np.sum(needs)) <= room:
        return information
    ascending = np.sort(needs)
    before = np.concatenate(([0.0], np.cumsum(ascending)[:-1]))
    caps = (room - before) / np.arange(len(needs), 0, -1)
    cap = float(caps[np.argmax(ascending >= caps)])  # all later ones have the same cap
    return np.maximum(information, pulls / (0.99 * cap))
