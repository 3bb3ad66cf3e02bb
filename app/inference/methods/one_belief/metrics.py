"""Metrics of queries: between the covariance of the believed rows and the least ellipsoid around them."""

import numpy as np

from app.inference.core.model import Array64

_SWEEPS = 6
_RIDGE = 1e-3


def lewis_metric(factors: Array64, power: float) -> Array64:
    """Compute the Gram matrix ``(D, D)`` with Lewis weights of order ``power``, of trace D.

    ``factors`` are ``(M, r, D)``. At ``power`` 2 it is the Gram matrix itself; as the power grows, it tends to the
    least ellipsoid around the rows. The iteration is of Cohen & Peng (*STOC* 2015).
    """
    count, _, size = factors.shape
    flat = factors.reshape(-1, size)
    metric = np.eye(size)
    for _ in range(_SWEEPS if power > 2 else 1):
        weights = np.ones(count)
        if power > 2:
            lengths = np.maximum(squared_lengths(factors, metric), 1e-12)
            weights = (lengths / lengths.mean()) ** (power / 2 - 1)
        metric = (flat * np.repeat(weights, factors.shape[1])[:, None]).T @ flat / count
        metric += _RIDGE * np.trace(metric) / size * np.eye(size)
        metric *= size / np.trace(metric)
    return metric


def squared_lengths(factors: Array64, metric: Array64) -> Array64:
    """Compute ``sum_r f_r' metric^-1 f_r`` for each draw, ``(M,)``."""
    size = factors.shape[2]
    flat = factors.reshape(-1, size)
    return np.asarray(np.vecdot(flat @ np.linalg.inv(metric), flat).reshape(len(factors), -1).sum(axis=1))
