"""The subspace that the points span: choice by least divergence, in coordinates whitened by the prior.

Points ``x = B z`` with ``z`` in R^k leave the prior unchanged in all directions except ``t = B'theta``. Whiten by the
prior's precision ``P0 = R R'``, with ``B = R E`` and E of orthonormal columns. Let the target then have precision
``Lambda`` and mean ``m``. The closest such posterior has precision ``Lambda_EE`` and mean ``t = (Lambda_EE)^-1 E'
Lambda m``, at a divergence of

    ``1/2 [tr Lambda - tr Lambda_EE + m'Lambda m - t'Lambda_EE t - log|Lambda| + log|Lambda_EE| - (D - k)]``.

For eigenvectors this is ``1/2 sum (l (1 + m^2) - 1 - log l)`` over those left out. The points supply the information
``Lambda_EE - I``, which a rotation of E makes diagonal.
"""

from dataclasses import dataclass

import numpy as np
import scipy

from app.inference.core.model import Array64
from app.inference.fitting.problem import PriorCurvature
from app.inference.fitting.target import Target

NEGLIGIBLE = 1e-8
"""A direction is left to the prior if that costs fewer nats. Then no points represent rounding errors."""
MOST_LEVERAGE = 100.0
"""Largest mean square coordinate of points with an intercept of 1; other subspaces are preferred."""


@dataclass(frozen=True, slots=True)
class Subspace:
    """A subspace with the Gaussian that the points must represent in it.

    ``basis`` B is ``(D, k)``. The others are ``(k,)``, in the coordinates of ``t``: the points' diagonal
    ``information``, the mode ``mean``, and the ``pull``, the prior's negative gradient there, which the scores cancel.
    """

    basis: Array64
    information: Array64
    mean: Array64
    pull: Array64


@dataclass(frozen=True, slots=True)
class WhitenedTarget:
    """The target in coordinates whitened by the prior.

    ``root`` is R, ``precision`` is Lambda, ``mean`` is ``R'`` times the target's mean.
    """

    root: Array64
    precision: Array64
    mean: Array64


def whiten(target: Target, prior_precision: Array64) -> WhitenedTarget:
    """Whiten the target by the prior's ``(D, D)`` precision."""
    root, _ = scipy.linalg.lapack.dpotrf(prior_precision, lower=1, clean=1)
    half, _ = scipy.linalg.lapack.dtrtrs(root, target.precision, lower=1)
    precision, _ = scipy.linalg.lapack.dtrtrs(root, half.T, lower=1)
    return WhitenedTarget(root, 0.5 * (precision + precision.T), root.T @ target.mean)


def compute_direction_costs(values: Array64, means: Array64) -> Array64:
    """Compute the nats lost with each whitened eigenvector that is left to the prior."""
    values = np.maximum(values, np.finfo(np.float64).tiny)
    return np.asarray(0.5 * (values * (1 + np.square(means)) - 1 - np.log(values)))


def find_subspace(target: Target, prior: PriorCurvature, most: int) -> Subspace:
    """Find the subspace of at most ``most`` directions with the least divergence.

    It contains an intercept. It may have fewer directions, and none.
    """
    whitened = whiten(target, prior.precision(target.mean))
    basis = _choose_basis(whitened, most)
    for _ in range(2):  # directions left to the prior move the mode, and the prior's precision depends on it
        information, rotation, mean = _restrict(whitened, basis)
        theta, _ = scipy.linalg.lapack.dtrtrs(whitened.root, basis @ rotation @ mean, lower=1, trans=1)
        whitened = whiten(target, prior.precision(theta))
    pull, _ = scipy.linalg.lapack.dtrtrs(whitened.root, -prior.gradient(theta), lower=1)
    pull = rotation.T @ basis.T @ pull
    return Subspace(whitened.root @ basis @ rotation, information, mean, pull)


def _restrict(whitened: WhitenedTarget, basis: Array64) -> tuple[Array64, Array64, Array64]:
    """Restrict the target to ``basis`` ``(D, k)``.

    Returns the information, the rotation that makes it diagonal, and the mean in rotated coordinates.
    """
    inner = basis.T @ whitened.precision @ basis
    values, rotation = np.linalg.eigh(inner)
    projected = basis.T @ (whitened.precision @ whitened.mean)
    mean = (rotation.T @ projected) / np.maximum(values, np.finfo(np.float64).tiny)
    return np.maximum(values - 1, 0), rotation, mean


def _choose_basis(whitened: WhitenedTarget, most: int) -> Array64:
    """Choose orthonormal columns: all directions that are not negligible, if there are at most ``most``.

    Otherwise it is the one with the least loss of several choices of ``most`` directions.
    """
    values, vectors = np.linalg.eigh(whitened.precision)
    means = vectors.T @ whitened.mean
    worth = np.where(values > 1, compute_direction_costs(values, means), 0.5 * np.maximum(values, 0) * np.square(means))
    order = np.argsort(-worth)
    count = int(np.count_nonzero(worth > NEGLIGIBLE))
    if count <= most or most < 1:
        return np.asarray(vectors[:, order[: max(min(count, most), 0)]])
    intercept = whitened.root[-1]
    firsts = [[intercept], [whitened.mean], [intercept, whitened.mean]]
    choices = [vectors[:, order[:most]]]
    choices += [_complete(whitened, np.array(first).T, most) for first in firsts if len(first) <= most]
    accepted = [basis for basis in choices if _compute_leverage(whitened, basis) <= MOST_LEVERAGE] or choices[1:2]
    return min(accepted, key=lambda basis: _compute_loss(whitened, basis))


def _complete(whitened: WhitenedTarget, first: Array64, most: int) -> Array64:
    """Complete ``first`` to ``most`` columns by the costliest directions of its complement."""
    basis, _ = np.linalg.qr(first, mode="complete")
    head, rest = basis[:, : first.shape[1]], basis[:, first.shape[1] :]
    values, vectors = np.linalg.eigh(rest.T @ whitened.precision @ rest)
    costs = compute_direction_costs(values, vectors.T @ (rest.T @ whitened.mean))
    return np.hstack((head, rest @ vectors[:, np.argsort(-costs)[: most - head.shape[1]]]))


def _compute_loss(whitened: WhitenedTarget, basis: Array64) -> float:
    """Compute twice the divergence of the module's docstring, up to a constant.

    The constant depends on the number of columns.
    """
    inner = basis.T @ whitened.precision @ basis
    projected = basis.T @ (whitened.precision @ whitened.mean)
    values, vectors = np.linalg.eigh(inner)
    values = np.maximum(values, np.finfo(np.float64).tiny)
    return float(np.sum(np.log(values) - values) - np.sum(np.square(vectors.T @ projected) / values))


def _compute_leverage(whitened: WhitenedTarget, basis: Array64) -> float:
    """Compute the largest mean square coordinate of points with an intercept of 1."""
    inner = basis.T @ whitened.precision @ basis - np.eye(basis.shape[1])
    reach = whitened.root @ basis
    squares = np.einsum("ij,jk,ik->i", reach, inner, reach)
    return float(np.max(squares) / squares[-1]) if squares[-1] > 0 else float("inf")
