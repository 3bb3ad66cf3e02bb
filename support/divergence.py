"""The divergence of two normal approximations of a posterior."""

import numpy as np
from scipy.linalg import solve_triangular

from app.inference.post.laplace import Laplace


def compute_divergence(approximate: Laplace, exact: Laplace) -> float:
    """Compute KL(approximate, exact) of the two normal distributions, in nats."""
    ratio = solve_triangular(approximate.factor, exact.factor, lower=True)
    shift = exact.factor.T @ (approximate.mean - exact.mean)
    logs = np.log(np.diag(approximate.factor)).sum() - np.log(np.diag(exact.factor)).sum()
    return float(0.5 * (np.sum(ratio**2) - len(shift) + shift @ shift) + logs)
