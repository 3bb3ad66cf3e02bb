"""The posterior's mode from noised scores at several parameters, by generalised least squares.

Parameters are measured from the prior's mean here. At the mode ``theta``, the scores of all rows sum to the prior's
pull ``P theta``. So a score with weights w, asked at ``theta_k``, has the mean ``A_k (theta - theta_k) + J_w J^-1 P
theta``. ``A_k`` is the secant, the mean weighted information between ``theta_k`` and ``theta``. J and ``J_w`` are the
information without and with weights. Each score thus gives an estimate of the mode.

The errors of these estimates have three parts. Noise is independent from score to score. The part that weights remove
from scores is common to scores with similar weights. The secant's error is linear in the distance, with random
coefficients. Its size, a share, is estimated by restricted maximum likelihood (Patterson & Thompson, *Biometrika* 58,
1971). The average with these covariances is the best linear unbiased one. It is shrunk towards the prior's mean.

All of it is done along one axis at a time, in coordinates where the belief's information is the identity. So a problem
has K scores instead of K D numbers.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from app.inference.core.linear_algebra import invert, symmetric
from app.inference.core.model import Array32, Array64
from app.inference.core.priors import Prior
from app.inference.methods.surrogate.excess import Excess
from app.inference.methods.surrogate.information import Frame
from app.inference.methods.surrogate.rows import Rows
from app.inference.methods.surrogate.tuning import TUNING

_LEAST_PRECISION = 1e-12
"""Least eigenvalue of the prior's precision, in posterior precisions."""
_FURTHEST = 1e100
"""Largest estimate in deviations of the prior: squares are finite."""
_SOFT_PRIOR = 0.03
"""Part of the prior's precision that keeps estimates finite in directions without information."""
_LEAST_PART = 0.02
"""Least derivative of the bounded score of a scale, over that of the weighted score; its inverse is the largest."""
_BENT = 0.3
"""Squared relative error of the simulated part of a mean score."""
_JITTER = 1e-9
"""Relative size of the diagonal that makes covariances invertible."""
_SHARE_DEVIATION = 4.0
"""Standard deviation of the logarithm of a share before answers; a few scores hardly show it."""
_USUAL = 4.0
"""Number of squares of size 1 that are added to the late scores, because a few squares vary much."""


@dataclass(frozen=True, slots=True, eq=False)
class Score:
    """An answered score: ``gradient`` ``(D,)`` at ``theta`` ``(D,)``.

    ``noise`` ``(D, D)`` is its covariance by noise and subsampling. ``kept`` ``(M,)`` is the part of each draw's score
    that its bound left, and ``root`` ``(M,)`` the root of the part of its square; None: ``kept``. ``bound`` computes
    the bounded scores of folded rows; None: they have no bound. ``cut`` is where residuals are cut, in deviations.
    """

    theta: Array64
    gradient: Array64
    noise: Array64
    kept: Array64
    root: Array64 | None = None
    bound: Callable[[Array32], Array64] | None = None
    cut: float | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Mode:
    """The estimate of the posterior's mode.

    ``mean`` ``(D,)`` is the estimate and ``covariance`` ``(D, D)`` its error, both after shrinkage. ``surprise`` is the
    mean square of the standardised residuals of the later half of the scores; 1 is expected. ``reached``: the longest
    step did not limit the last sweep.
    """

    mean: Array64
    covariance: Array64
    surprise: float
    reached: bool = True


def find_mode(
    rows: Rows,
    frame: Frame,
    theta: Array64,
    prior: Prior,
    scores: Sequence[Score],
    *,
    excess: Excess | None = None,
    vague: float = 0.0,
) -> Mode:
    """Find the mode by all ``scores``.

    The secants depend on the mode, so a few sweeps alternate between them. Each sweep moves by at most
    :func:`compute_longest_step`.

    Args:
        rows: the belief about rows.
        frame: the belief at ``theta``.
        theta: the current parameter, where the search starts, ``(D,)``.
        prior: on the parameters.
        scores: at least one.
        excess: the part of residuals beyond the present cut; it is added back to the scores with that cut.
        vague: the relative variance of the belief's information.
    """
    longest = compute_longest_step(rows, theta)
    # The error of the excess is common to all estimates, so it is added once, through the inverse information.
    goal, mode, common = theta, None, np.zeros((len(theta), len(theta)))
    if excess is not None:
        added = [excess.gradient(rows, score.kept * (score.cut == excess.query.cut)) for score in scores]
        scores = [replace(score, gradient=score.gradient + each[0]) for score, each in zip(scores, added, strict=True)]
        common = frame.forth.T @ frame.forth @ added[-1][1] @ frame.forth.T @ frame.forth
    for _ in range(TUNING.sweeps):
        estimates = _convert(rows, frame, goal, prior, scores)
        mode = _combine(rows, frame, goal, estimates, scores, vague=vague)
        step = prior.mean + mode.mean - goal
        change = float(np.sqrt(np.mean(rows.change(step) ** 2)))
        goal = goal + step * min(1.0, longest / max(change, 1e-12))
    assert mode is not None
    return Mode(goal, mode.covariance + common, mode.surprise, reached=change <= longest)


