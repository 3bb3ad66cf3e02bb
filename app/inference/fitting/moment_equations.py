"""Moment equations for the points' linear predictors, weights and scores.

Let ``a_m`` be the predictor of point m, ``c_m = w_m v_m`` and ``rho_m = r_m / v_m``. A posterior is exact if these five
equations hold:

    ``sum c = n``, ``sum c a = n centre``, ``sum c (a - centre)^2 = n spread^2``,
    ``sum c rho = g0``, ``sum c rho a = g1``.

``n``, the mean ``centre`` and the standard deviation ``spread`` of the predictor follow from the information, ``g0``
and ``g1`` from the prior's gradient. A tight frame then gives all other coordinates
(:mod:`app.inference.fitting.isometries`).

For labels, three kinds of points suffice: the rarer label at ``a``, the other at ``a +- delta``. The three unknowns (a,
delta, the rarer label's score) solve three equations. If that fails, both labels are put at each of ``centre +-
spread``, in closed form.
"""

from dataclasses import dataclass

import numpy as np
import scipy
from numpy.typing import NDArray

from app.inference.core.model import Array64
from app.inference.fitting.links import Link

FARTHEST = 30.0
"""Larger predictors are refused, because weights grow exponentially with them."""
_RESIDUAL = 1e-9


@dataclass(frozen=True, slots=True)
class Moments:
    """The right-hand sides of the moment equations."""

    n: float
    centre: float
    spread: float
    g0: float
    g1: float


@dataclass(frozen=True, slots=True)
class PredictorSolution:
    """Predictor ``a``, ``mass`` c and ``ratio`` rho of each point, each ``(M,)``.

    ``ratio`` None: the frame determines it, with the least squares.
    """

    a: Array64
    mass: Array64
    ratio: Array64 | None


def solve_labelled(link: Link, moments: Moments, size: int) -> PredictorSolution | None:
    """Solve the moment equations for ``size`` points with labels; None if there is no solution in range."""
    if not abs(moments.centre) + moments.spread <= FARTHEST or size < 2:
        return None
    with np.errstate(all="ignore"):
        return _solve_pairs(link, moments, size, 0.0) if moments.spread == 0 else _search(link, moments, size)


def solve_unlabelled(moments: Moments, size: int, squares: float | None = None) -> PredictorSolution | None:
    """Solve the moment equations for ``size`` points with continuous targets.

    The points have equal masses at two predictors. ``squares`` is the required ``sum c rho^2``; None: any. Returns None
    if the predictors are out of range.
    """
    if not abs(moments.centre) + moments.spread <= FARTHEST:
        return None
    upper = np.arange(size) % 2 == 0
    high = (size + 1) // 2
    low = size - high
    steps: Array64 = np.where(upper, np.sqrt(low / high), -np.sqrt(high / max(low, 1)))
    mass = np.full(size, moments.n / size)
    ratio = None if squares is None else _solve_ratios(moments, steps, squares)
    return PredictorSolution(moments.centre + moments.spread * steps, mass, ratio)


