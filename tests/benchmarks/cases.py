"""A small table for measurements."""

import numpy as np
from scipy.special import expit

from benchmarks.cases import Case, make_logistic
from benchmarks.designs import Rows

TRUTH = np.array([1.5, -2.0, 0.5])


def rows(n: int, seed: int = 0) -> Rows:
    rng = np.random.default_rng(seed)
    x = np.clip(rng.standard_normal((n, 2)), -4, 4)
    return Rows(x, (rng.random(n) < expit(x @ TRUTH[:-1] + TRUTH[-1])).astype(np.float64))


def case(n: int = 200, bound: float = 4.0) -> Case:
    return make_logistic("small", rows(n), bound=bound, held_out=rows(50, 1))
