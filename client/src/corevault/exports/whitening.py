"""Coordinates in which samplers move easily, and the noise of a release in them."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cholesky, eigh

from corevault.gaussian import Gaussian

Array = NDArray[np.float64]
_SMALLEST = 1e-12  # eigenvalues below this share of the largest are rounding errors


@dataclass(frozen=True, eq=False)
class Whitening:
    """``theta = centre + root z``, with ``z`` near a standard normal; ``coefficients = theta + noise_root e``.

    ``centre`` ``(D,)`` and ``root`` ``(D, D)`` are of the Laplace approximation. So samplers need few steps, and start
    near the mode. ``e`` ``(R,)`` is standard normal. ``noise_root`` ``(D, R)`` is a root of the covariance of the
    release's noise. R is 0 if there is no noise.
    """

    centre: Array
    root: Array
    noise_root: Array


def whiten(fit: Gaussian, noise: Gaussian | None) -> Whitening:
    """The coordinates for a fit without noise, and the root of the noise."""
    return Whitening(fit.mean, cholesky(fit.covariance, lower=True), _root_of(noise, len(fit.mean)))


def _root_of(noise: Gaussian | None, size: int) -> Array:
    if noise is None:
        return np.zeros((size, 0))
    values, vectors = eigh(noise.covariance)
    kept = values > _SMALLEST * max(float(values[-1]), 0.0)
    root: Array = vectors[:, kept] * np.sqrt(values[kept])
    return root
