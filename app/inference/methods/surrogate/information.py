"""Information matrices: coordinates by them, metrics of rows, the design of a query, and a filter of the answers.

There are two information matrices at a parameter. The first is computed from the draws of rows. The second is the
belief's: answers have corrected the first, as observations correct the state of a Kalman filter. A :class:`Frame` has
coordinates by both.

A query bounds the length of a row in a metric ``M``. Its square is ``f' M^-1 f`` for an information factor f. Noise has
the covariance ``M`` times a constant. The covariance of the rows gives little noise, but far rows exceed its bounds.
The least ellipsoid around the rows gives all of them similar lengths. Lewis weights make metrics between the two.
"""

from dataclasses import dataclass

import numpy as np

from app.inference.core.linear_algebra import compute_mean_gram, factorise, invert, solve_lower, symmetric, whiten
from app.inference.core.model import Array32, Array64
from app.inference.core.priors import Prior
from app.inference.methods.surrogate.rows import Rows
from app.inference.methods.surrogate.tuning import TUNING

_LEAST, _MOST = 0.02, 50.0
"""Least and largest eigenvalue of the correction B that changes the lengths of factors."""
_SWEEPS = 8
"""Iterations of the fixed point; queries need no exact weights."""
_LEAST_TRACE = 1e-200
"""Trace of a Gram matrix that counts as zero."""
_RIDGE = 0.03
"""Part of the mean eigenvalue added to each; real rows may extend where noise leaves the draws no extent."""


@dataclass(frozen=True, slots=True, eq=False)
class Frame:
    """Coordinates in which the draws' information, or the belief's, is the identity.

    The draws' information, with the prior's precision, is ``L L'``; L is ``own`` ``(D, D)``. The belief's information
    is ``L B L'``, so B is the correction by the answers.

    - ``values`` ``(D,)`` and ``axes`` ``(D, D)``: the eigenvalues and eigenvectors of B.
    - ``white`` ``(M, r, D)`` and ``prior`` ``(D, D)``: the draws' factors and the prior's precision, along L.
    - ``back`` ``(D, D)``: ``L B^(1/2)`` by the symmetric root; ``forth`` is its inverse.

    Real rows are assumed to have the factors ``white`` along ``back``, too. So both may be in one formula.
    """

    own: Array64
    white: Array64
    values: Array64
    axes: Array64
    back: Array64
    forth: Array64
    prior: Array64

    @property
    def shortened(self) -> Array64:
        """The draws' information factors ``(M, r, D)``, with lengths relative to the belief's information.

        The directions are the same as in ``white``. If the belief has more information in a direction than the draws,
        one draw is a smaller part of it, so its factor becomes shorter. The length is multiplied by the geometric mean
        of ``B^(-1/2)`` over the axes. The weight of an axis is its share of the factor's squared length.
        """
        along = np.square(self.white @ self.axes)
        share = along / np.maximum(along.sum(axis=2, keepdims=True), 1e-300)
        shortening = np.exp(-0.5 * share @ np.log(np.clip(self.values, _LEAST, _MOST)))
        return np.asarray(self.white * shortening[:, :, None])


def make_frame(rows: Rows, theta: Array64, information: Array64, prior: Prior) -> Frame:
    """Make the frame at ``theta``.

    Args:
        rows: the belief about rows.
        theta: the parameter, ``(D,)``.
        information: the belief's information at ``theta``, the prior's precision included, ``(D, D)``.
        prior: on the parameters.

    Raises:
        numpy.linalg.LinAlgError: the draws' information is not positive definite.
    """
    precision, factors = prior.precision(theta), rows.factors(theta)
    own = factorise(rows.gram(factors) + precision)
    size = len(own)
    white = solve_lower(own, factors.reshape(-1, size).T).T.reshape(factors.shape)
    values, axes = np.linalg.eigh(whiten(information, own))
    root = np.sqrt(np.maximum(values, 1e-6))
    back, forth = own @ (axes * root) @ axes.T, (axes / root) @ axes.T @ solve_lower(own, np.eye(size))
    return Frame(own, white, values, axes, back, forth, whiten(precision, own))


