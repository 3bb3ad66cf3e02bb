"""The belief at one parameter: rows, their information, and how far matrices corrected it."""

from dataclasses import dataclass

import numpy as np

from app.inference.core.model import Array64
from app.inference.core.priors import Prior
from app.inference.methods.one_belief.linear_algebra import factor_of, mapped, solve_lower
from app.inference.methods.one_belief.rows import Rows
from app.inference.methods.one_belief.tuning import TUNING

_LEAST, _MOST = 0.02, 50.0


@dataclass(frozen=True, slots=True, eq=False)
class Frame:
    """Coordinates in which the draws' information is the identity, and those in which the believed one is.

    ``own`` ``(D, D)`` is the Cholesky factor L of the draws' information J with the prior. ``white`` ``(M, r, D)`` are
    their factors ``F L^-T``. The believed information is ``L B L'``; ``values`` and ``axes`` are the eigenvalues and
    eigenvectors of B. ``back`` is ``L B^(1/2)``: the believed information is its square, and its directions mean the
    same as the draws'.
    """

    own: Array64
    white: Array64
    values: Array64
    axes: Array64
    back: Array64
    forth: Array64
    prior: Array64  # in coordinates of the draws

    @property
    def shortened(self) -> Array64:
        """The factors ``(M, r, D)``, as long as the believed information makes them: by the part along each axis."""
        along = np.square(self.white @ self.axes)
        share = along / np.maximum(along.sum(axis=2, keepdims=True), 1e-300)
        shortening = np.exp(-0.5 * share @ np.log(np.clip(self.values, _LEAST, _MOST)))
        return np.asarray(self.white * shortening[:, :, None])


def frame_at(rows: Rows, theta: Array64, information: Array64, prior: Prior) -> Frame:
    """Make the frame at ``theta``, where the believed information is ``information``, the prior's included."""
    precision, factors = prior.precision(theta), rows.factors(theta)
    own = factor_of(rows.gram(factors) + precision)
    size = len(own)
    white = solve_lower(own, factors.reshape(-1, size).T).T.reshape(factors.shape)
    values, axes = np.linalg.eigh(mapped(information, own))
    root = np.sqrt(np.maximum(values, 1e-6))
    back, forth = own @ (axes * root) @ axes.T, (axes / root) @ axes.T @ solve_lower(own, np.eye(size))
    return Frame(own, white, values, axes, back, forth, mapped(precision, own))


def carry(rows: Rows, information: Array64, start: Array64, end: Array64, prior: Prior) -> Array64:
    """Carry the believed information ``(D, D)`` from one parameter to another, as the draws' changes."""
    own = factor_of(rows.information(start) + prior.precision(start))
    values, axes = np.linalg.eigh(mapped(rows.information(end) + prior.precision(end), own))
    root = np.sqrt(np.clip(values, *TUNING.most_change))
    change = own @ (axes * root) @ axes.T @ solve_lower(own, np.eye(len(own)))
    return np.asarray(change @ information @ change.T)
