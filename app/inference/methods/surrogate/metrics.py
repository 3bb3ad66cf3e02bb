"""Metrics in which queries bound rows: from the rows' covariance to the least ellipsoid around them.

A query bounds the length of a row in a metric ``M``: ``f' M^-1 f`` for an information factor f. Noise has the
covariance ``M`` times a constant. The covariance of the rows gives little noise, but far rows exceed its bounds. The
least ellipsoid gives all rows similar lengths. Lewis weights make metrics between the two.
"""

import numpy as np

from app.inference.core.linear_algebra import invert
from app.inference.core.model import Array64

_SWEEPS = 8
"""Iterations of the fixed point; queries need no exact weights."""
_LEAST_TRACE = 1e-200
"""Trace of a Gram matrix that counts as zero."""
_RIDGE = 0.03
"""Part of the mean eigenvalue added to each; real rows may extend where noise leaves the draws no extent."""


def compute_lewis_metric(factors: Array64, power: float) -> Array64:
    """Compute the Gram matrix ``(D, D)`` with Lewis weights, of trace D.

    Lewis weights solve a fixed-point equation: the metric is ``sum_m l_m^(power - 2) F_m' F_m`` with lengths ``l_m`` in
    that metric. At ``power`` 2 all weights are equal. As the power grows, the metric approaches the least ellipsoid
    around the rows. Each iteration computes lengths, then the metric (Cohen & Peng, *STOC* 2015).

    Factors that are all zero have the identity as their metric.

    Args:
        factors: information factors ``(M, r, D)`` of M rows, r factors each.
        power: the order of the weights, at least 2.
    """
    count, _, size = factors.shape
    flat = factors.reshape(-1, size)
    metric, weights = np.eye(size), np.ones(count)
    for _ in range(_SWEEPS if power > 2 else 1):
        if power > 2:
            lengths = np.maximum(compute_squared_lengths(factors, metric), 1e-12)
            # The exponents of old and new weights sum to 1 on average: the plain fixed point diverges from order 4 on.
            weights = weights ** (1 - 2 / power) * (lengths / lengths.mean()) ** (1 - 2 / power)
        metric = (flat * np.repeat(weights, factors.shape[1])[:, None]).T @ flat / count
        trace = float(np.trace(metric))
        if not trace > _LEAST_TRACE:  # predictors may be so large that no row has information in single precision
            return np.eye(size)
        metric += _RIDGE * trace / size * np.eye(size)
        metric *= size / np.trace(metric)
    return metric


def compute_squared_lengths(factors: Array64, metric: Array64) -> Array64:
    """Compute ``sum_r f_r' metric^-1 f_r`` for each row, ``(M,)``.

    ``factors`` are ``(M, r, D)``, ``metric`` is ``(D, D)`` and invertible.
    """
    size = factors.shape[2]
    flat = factors.reshape(-1, size)
    return np.asarray(np.vecdot(flat @ invert(metric), flat).reshape(len(factors), -1).sum(axis=1))