def compute_longest_step(rows: Rows, theta: Array64) -> float:
    """Compute the longest step, as a root mean square change of linear predictors.

    It is longer where the linear predictors at ``theta`` ``(D,)`` are already large.
    """
    return max(TUNING.step, TUNING.step_of_predictors * float(np.sqrt(np.mean(rows.change(theta) ** 2))))


@dataclass(frozen=True, slots=True, eq=False)
class _Estimates:
    """Estimates by K scores of the mode's distance from the prior's mean.

    They are along ``axes`` ``(D, D)``, orthogonal in the frame's coordinates. ``means`` ``(K, D)`` are the estimates.
    ``noise`` ``(K, D)`` are their variances by noise, and ``lost`` ``(D, K, K)`` the covariances by weights. ``prior``
    ``(D, D)`` is the prior's precision along the axes.
    """

    axes: Array64
    means: Array64
    noise: Array64
    lost: Array64
    prior: Array64


def _convert(rows: Rows, frame: Frame, goal: Array64, prior: Prior, scores: Sequence[Score]) -> _Estimates:
    """Solve the equation of each score's mean for the mode, with secants to ``goal``.

    The axes are the eigenvectors of the summed precisions, so the estimates' errors are nearly uncorrelated along them.
    """
    size, forth, identity = len(goal), frame.forth, np.eye(len(goal))
    precision = forth @ prior.precision(goal) @ forth.T
    to_white = invert(frame.own)
    soft = _SOFT_PRIOR * frame.prior

    there = np.asarray(rows.factors(goal) @ to_white.T)
    inverse = invert(rows.gram(there) + soft)
    inverse_slopes, means, noises = [], [], []
    simulated = None if rows.noise is None else rows.simulate(goal)
    for score in scores:
        rest, secant = np.zeros(size), rows.gram(rows.path_factors(score.theta, goal) @ to_white.T, score.kept)
        if simulated is not None:
            part, rest[-1] = _simulate_scale(rows, goal, score, simulated)
            secant[-1] *= part
        secant += soft
        # The draws give the ratio of the secant to the information; the belief, the information: I - precision.
        slope = secant @ inverse @ (identity - precision)
        pulled = (rows.gram(there, score.kept) + soft) @ inverse @ precision
        back = invert(slope + pulled)
        means.append(back @ (forth @ (score.gradient - rest) + slope @ (frame.back.T @ (score.theta - prior.mean))))
        inverse_slopes.append(back)
        noises.append(forth @ (score.noise + _BENT * np.outer(rest, rest)) @ forth.T)
    precisions = []
    for noise, back in zip(noises, inverse_slopes, strict=True):
        covariance = symmetric(back @ noise @ back.T)
        precisions.append(invert(covariance + _JITTER * np.trace(covariance) / size * identity))
    _, axes = np.linalg.eigh(symmetric(np.sum(precisions, axis=0)))
    sides = [axes.T @ back for back in inverse_slopes]
    spread = np.array([np.vecdot(side @ noise, side) for side, noise in zip(sides, noises, strict=True)])
    lost = _compute_lost(rows, there, axes, scores, sides)
    return _Estimates(axes, np.array(means) @ axes, spread, lost, axes.T @ precision @ axes)


def _simulate_scale(rows: Rows, goal: Array64, score: Score, simulated: Array32) -> tuple[float, float]:
    """Simulate the last parameter's bounded score, an unknown scale's, if ``goal`` is the mode.

    The squares of residuals also contain the distance of the coefficients, and a bound leaves other parts of squares
    than of residuals. By Bartlett's identity, the derivative of the mean is the mean product of the bounded score with
    the score at the mode.

    Returns:
        The derivative over that of the weighted score, and the mean less the derivative times the distance.
    """
    assert score.bound is not None
    kept = np.resize(score.kept, len(simulated))
    whole = rows.model.scores(simulated, goal)[:, -1].astype(np.float64)
    bounded = score.bound(simulated)[:, -1]
    ratio = float(bounded @ whole) / max(float(kept @ whole**2), 1e-300)
    part = float(np.clip(np.nan_to_num(ratio), _LEAST_PART, 1 / _LEAST_PART))
    slope = part * rows.information(score.theta, score.kept)[-1, -1]
    # The mean of scores at the mode is zero, so that of these draws is an error.
    return part, rows.count * float(np.mean(bounded - part * kept * whole)) - slope * float(goal[-1] - score.theta[-1])


