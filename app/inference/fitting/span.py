"""Which directions the points span, and what they have to say there.

Points ``x = B z`` with ``z`` in R^k leave every parameter beside ``t = B'theta`` at its prior. In coordinates whitened
by the prior's precision ``P0 = R R'`` (``B = R E``, E with orthonormal columns) the target's precision is ``Lambda``,
its mean ``m``, and the closest such posterior has precision ``Lambda_EE`` and mean
``t = (Lambda_EE)^-1 E' Lambda m``, at a divergence of

    ``1/2 [tr Lambda - tr Lambda_EE + m'Lambda m - t'Lambda_EE t - log|Lambda| + log|Lambda_EE| - (D - k)]``,

which for eigenvectors is ``1/2 sum (l (1 + m^2) - 1 - log l)`` over those left out. The points supply
``Lambda_EE - I``, which a rotation of E makes diagonal.
"""

from dataclasses import dataclass

import numpy as np
import scipy

from app.inference.core.model import Array64
from app.inference.fitting.problem import Curved
from app.inference.fitting.target import Target

NEGLIGIBLE = 1e-13
"""Nats that a direction must be worth to be spanned."""
MOST_LEVERAGE = 100.0
"""A span is refused while its points' mean square coordinate, the intercept being 1, exceeds this."""


@dataclass(frozen=True, slots=True)
class Span:
    """``basis`` B ``(D, k)``; the points' diagonal ``information``, the mode ``mean`` and the ``pull`` of the prior's
    gradient that their scores must balance there, each ``(k,)`` in the coordinates of ``t``.
    """

    basis: Array64
    information: Array64
    mean: Array64
    pull: Array64


@dataclass(frozen=True, slots=True)
class Whitened:
    """The target in coordinates whitened by the prior: ``root`` R, ``precision`` Lambda and ``mean`` R'm."""

    root: Array64
    precision: Array64
    mean: Array64


def whiten(target: Target, prior_precision: Array64) -> Whitened:
    """The target as the prior's ``(D, D)`` precision sees it."""
    root, _ = scipy.linalg.lapack.dpotrf(prior_precision, lower=1, clean=1)
    half, _ = scipy.linalg.lapack.dtrtrs(root, target.precision, lower=1)
    precision, _ = scipy.linalg.lapack.dtrtrs(root, half.T, lower=1)
    return Whitened(root, 0.5 * (precision + precision.T), root.T @ target.mean)


def direction_costs(values: Array64, means: Array64) -> Array64:
    """Nats lost with each whitened eigen-direction that is left to the prior."""
    values = np.maximum(values, np.finfo(np.float64).tiny)
    return np.asarray(0.5 * (values * (1 + np.square(means)) - 1 - np.log(values)))


def find_span(target: Target, prior: Curved, most: int) -> Span:
    """The best span of at most ``most`` directions that has room for an intercept; ``k`` may be less, and zero."""
    view = whiten(target, prior.precision(target.mean))
    frame = _frame(view, most)
    for _ in range(2):  # what is left to the prior moves the mode, and a mode may move the prior's precision
        information, rotation, mean = _restrict(view, frame)
        theta, _ = scipy.linalg.lapack.dtrtrs(view.root, frame @ rotation @ mean, lower=1, trans=1)
        view = whiten(target, prior.precision(theta))
    pull, _ = scipy.linalg.lapack.dtrtrs(view.root, -prior.gradient(theta), lower=1)
    basis = view.root @ frame @ rotation
    return Span(basis, information, mean, rotation.T @ frame.T @ pull)


def _restrict(view: Whitened, frame: Array64) -> tuple[Array64, Array64, Array64]:
    """Information, the rotation that makes it diagonal, and the mean in rotated coordinates."""
    inner = frame.T @ view.precision @ frame
    values, rotation = np.linalg.eigh(inner)
    mean = (rotation.T @ (frame.T @ (view.precision @ view.mean))) / np.maximum(values, np.finfo(np.float64).tiny)
    return np.maximum(values - 1, 0), rotation, mean


def _frame(view: Whitened, most: int) -> Array64:
    """Orthonormal columns: every direction that matters, or of several choices of ``most`` the one that loses least."""
    values, vectors = np.linalg.eigh(view.precision)
    means = vectors.T @ view.mean
    worth = np.where(values > 1, direction_costs(values, means), 0.5 * np.maximum(values, 0) * np.square(means))
    order = np.argsort(-worth)
    kept = int(np.count_nonzero(worth > NEGLIGIBLE))
    if kept <= most or most < 1:
        return np.asarray(vectors[:, order[: max(min(kept, most), 0)]])
    intercept = view.root[-1]
    firsts = [[intercept], [view.mean], [intercept, view.mean]]
    choices = [vectors[:, order[:most]]]
    choices += [_complete(view, np.array(first).T, most) for first in firsts if len(first) <= most]
    sane = [frame for frame in choices if _leverage(view, frame) <= MOST_LEVERAGE] or choices[1:2]
    return min(sane, key=lambda frame: _loss(view, frame))


def _complete(view: Whitened, first: Array64, most: int) -> Array64:
    """``first`` and the costliest directions of its complement."""
    basis, _ = np.linalg.qr(first, mode="complete")
    head, rest = basis[:, : first.shape[1]], basis[:, first.shape[1] :]
    values, vectors = np.linalg.eigh(rest.T @ view.precision @ rest)
    costs = direction_costs(values, vectors.T @ (rest.T @ view.mean))
    return np.hstack((head, rest @ vectors[:, np.argsort(-costs)[: most - head.shape[1]]]))


def _loss(view: Whitened, frame: Array64) -> float:
    """The divergence above, less what all frames of one size share."""
    inner = frame.T @ view.precision @ frame
    seen = frame.T @ (view.precision @ view.mean)
    values, vectors = np.linalg.eigh(inner)
    values = np.maximum(values, np.finfo(np.float64).tiny)
    return float(np.sum(np.log(values) - values) - np.sum(np.square(vectors.T @ seen) / values))


def _leverage(view: Whitened, frame: Array64) -> float:
    """The largest mean square coordinate of points in the span whose intercept is 1."""
    inner = frame.T @ view.precision @ frame - np.eye(frame.shape[1])
    reach = view.root @ frame
    squares = np.einsum("ij,jk,ik->i", reach, inner, reach)
    return float(np.max(squares) / squares[-1]) if squares[-1] > 0 else float("inf")
