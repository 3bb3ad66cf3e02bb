"""Monte Carlo gradients of ``KL(pi_{u,w} || pi)`` in a pseudocoreset (Bayesian Pseudocoresets, 2020, Eq. 5).

With ``g_s`` the potentials centred over S draws and the residual ``r_s = data_s - sum_m w_m g_s(u_m)``:
``grad_w = -(1/S) sum_s g_s(u) r_s`` and ``grad_u_m = -(w_m/S) sum_s r_s grad_u f(u_m, theta_s)``, and likewise in a
target that can move.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from app.inference.core.model import Array64, Model, PullBack


def centred_potentials(model: Model, rows: NDArray[Any], draws: NDArray[Any]) -> Array64:
    """``G`` ``(n, S)``: log-likelihoods of ``rows`` ``(n, row_width)`` at ``draws`` ``(S, D)``, centred over draws.

    Log-likelihoods are evaluated in the precision of ``rows`` and ``draws``.
    """
    return centre(model.log_likelihood(rows, draws)).astype(np.float64, copy=False)


def centre(potentials: NDArray[Any]) -> NDArray[Any]:
    """``(n, S)`` less their mean over draws; written over ``potentials``."""
    draws = potentials.shape[1]
    potentials -= (potentials @ np.full(draws, 1 / draws, dtype=potentials.dtype))[:, None]
    return potentials


def psvi_gradients(
    pull_back: PullBack, weights: Array64, potentials: NDArray[Any], residual: Array64
) -> tuple[Array64, Array64, Array64 | None]:
    """Gradients in the weights ``(M,)``, in the points ``u`` ``(M, p)``, and in the targets ``y`` (M,) if they move.

    ``potentials`` are the points' centred ones and ``pull_back`` goes from them to the points
    (:meth:`app.inference.core.model.Model.point_potentials`), in the potentials' precision; ``residual`` ``(S,)`` is
    what the (noised) sum of the data's exceeds theirs by. Noise shifts the residual's mean, which carries no
    information on a centred sum and is removed.
    """
    draws = len(residual)
    share = residual * (1 / draws)
    share -= share.sum() / draws
    by_u, by_y = pull_back(share.astype(potentials.dtype, copy=False))
    by_u = by_u.astype(np.float64, copy=False)
    by_u *= -weights[:, None]
    return -(potentials @ share), by_u, None if by_y is None else -weights * by_y