def predict_change(rows: Rows, start: Array64, end: Array64, prior: Prior) -> Array64:
    """Predict how information changes from ``start`` to ``end``: from X to ``C X C'``; the result is C ``(D, D)``.

    The draws' information changes from ``L L'`` to ``L A L'``. All other information is assumed to change in the same
    way, so ``C = L A^(1/2) L^-1``. :attr:`Tuning.most_change` limits the eigenvalues of A.
    """
    own = factorise(rows.information(start) + prior.precision(start))
    values, axes = np.linalg.eigh(whiten(rows.information(end) + prior.precision(end), own))
    root = np.sqrt(np.clip(values, *TUNING.most_change))
    return np.asarray(own @ (axes * root) @ axes.T @ solve_lower(own, np.eye(len(own))))


def compute_lewis_metric(factors: Array64 | Array32, power: float) -> Array64:
    """Compute the Gram matrix ``(D, D)`` with Lewis weights, of trace D.

    Lewis weights solve a fixed-point equation: the metric is ``sum_m l_m^(power - 2) F_m' F_m`` with lengths ``l_m`` in
    that metric (Cohen & Peng, *STOC* 2015). At ``power`` 2 all weights are equal. As the power grows, the metric
    approaches the least ellipsoid around the rows.

    Factors that are all zero have the identity as their metric.

    Args:
        factors: information factors ``(M, r, D)`` of M rows, r factors each.
        power: the order of the weights, at least 2.
    """
    count, _, size = factors.shape
    metric, weights = np.eye(size), np.ones(count)
    for _ in range(_SWEEPS if power > 2 else 1):
        squares = np.maximum(compute_squared_lengths(factors, metric), 1e-12)
        # The iteration w = l^(p - 2) diverges for orders above 4. This one has the same fixed point.
        weights = (weights * squares / squares.mean()) ** (1 - 2 / power)
        metric = compute_mean_gram(factors, weights)
        trace = float(np.trace(metric))
        if not trace > _LEAST_TRACE:  # predictors may be so large that no row has information in single precision
            return np.eye(size)
        metric += _RIDGE * trace / size * np.eye(size)
        metric *= size / np.trace(metric)
    return metric


def compute_squared_lengths(factors: Array64 | Array32, metric: Array64) -> Array64:
    """Compute ``sum_r f_r' metric^-1 f_r`` for each row, ``(M,)``.

    ``factors`` are ``(M, r, D)``, ``metric`` is ``(D, D)`` and invertible.
    """
    flat = factors.reshape(-1, factors.shape[2])
    squares = np.vecdot(flat @ invert(metric).astype(factors.dtype), flat)
    return np.asarray(squares.reshape(len(factors), -1).sum(axis=1), dtype=np.float64)


@dataclass(frozen=True, slots=True, eq=False)
class Answers:
    """Sums over ``count`` answered matrices.

    Each answer is an estimate of the information that no filter shrinks. ``information`` ``(D, D)`` is the sum of the
    estimates, the prior's precision included in each. ``noise`` ``(D, D)`` is the sum of their noise: along a direction
    d, an estimate has the standard deviation ``d' noise d``.
    """

    count: int
    information: Array64
    noise: Array64

    def add(self, frame: Frame, design: "MatrixDesign", answer: Array64, noise: float) -> "Answers":
        """Add an answer, in the metric of its design; ``noise`` is the standard deviation of a diagonal entry."""
        root = frame.back @ design.root
        estimate = frame.back @ frame.back.T + root @ symmetric(answer - design.expected) @ root.T
        return Answers(self.count + 1, self.information + estimate, self.noise + noise * root @ root.T)

    def move(self, change: Array64) -> "Answers":
        """Move the answers to another parameter, by the result of :func:`predict_change`."""
        return Answers(self.count, *(change @ each @ change.T for each in (self.information, self.noise)))


@dataclass(frozen=True, slots=True, eq=False)
class MatrixDesign:
    """The metric and the bound of an information query.

    ``root`` ``(D, D)`` is the Cholesky factor of the metric in the frame's coordinates. ``bound`` is the clipping norm
    of a unit's information in that metric. ``expected`` ``(D, D)`` is the answer, in that metric, that the belief
    expects: clipping included, the prior's precision not.
    """

    root: Array64
    bound: float
    expected: Array64


