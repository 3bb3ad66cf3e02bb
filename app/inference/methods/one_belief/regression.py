"""From noised scores at several parameters to the posterior's mode: generalised least squares.

At the mode the scores of all rows sum to the prior's pull. So a noised score, asked at ``theta_k`` with weights w, has
the mean ``A_k (theta - theta_k) + J_w J^-1 P theta`` with the secant ``A_k``: the mean weighted information on the way.
Its errors are noise; what the weights lost, which is common to scores with similar weights; and the error of the
secant, which is linear in the distance with random coefficients of a common size. That size and the misfit are those
of the largest restricted likelihood. All of it is one direction at a time, in the metric of the believed information.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from app.inference.core.model import Array64
from app.inference.core.priors import Prior
from app.inference.methods.one_belief.excess import Excess
from app.inference.methods.one_belief.frame import Frame
from app.inference.methods.one_belief.linear_algebra import symmetric
from app.inference.methods.one_belief.rows import Rows
from app.inference.methods.one_belief.tuning import TUNING

_SOFT_PRIOR = 0.03
_JITTER = 1e-9


@dataclass(frozen=True, slots=True, eq=False)
class Score:
    """An answered score ``gradient`` ``(D,)`` at ``theta`` ``(D,)``.

    ``noise`` ``(D, D)`` is its covariance by noise and subsampling. ``kept`` ``(M,)`` is the share of each draw's score
    that its bound kept.
    """

    theta: Array64
    gradient: Array64
    noise: Array64
    kept: Array64


@dataclass(frozen=True, slots=True, eq=False)
class Mode:
    """``mean`` ``(D,)`` is the mode as all scores tell it, and ``covariance`` ``(D, D)`` its errors, both shrunk.

    ``noise_nats`` and ``nats`` are the expected loss by noise alone and by all errors. ``misfit`` is the likeliest one;
    ``surprise`` is the mean square of the standardised residuals.
    """

    mean: Array64
    covariance: Array64
    noise_nats: float
    nats: float
    misfit: float
    surprise: float


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
    """Find the mode by all ``scores``; ``theta`` ``(D,)`` is where ``frame`` is, and the search starts.

    ``excess`` is what a cut took from each of them; ``vague`` is the relative variance of the believed information.
    """
    longest = longest_step(rows, theta)
    goal, mode, common = theta, None, np.zeros((len(theta), len(theta)))
    if excess is not None:
        added = [excess.gradient(rows, score.kept) for score in scores]
        scores = [
            replace(score, gradient=score.gradient + each) for score, (each, _) in zip(scores, added, strict=True)
        ]
        common = frame.forth.T @ frame.forth @ added[-1][1] @ frame.forth.T @ frame.forth
    for _ in range(TUNING.sweeps):
        said = _say(rows, frame, goal, prior, scores)
        mode = _combine(rows, frame, goal, said, scores, vague=vague)
        step = mode.mean - goal
        change = float(np.sqrt(np.mean(rows.change(step) ** 2)))
        goal = goal + step * min(1.0, longest / max(change, 1e-12))
    assert mode is not None
    return Mode(goal, mode.covariance + common, mode.noise_nats, mode.nats, mode.misfit, mode.surprise)


def longest_step(rows: Rows, theta: Array64) -> float:
    """The longest step in root mean square change of linear predictors; longer where they are large already."""
    return max(TUNING.step, TUNING.step_of_predictors * float(np.sqrt(np.mean(rows.change(theta) ** 2))))


@dataclass(frozen=True, slots=True, eq=False)
class _Said:
    """Where each of K scores says that the mode is, by axis of the metric: ``means`` ``(K, D)``.

    ``noise`` ``(K, D)`` are the variances; ``lost`` ``(D, K, K)`` covariances of what weights lost, for no misfit.
    """

    axes: Array64
    means: Array64
    noise: Array64
    lost: Array64
    prior: Array64


def _say(rows: Rows, frame: Frame, goal: Array64, prior: Prior, scores: Sequence[Score]) -> _Said:
    size, forth, identity = len(goal), frame.forth, np.eye(len(goal))
    precision = forth @ prior.precision(goal) @ forth.T
    to_white = np.linalg.inv(frame.own)
    soft = _SOFT_PRIOR * frame.prior

    def white(factors: Array64) -> Array64:
        return np.asarray((factors.reshape(-1, size) @ to_white.T).reshape(factors.shape))

    there = white(rows.factors(goal))
    inverse = np.linalg.inv(rows.gram(there) + soft)
    turned, means = [], []
    for score in scores:
        secant = rows.gram(white(rows.path_factors(score.theta, goal)), score.kept) + soft
        slope = secant @ inverse @ (identity - precision)
        pulled = (rows.gram(there, score.kept) + soft) @ inverse @ precision
        back = np.linalg.inv(slope + pulled)
        means.append(back @ (forth @ score.gradient + slope @ (frame.back.T @ score.theta)))
        turned.append(back)
    precisions = []
    for score, back in zip(scores, turned, strict=True):
        covariance = symmetric(back @ forth @ score.noise @ forth.T @ back.T)
        precisions.append(np.linalg.inv(covariance + _JITTER * np.trace(covariance) / size * identity))
    _, axes = np.linalg.eigh(symmetric(np.sum(precisions, axis=0)))
    sides = [axes.T @ back for back in turned]
    noise = np.array(
        [np.vecdot(side @ (forth @ score.noise @ forth.T), side) for side, score in zip(sides, scores, strict=True)]
    )
    return _Said(
        axes, np.array(means) @ axes, noise, _lost(rows, there, axes, scores, sides), axes.T @ precision @ axes
    )


def _lost(rows: Rows, there: Array64, axes: Array64, scores: Sequence[Score], sides: Sequence[Array64]) -> Array64:
    """Covariances ``(D, K, K)`` of what weights lose, between scores, by axis."""
    along = np.square(there @ axes).sum(axis=1)  # (M, D)
    kept = np.array([score.kept for score in scores])
    scale = rows.count / len(along)
    both = scale * np.einsum("km,lm,md->dkl", kept, kept, along, optimize=True)
    each = scale * kept @ along  # (K, D)
    full = np.maximum(scale * along.sum(axis=0), 1e-12)
    lost = both - each.T[:, :, None] * each.T[:, None, :] / full[:, None, None]
    gain = np.array([np.sqrt(np.vecdot(side, side)) for side in sides]).T  # (D, K)
    return np.asarray(lost * gain[:, :, None] * gain[:, None, :])


def _combine(rows: Rows, frame: Frame, goal: Array64, said: _Said, scores: Sequence[Score], *, vague: float) -> Mode:
    """The best linear unbiased average of what scores say, by axis, for the likeliest errors; then shrunk."""
    size = len(goal)
    away = (goal - np.array([score.theta for score in scores])) @ frame.back
    gram = away @ away.T / size
    spread = np.array([min(1.0, float(np.mean(rows.change(goal - score.theta) ** 2))) for score in scores])
    own = said.noise.T + TUNING.own_error * spread * gram.diagonal()
    best, chosen = np.inf, None
    for misfit in TUNING.misfits:
        for share in TUNING.shares:
            covariance = share * gram + (1 + misfit * rows.count) * said.lost + own[:, :, None] * np.eye(len(scores))
            scale = np.trace(covariance, axis1=1, axis2=2)[:, None, None]
            inverse = np.linalg.inv(covariance + _JITTER * scale * np.eye(len(scores)))
            total = inverse.sum(axis=(1, 2))
            weights = inverse.sum(axis=2) / total[:, None]
            mean = np.vecdot(weights, said.means.T)
            left = said.means.T - mean[:, None]
            squares = float(np.einsum("dk,dkl,dl->", left, inverse, left))
            value = float(np.linalg.slogdet(covariance)[1].sum() + np.log(total).sum()) + squares
            value += 2.0 * (misfit > TUNING.usual_misfit)
            if value < best:
                best, chosen = value, (mean, 1 / total, weights, squares, misfit)
    assert chosen is not None
    mean, variance, weights, squares, misfit = chosen
    noise = np.vecdot(weights**2, said.noise.T)
    mean, covariance = _shrink(mean, np.maximum(variance, noise), said.prior, vague)
    to_parameter = frame.forth.T @ said.axes
    freedom = max(1, size * (len(scores) - 1))
    return Mode(
        to_parameter @ mean,
        symmetric(to_parameter @ covariance @ to_parameter.T),
        0.5 * float(noise.sum()),
        0.5 * float(np.trace(covariance)),
        misfit,
        squares / freedom if len(scores) > 1 else 1.0,
    )


def _shrink(mean: Array64, variance: Array64, precision: Array64, vague: float) -> tuple[Array64, Array64]:
    """Shrink towards zero, by what a mode varies under the prior, but at least by what there is to see.

    The covariance allows for information that is less than believed (``vague``).

    All in coordinates in which the believed information is the identity, ``precision`` ``(D, D)`` the prior's part.

    Returns:
        The mean ``(D,)`` and its covariance ``(D, D)``.
    """
    values, vectors = np.linalg.eigh(np.linalg.inv(symmetric(precision)) - np.eye(len(mean)))
    deviation = np.sqrt(np.maximum(values, 1e-9))
    root, inverse = (vectors * deviation) @ vectors.T, (vectors / deviation) @ vectors.T
    noise, axes = np.linalg.eigh(symmetric((inverse * variance) @ inverse.T))
    seen = axes.T @ inverse @ mean
    signal = np.maximum(1.0, seen**2 - noise)
    gain = signal / (signal + np.maximum(noise, 1e-300))
    back = root @ axes
    least = max(1 - TUNING.vagueness * np.sqrt(2 * vague), 0.05)
    doubt = np.maximum(noise, 1e-300) / least**2
    return back @ (gain * seen), symmetric((back * (signal * doubt / (signal + doubt))) @ back.T)
