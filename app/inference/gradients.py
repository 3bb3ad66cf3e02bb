"""Monte Carlo gradients of ``KL(pi_{u,w} || pi)`` in a pseudocoreset (Bayesian Pseudocoresets, 2020, Eq. 5).

With ``g_s`` the potentials centred over S draws and the residual ``r_s = data_s - sum_m w_m g_s(u_m)``:
``grad_w = -(1/S) sum_s g_s(u) r_s`` and ``grad_u_m = -(w_m/S) sum_s r_s grad_u f(u_m, theta_s)``, and likewise in a
target that can move.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from app.inference.protocol import Array64, Model


def centred_potentials(model: Model, rows: NDArray[Any], draws: NDArray[Any]) -> Array64:
    """``G``: log-likelihoods ``(n, S)`` of ``rows`` ``(n, p)`` at ``draws`` ``(S, D)`` less their mean over draws.

    Log-likelihoods are evaluated in the precision of ``rows`` and ``draws``.
    """
    potentials: Array64 = model.log_likelihood(rows, draws).astype(np.float64, copy=False)
    potentials -= (potentials @ np.full(len(draws), 1 / len(draws)))[:, None]
    return potentials


def psvi_gradients(
    model: Model,
    u: NDArray[Any],
    y: NDArray[Any],
    weights: Array64,
    draws: NDArray[Any],
    *,
    potentials: Array64,
    data: Array64,
) -> tuple[Array64, Array64, Array64 | None]:
    """Gradients in the weights ``(M,)``, in the points ``u`` ``(M, p)``, and in the targets ``y`` (M,) if they move.

    ``potentials`` are the points' centred ones; ``data`` ``(S,)`` is the (noised) sum of the data's. Noise shifts the
    residual's mean, which carries no information on a centred sum and is removed. Derivatives of log-likelihoods are
    evaluated in the precision of ``draws``.
    """
    residual = data - weights @ potentials
    residual -= residual.mean()
    residual /= len(residual)
    by_u, by_y = model.point_gradient(u, y, draws, residual.astype(draws.dtype, copy=False))
    return -(potentials @ residual), -weights[:, None] * by_u, None if by_y is None else -weights * by_y
