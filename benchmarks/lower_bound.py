"""A lower bound of the KL of coresets of real rows: Proposition 1 of Bayesian Pseudocoresets (NeurIPS 2020).

Assume N rows ``x_n ~ N(0, I)`` in d dimensions, the likelihood ``N(theta, I)`` and the prior ``theta ~ N(0, I)``. With
probability at least 1 - delta over the rows, every weighting of every M rows has
``KL >= (N - M) / (2 (1 + N)) F^-1(delta / C(N, M))``. F is the distribution function of chi squared with d - M degrees.
"""

import numpy as np
from scipy.optimize import brentq
from scipy.special import gammaln, logsumexp
from scipy.stats import chi2


def compute_subset_lower_bound(rows: int, size: int, dimension: int, delta: float) -> float:
    """The bound in nats. It is zero, and so trivial, for ``size >= dimension``.

    Raises:
        ValueError: for a size outside 0..rows, a dimension below 1 or a delta outside (0, 1).
    """
    if not (0 <= size <= rows and dimension >= 1 and 0 < delta < 1):
        raise ValueError("needs 0 <= size <= rows, dimension >= 1 and 0 < delta < 1")
    if size >= dimension:
        return 0.0
    subsets = gammaln(rows + 1) - gammaln(size + 1) - gammaln(rows - size + 1)
    return 0.5 * (rows - size) / (1 + rows) * chi_squared_quantile(float(np.log(delta) - subsets), dimension - size)


def chi_squared_quantile(log_probability: float, degrees: int) -> float:
    """The x with ``log F(x) = log_probability``.

    The probability may be too small for a double.
    """
    least = (log_probability + gammaln(degrees / 2 + 1)) * 2 / degrees
    most = np.log(chi2.isf(1e-14, degrees))
    log_quantile = brentq(lambda log_x: log_chi_squared(log_x, degrees) - log_probability, least, most, xtol=1e-12)
    return float(np.exp(log_quantile))


def log_chi_squared(log_x: float, degrees: int) -> float:
    """``log F(x)`` by a series.

    With ``a = degrees / 2``, it is ``F = (x/2)^a e^{-x/2} sum_k (x/2)^k / Gamma(a + k + 1)``.
    """
    log_half, a = log_x - np.log(2), degrees / 2
    half = np.exp(log_half)
    k = np.arange(int(half + 40 * np.sqrt(half)) + 100)
    return float(a * log_half - half + logsumexp(k * log_half - gammaln(a + k + 1)))