def _compute_lost(
    rows: Rows, there: Array64, axes: Array64, scores: Sequence[Score], sides: Sequence[Array64]
) -> Array64:
    """Compute the covariances of the errors by weights, along each axis.

    The result is ``(D, K, K)``, between scores. Weighted scores have a covariance. The unweighted ones explain a part
    of it, which the full posterior has as well. The rest is the error. It counts once for targets that follow the
    model. A smooth misfit adds ``TUNING.misfit * n / D`` times as much, for n rows.

    Args:
        rows: the belief about rows.
        there: factors at the mode, ``(M, r, D)``, in the coordinates of the draws' information.
        axes: in columns, ``(D, D)``.
        scores: K of them.
        sides: for each score, the matrix ``(D, D)`` from its error to errors along the axes.
    """
    along = np.square(there @ axes).sum(axis=1)  # (M, D)
    kept = np.array([score.kept for score in scores])
    root = np.array([score.kept if score.root is None else score.root for score in scores])
    scale = rows.count / len(along)
    # Scores with different bounds differ in the part that is no multiple of the score, too.
    rest = np.sqrt(np.maximum(root**2 - kept**2, 0))
    both = scale * np.moveaxis((kept[:, None] * kept + rest[:, None] * rest) @ along, 2, 0)
    each = (scale * kept @ along).T  # (D, K)
    full = np.maximum(scale * along.sum(axis=0), 1e-12)[:, None, None]
    lost = (1 + TUNING.misfit * rows.count / len(axes)) * (both - each[:, :, None] * each[:, None, :] / full)
    gain = np.array([np.sqrt(np.vecdot(side, side)) for side in sides]).T  # (D, K)
    return np.asarray(lost * gain[:, :, None] * gain[:, None, :])


@dataclass(frozen=True, slots=True, eq=False)
class _Average:
    """The best linear unbiased average along each axis, for one covariance of errors.

    ``mean`` and ``variance`` are ``(D,)``, ``weights`` ``(D, K)``. ``squares`` is the sum of squared standardised
    residuals. ``value`` is minus twice the restricted log-likelihood of the covariance, up to a constant.
    """

    mean: Array64
    variance: Array64
    weights: Array64
    squares: float
    value: float


def _average(means: Array64, covariance: Array64) -> _Average:
    """Average ``means`` ``(D, K)`` with errors of ``covariance`` ``(D, K, K)``."""
    scale = np.trace(covariance, axis1=1, axis2=2)[:, None, None]
    inverse = invert(covariance + _JITTER * scale * np.eye(means.shape[1]))
    total = inverse.sum(axis=(1, 2))
    weights = inverse.sum(axis=2) / total[:, None]
    mean = np.vecdot(weights, means)
    left = means - mean[:, None]
    squares = float(np.einsum("dk,dkl,dl->", left, inverse, left))
    value = float(np.linalg.slogdet(covariance)[1].sum() + np.log(total).sum()) + squares
    return _Average(mean, 1 / total, weights, squares, value)


