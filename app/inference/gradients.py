"""Monte Carlo gradients of ``KL(pi_{u,w} || pi)`` in a pseudocoreset (Bayesian Pseudocoresets, 2020, Eq. 5).

With ``g_s`` the potentials centred over S draws and the residual ``r_s = data_s - sum_m w_m g_s(u_m)``:
``grad_w = -(1/S) sum_s g_s(u) r_s`` and ``grad_u_m = -(w_m/S) sum_s r_s grad_u f(u_m, theta_s)``, and likewise in a
target that can move.
"""

import numpy as np

from app.inference.protocol import Array64, Model


def centred_potentials(model: Model, rows: Array64, draws: Array64) -> Array64:
    """``G``: log-likelihoods ``(n, S)`` of ``rows`` ``(n, p)`` at ``draws`` ``(S, D)`` less their mean over draws."""
    potentials: Array64 = model.log_likelihood(rows, draws)
    potentials -= (potentials @ np.full(len(draws), 1 / len(draws)))[:, None]
    return potentials


def psvi_gradients(
    model: Model,
    u: Array64,
    y: Array64,
    weights: Array64,
    draws: Array64,
    *,
    potentials: Array64,
    data: Array64,
) -> tuple[Array64, Array64, Array64 | None]:
    """Gradients in the weights ``(M,)``, in the points ``u`` ``(M, p)``, and in the targets ``y`` (M,) if they move.

    ``potentials`` are the points' centred ones; ``data`` ``(S,)`` is the (noised) sum of the data's. Noise shifts the
    residual's mean, which carries no information on a centred sum and is removed.
    """
    residual = data - weights @ potentials
    residual -= residual.mean()
    residual /= len(residual)
    by_u, by_y = model.point_gradient(u, y, draws, residual)
    return -(potentials @ residual), -weights[:, None] * by_u, None if by_y is None else -weights * by_y
