"""Tables for comparisons of private methods: features ``(n, d)`` and labels 0 or 1 ``(n,)``.

Features have no intercept. Laws and seeds are fixed, so that figures of different versions are comparable.
``bnd15`` and ``bnd40`` are bounded as by a declaration. They have heavy tails, rare levels, and labels that do
not follow a logistic regression.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from app.inference.core.model import Array64


class Rows(NamedTuple):
    """Features and targets."""

    x: Array64
    y: Array64


def draw_synth100k() -> tuple[Rows, Rows]:
    """100,000 rows of 50 standard normal features, truth of length 2; 20,000 held-out rows."""
    rng = np.random.default_rng(0)
    truth = rng.standard_normal(51)
    truth *= 2 / np.linalg.norm(truth)

    def draw(n: int) -> Rows:
        x = rng.standard_normal((n, 50))
        return Rows(x, (rng.random(n) < expit(x @ truth[:-1] + truth[-1])).astype(np.float64))

    return draw(100_000), draw(20_000)


def draw_bnd15(n: int = 50_000) -> Rows:
    """Fourteen features: heavy-tailed amounts in wide bounds, two rare flags, seven levels (one in 0.3 % of rows)."""
    rng = np.random.default_rng(11)
    amount = np.clip(rng.lognormal(0, 1.2, n), 0, 60) / 30 - 1
    change = np.clip(rng.standard_t(2.5, n), -40, 40) / 40
    age = (np.clip(rng.normal(40, 12, n), 18, 100) - 18) / 41 - 1
    income = np.clip(np.exp(0.02 * (age * 41) + rng.normal(0, 0.9, n)) * 20, 0, 1000) / 500 - 1
    flags = (rng.random((n, 2)) < [0.01, 0.003]) * 1.0
    level = _indicators(rng, n, np.array([0.55, 0.25, 0.12, 0.05, 0.02, 0.007, 0.003]))
    often = (rng.random((n, 1)) < 0.3) * 1.0
    x = np.column_stack((amount, change, age, income, flags, level, often))
    scales = np.array([2, 5, 1.5, 2, 1, 1, *[0.7] * 7, 1, 0.5])
    truth = rng.normal(0, 1, 15) * scales
    logit = np.column_stack((x, np.ones(n))) @ truth + 0.6 * np.abs(age) * often[:, 0]
    return Rows(x, _labels(rng, logit - (logit.mean() + 0.8)))


def draw_bnd40(n: int = 50_000) -> Rows:
    """Thirty-nine features: ten of a multivariate t in wide bounds, three log-normal, 26 levels of Zipf's law."""
    rng = np.random.default_rng(12)
    root = np.linalg.cholesky(0.5 * np.ones((10, 10)) + 0.5 * np.eye(10))
    common = rng.normal(size=(n, 10)) @ root.T
    heavy = common / np.sqrt(rng.gamma(2.0, 0.5, (n, 1)))
    bounds = np.array([6, 6, 10, 10, 20, 20, 50, 50, 100, 100])
    numbers = np.clip(heavy, -bounds, bounds) / bounds
    amounts = np.clip(np.exp(common[:, :3] + rng.normal(0, 0.5, (n, 3))), 0, 100) / 50 - 1
    levels = [_indicators(rng, n, _zipf(count, power)) for count, power in ((12, 1.5), (9, 2.0), (5, 1.0))]
    x = np.column_stack((numbers, amounts, *levels))
    truth = rng.normal(0, 1, 40)
    truth[:10] *= np.minimum(bounds * 0.25, 8)
    truth[10:13] *= 2
    truth[13:] *= 0.6
    logit = np.column_stack((x, np.ones(n))) @ truth
    return Rows(x, _labels(rng, logit - logit.mean() - 1 + 0.3 * np.tanh(heavy[:, 0] * heavy[:, 1])))


def _zipf(levels: int, power: float) -> Array64:
    shares = np.arange(1, levels + 1) ** -power
    return np.asarray(shares / shares.sum())


def _indicators(rng: np.random.Generator, n: int, shares: Array64) -> Array64:
    return np.eye(len(shares))[rng.choice(len(shares), n, p=shares)]


def _labels(rng: np.random.Generator, logit: NDArray[np.float64]) -> Array64:
    return np.asarray((rng.random(len(logit)) < expit(logit)).astype(np.float64))
