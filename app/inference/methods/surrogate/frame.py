"""Coordinates for the two information matrices at one parameter.

The first matrix is computed from the draws of rows. The second is the belief's: it also uses the answers of information
queries, which correct the first. A frame has the factors of both, so that other modules can compare and combine them.
"""

from dataclasses import dataclass

import numpy as np

from app.inference.core.linear_algebra import factorise, solve_lower, whiten
from app.inference.core.model import Array64
from app.inference.core.priors import Prior
from app.inference.methods.surrogate.rows import Rows
from app.inference.methods.surrogate.tuning import TUNING

_LEAST, _MOST = 0.02, 50.0
"""Least and largest eigenvalue of the correction B that changes the lengths of factors."""


@dataclass(frozen=True, slots=True, eq=False)
class Frame:
    """Coordinates in which the draws' information, or the belief's, is the identity.

    The draws' information, with the prior's precision, is ``L L'``; L is ``own`` ``(D, D)``. The belief's information
    is ``L B L'``, so B is the correction by the answers.

    - ``values`` ``(D,)`` and ``axes`` ``(D, D)``: the eigenvalues and eigenvectors of B.
    - ``white`` ``(M, r, D)`` and ``prior`` ``(D, D)``: the draws' factors and the prior's precision, along L.
    - ``back`` ``(D, D)``: ``L B^(1/2)`` by the symmetric root; ``forth`` is its inverse.
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


def carry(rows: Rows, information: Array64, start: Array64, end: Array64, prior: Prior) -> Array64:
    """Predict the belief's ``information`` ``(D, D)``, which is at ``start``, for ``end``.

    Information depends on the parameter. Between the two, the draws' information changes from ``L L'`` to ``L A L'``.
    The belief's information X is assumed to change in the same way, to ``C X C'`` with ``C = L A^(1/2) L^-1``.
    :attr:`Tuning.most_change` limits the eigenvalues of A.
    """
    own = factorise(rows.information(start) + prior.precision(start))
    values, axes = np.linalg.eigh(whiten(rows.information(end) + prior.precision(end), own))
    root = np.sqrt(np.clip(values, *TUNING.most_change))
    change = own @ (axes * root) @ axes.T @ solve_lower(own, np.eye(len(own)))
    return np.asarray(change @ information @ change.T)