def _solve_ratios(moments: Moments, steps: Array64, squares: float) -> Array64:
    """Solve for ``rho`` with the required moments.

    ``sum c rho^2`` is as near to ``squares`` as possible.
    """
    lean = (moments.g1 - moments.centre * moments.g0) / moments.spread if moments.spread > 0 else 0.0
    ratio = (moments.g0 + lean * steps) / moments.n
    pattern = np.where(np.arange(len(steps)) // 2 % 2 == 0, 1.0, -1.0) + 0.1 * np.cos(np.arange(len(steps)))
    basis, _ = np.linalg.qr(np.column_stack((np.ones_like(steps), steps)))
    pattern -= basis @ (basis.T @ pattern)
    left = squares - moments.n * float(np.mean(np.square(ratio)))
    length = float(np.mean(np.square(pattern))) * moments.n
    return np.asarray(ratio + pattern * np.sqrt(max(left, 0.0) / length) if length > 1e-9 * moments.n else ratio)


def _search(link: Link, moments: Moments, size: int) -> PredictorSolution | None:
    solution = _solve_triple(link, moments, size) if size >= 3 else None
    return solution or (_solve_pairs(link, moments, size, moments.spread) if size >= 4 else None)


def _compute_ratio(link: Link, a: Array64, y: Array64) -> Array64:
    curve = link.curve(a, y)
    return np.asarray(curve.slope / curve.curvature)


def _solve_pairs(link: Link, moments: Moments, size: int, spread: float) -> PredictorSolution | None:
    """Put both labels at each of ``centre +- spread``."""
    steps = np.array([1.0, -1.0]) if spread > 0 else np.array([0.0])
    locations = moments.centre + spread * steps
    tilt = (moments.g1 - moments.centre * moments.g0) / (moments.n * spread) if spread > 0 else 0.0
    required = moments.g0 / moments.n + tilt * steps
    up, down = (
        _compute_ratio(link, locations, np.ones_like(locations)),
        _compute_ratio(link, locations, np.zeros_like(locations)),
    )
    share = (required - down) / (up - down)
    masses = np.concatenate((share, 1 - share)) * moments.n / len(locations)
    labels = np.repeat([1.0, 0.0], len(locations))
    return _split_masses(link, np.tile(locations, 2), labels, masses, size)


def _solve_triple(link: Link, moments: Moments, size: int) -> PredictorSolution | None:
    """Put the rarer label at one predictor and the other label at two; None without a solution."""
    up, down = np.abs(_compute_ratio(link, np.full(2, moments.centre), np.array([1.0, 0.0])))
    rarer = 1.0 if down <= up else 0.0
    sign = 1.0 if rarer else -1.0
    share = min(up, down) / (up + down)
    labels = np.array([rarer, 1 - rarer, 1 - rarer])

    def locate(unknown: Array64) -> tuple[Array64, Array64]:
        a, delta = moments.centre + moments.spread * unknown[0], moments.spread * np.exp(unknown[1])
        score = moments.n * np.exp(unknown[2])
        rest, lean = score - sign * moments.g0, sign * (a * moments.g0 - moments.g1) / delta
        locations = np.array([a, a + delta, a - delta])
        scores = np.array([score, 0.5 * (rest + lean), 0.5 * (rest - lean)])
        return locations, scores / np.abs(_compute_ratio(link, locations, labels))

    def residual(unknown: Array64) -> Array64:
        locations, masses = locate(unknown)
        steps = (locations - moments.centre) / moments.spread
        errors = np.array([masses.sum(), masses @ steps, masses @ np.square(steps)]) / moments.n - [1.0, 0.0, 1.0]
        return np.nan_to_num(errors, nan=1e6, posinf=1e6, neginf=-1e6)

    start = np.array([0.0, -0.5 * np.log(1 - share), np.log(share * max(up, down))])
    solution = scipy.optimize.root(residual, start, tol=1e-14).x
    locations, masses = locate(solution)
    if np.max(np.abs(residual(solution))) > _RESIDUAL:
        return None
    return _split_masses(link, locations, labels, masses, size)


def _split_masses(
    link: Link, locations: Array64, labels: Array64, masses: Array64, size: int
) -> PredictorSolution | None:
    """Split each kind's mass over several points of about equal masses.

    None if a mass is negative or negligible, or a predictor out of range.
    """
    total = float(np.sum(masses))
    if not np.all(masses > 1e-9 * total) or np.max(np.abs(locations)) > FARTHEST:
        return None
    counts = apportion(masses / total, size)
    kind = np.repeat(np.arange(len(masses)), counts)
    return PredictorSolution(locations[kind], (masses / counts)[kind], _compute_ratio(link, locations, labels)[kind])


def apportion(shares: Array64, size: int) -> NDArray[np.int64]:
    """Apportion ``size`` points to ``shares`` by whole numbers.

    Each share gets at least one point if ``size`` allows it. The largest share per point is as small as possible.
    """
    counts = (np.arange(len(shares)) < size).astype(np.int64)
    for _ in range(size - len(shares)):
        counts[np.argmax(shares / counts)] += 1
    return counts