def _combine(
    rows: Rows, frame: Frame, goal: Array64, estimates: _Estimates, scores: Sequence[Score], *, vague: float
) -> Mode:
    """Average the estimates with the likeliest covariance of errors, and shrink the average."""
    size = len(goal)
    away = (goal - np.array([score.theta for score in scores])) @ frame.back
    gram = away @ away.T / size
    spread = np.array([min(1.0, float(np.mean(rows.change(goal - score.theta) ** 2))) for score in scores])
    # Secants' errors are linear in the distance: products of distances are common, and a part is each secant's alone.
    by_noise_and_bounds = estimates.lost + estimates.noise.T[:, :, None] * np.eye(len(scores))
    own = (TUNING.own_error * spread * gram.diagonal()) * np.eye(len(scores))
    best, average, errors = np.inf, None, by_noise_and_bounds
    for share in TUNING.secant_shares:
        covariance = by_noise_and_bounds + own + share * gram
        candidate = _average(estimates.means.T, covariance)
        value = candidate.value + float(np.log(share / TUNING.usual_secant_share) / _SHARE_DEVIATION) ** 2
        if average is None or value < best:  # answers of all magnitudes may have no finite value
            best, average, errors = value, candidate, covariance
    assert average is not None
    # Early scores may be so far from the mode that their secants are wrong. They have hardly any weight.
    late = slice(len(scores) // 2, None)
    freedom = size * (len(scores[late]) - 1)
    squares = _average(estimates.means.T[:, late], errors[:, late, late]).squares
    noise = np.einsum("dk,dkl,dl->d", average.weights, by_noise_and_bounds, average.weights)
    mean, covariance = shrink(average.mean, np.maximum(average.variance, noise), noise, estimates.prior, vague)
    to_parameter = frame.forth.T @ estimates.axes
    surprise = (squares + _USUAL) / (freedom + _USUAL)
    return Mode(to_parameter @ mean, symmetric(to_parameter @ covariance @ to_parameter.T), surprise)


def shrink(
    mean: Array64, variance: Array64, noise: Array64, precision: Array64, vague: float
) -> tuple[Array64, Array64]:
    """Shrink an estimate of the mode towards zero, the prior's mean.

    Under the prior, a mode has the covariance ``P^-1 - I`` in coordinates where the posterior's information is the
    identity. With the doubt about that information, it is the unit of variance of the signal here. All axes share one
    scale: 1, 1/4, 1/16, ... times that variance. A few signals are larger, so the law along each axis is a mixture of
    normal laws with 1, 4, 16, ... times the scale. The estimate decides between all of them (empirical Bayes). Secants'
    errors do not count there: they are as large as the step, and would hold the search at the prior's mean.

    Args:
        mean: the estimate, ``(D,)``.
        variance: of its errors along the axes, ``(D,)``.
        noise: the part of ``variance`` by noise and weights, ``(D,)``.
        precision: the prior's precision P, ``(D, D)``.
        vague: the relative variance of the belief's information. Real information may be more, and allow more signal.

    Returns:
        The mean ``(D,)`` and the covariance of its error ``(D, D)``.
    """
    values, vectors = np.linalg.eigh(symmetric(precision))
    # Noise may hide information beyond the prior's, and with it a signal.
    deviation = np.sqrt(np.maximum(1 / np.maximum(values, _LEAST_PRECISION) - 1 + np.sqrt(2 * vague), 1e-9))
    root, inverse = (vectors * deviation) @ vectors.T, (vectors / deviation) @ vectors.T
    errors, axes = np.linalg.eigh(symmetric((inverse * variance) @ inverse.T))
    side = axes.T @ inverse
    seen = np.clip(side @ mean, -_FURTHEST, _FURTHEST)
    errors, noise = np.maximum(errors, 1e-300), np.maximum(np.vecdot(side * noise, side), 1e-300)
    odds, signals = _weigh_signals(seen, noise)
    gains = signals / (signals + noise)
    gain = (odds * gains).sum(axis=0)
    error = (odds * (signals * errors / (signals + errors) + (gains - gain) ** 2 * seen**2)).sum(axis=0)
    back = root @ axes
    return back @ (gain * seen), symmetric((back * error) @ back.T)


def _weigh_signals(seen: Array64, noise: Array64) -> tuple[Array64, Array64]:
    """Compute the posterior odds ``(L, D)`` of L laws, and their variances ``(L, 1)``.

    They are laws of signals along D axes. ``seen`` ``(D,)`` are signals plus noise of variance ``noise`` ``(D,)``.
    """
    powers, scales = np.arange(-TUNING.signals, TUNING.signals), np.arange(-TUNING.signals, 1)
    signals, larger = 4.0 ** powers[:, None], powers - scales[:, None]
    logs = np.where(larger >= 0, larger * np.log(TUNING.unlikely_signals), -np.inf)[:, :, None]
    logs = logs - 0.5 * (np.log(signals + noise) + seen**2 / (signals + noise))  # (scales, L, D)
    peaks = logs.max(axis=1, keepdims=True)
    odds = np.exp(logs - peaks)
    totals = odds.sum(axis=1, keepdims=True)
    common = (peaks + np.log(totals)).sum(axis=(1, 2)) - scales * np.log(TUNING.unlikely_signals)
    weights = np.exp(common - common.max())
    odds = np.einsum("s,sld->ld", weights / weights.sum(), odds / totals)
    return odds, np.asarray(signals, dtype=np.float64)