def design_matrix(rows: Rows, frame: Frame, sigma: float, rounds: int) -> MatrixDesign:
    """Choose the metric and the bound with the least expected loss.

    An error E of the information, in coordinates where the information is the identity, loses about ``|E|^2 / 4`` nats.
    E has two parts: noise, whose variance the mean over rounds divides, and the loss by clipping, which all rounds
    share. The loss here is the squared norm of the noise plus half that of the clipping.

    Args:
        rows: the belief about rows.
        frame: the belief at the parameter.
        sigma: the noise of one query over its bound, for sums over all slots.
        rounds: the number of matrices that are averaged.
    """
    size, best, chosen = frame.own.shape[0], np.inf, None
    white = frame.white.astype(np.float32)  # a choice needs no more precision
    far = white @ (frame.own.T @ frame.forth.T).astype(np.float32)
    full, (least, most, number) = rows.gram(frame.white), TUNING.matrix_bounds
    for power in TUNING.powers:
        metric = compute_lewis_metric(far, power)
        lengths = compute_squared_lengths(far, metric) * rows.per_unit
        # The squared error by noise of standard deviation 1 in each entry of the metric's coordinates, times two.
        spread = np.trace(metric) ** 2 + np.sum(metric**2)
        widest = max(most, float(lengths.max()) * rows.count / (size * rows.per_unit))
        for kappa in np.geomspace(least, widest, number):
            bound = kappa * size * rows.per_unit / rows.count
            clipped = rows.gram(white, np.minimum(1, bound / np.maximum(lengths, 1e-300)))
            loss = (sigma * bound) ** 2 / rounds / 2 * spread + 0.5 * np.sum((full - clipped) ** 2)
            if loss < best:
                best, chosen = loss, (metric, bound, clipped)
    assert chosen is not None
    metric, bound, clipped = chosen
    root = factorise(metric)
    return MatrixDesign(root, float(bound), whiten(clipped, root))


def correct(frame: Frame, design: MatrixDesign, answer: Array64, noise: float, vague: float) -> tuple[Array64, float]:
    """Correct the belief's information by an answer.

    The innovation is the answer minus its expectation. A scalar Kalman filter shrinks its entries by the gain
    ``variance / (variance + noise^2)``. The variance is at most two standard errors from the innovation's. All entries
    are taken to have the same variance, because the metric has the trace D.

    Args:
        frame: the belief at the parameter.
        design: of the query.
        answer: in the metric of the design, ``(D, D)``.
        noise: the standard deviation of a diagonal entry of the answer.
        vague: the variance of the information's entries before the answer, where the information is the identity.

    Returns:
        The information ``(D, D)``, positive definite, and its variance.
    """
    size = len(answer)
    innovation = symmetric(answer - design.expected)
    excess = float(np.sum(innovation**2)) / (size * (size + 1) / 2) - noise**2
    variance = float(np.clip(vague, excess - 4 * noise**2 / size, max(excess + 4 * noise**2 / size, 1e-12)))
    gain = variance / (variance + noise**2)
    correction = np.eye(size) + gain * design.root @ innovation @ design.root.T
    values, axes = np.linalg.eigh(symmetric(correction))
    # The correction stays positive, and noise cannot remove nearly all information in a direction.
    values = np.maximum(values, np.clip(1.5 * noise, *TUNING.spectral_floor))
    return symmetric(frame.back @ (axes * values) @ axes.T @ frame.back.T), gain * noise**2


def find_least_parts(information: Array64, prior: Array64, answers: Answers, least: float) -> tuple[Array64, Array64]:
    """Find the part of the belief's information that is certain, along D axes.

    Usually it is ``least``. Along single axes, real information may be far less: noise may hide that a column hardly
    varies, or depends on others. A filter with one gain for all entries follows such an axis slowly. So the mean of the
    answers is compared with the belief. Noise alone spreads its eigenvalues up to the edge of the semicircle law
    (Wigner, *Ann. of Math.* 67, 1958). An eigenvalue below that edge counts, less some deviations of its noise.
    Information is never less than the prior's.

    Args:
        information: the belief's, ``(D, D)``.
        prior: the prior's precision, ``(D, D)``.
        answers: at the same parameter.
        least: the part along usual axes.

    Returns:
        The parts ``(D,)``, and the matrix ``(D, D)`` from the parameter to coordinates along the axes. There, the
        belief's information is the identity.
    """
    own, count = factorise(information), max(answers.count, 1)
    prior = whiten(prior, own)
    values, axes = np.linalg.eigh(whiten(answers.information / count, own) if answers.count else prior)
    noise = np.vecdot(axes.T @ whiten(answers.noise, own), axes.T) / count**1.5
    edge = np.sqrt(2 * len(values)) * np.mean(noise) if answers.count else np.inf
    deviations, floor = TUNING.vagueness
    parts = np.where(values < 1 - edge, np.clip(values - deviations * noise, floor, least), least)
    return np.minimum(np.maximum(parts, np.vecdot(axes.T @ prior, axes.T)), 1), axes.T @ own.T
