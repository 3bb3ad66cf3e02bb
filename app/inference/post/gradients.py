"""Monte Carlo gradients of ``KL(pi_{u,w} || pi)`` in a pseudocoreset (Bayesian Pseudocoresets, 2020, Eq. 5).

Let ``g_s`` be the potentials, centred over S draws, and ``r_s = data_s - sum_m w_m g_s(u_m)`` the residual. Then
``grad_w = -(1/S) sum_s g_s(u) r_s`` and ``grad_u_m = -(w_m/S) sum_s r_s grad_u f(u_m, theta_s)``. The gradient in a
continuous target has the same form.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from app.inference.core.model import Array64, Model, PullBack


def compute_centred_potentials(model: Model, rows: NDArray[Any], draws: NDArray[Any]) -> Array64:
    """Compute log-likelihoods ``(n, S)``, centred over draws.

    ``rows`` are ``(n, row_width)``, ``draws`` ``(S, D)``. They are evaluated in the precision of both.
    """
    return centre(model.log_likelihood(rows, draws)).astype(np.float64, copy=False)


def centre(potentials: NDArray[Any]) -> NDArray[Any]:
    """Subtract the mean over draws from ``potentials`` ``(n, S)``, in place."""
    draws = potentials.shape[1]
    potentials -= (potentials @ np.full(draws, 1 / draws, dtype=potentials.dtype))[:, None]
    return potentials


def compute_psvi_gradients(
    pull_back: PullBack, weights: Array64, potentials: NDArray[Any], residual: Array64
) -> tuple[Array64, Array64, Array64 | None]:
    """Compute the gradients of the KL divergence in weights, points and targets.

    Args:
        pull_back: from potentials to points (:meth:`app.inference.core.model.Model.point_potentials`).
        weights: of the points, ``(M,)``.
        potentials: of the points, centred, ``(M, S)``; their precision is used.
        residual: the (noised) sum of the data's centred potentials minus the points', ``(S,)``. Noise shifts its mean,
            which has no information for a centred sum and is removed.

    Returns:
        The gradients ``(M,)`` in weights, ``(M, p)`` in points, and ``(M,)`` in targets, or None if they stay fixed.
    """
    draws = len(residual)
    share = residual * (1 / draws)
    share -= share.sum() / draws
    by_u, by_y = pull_back(share.astype(potentials.dtype, copy=False))
    by_u = by_u.astype(np.float64, copy=False)
    by_u *= -weights[:, None]
    return -(potentials @ share), by_u, None if by_y is None else -weights * by_y
