"""Eighteen named tables with other shapes than the four of :mod:`benchmarks.designs`.

They are correlated, collinear, rare, heavy-tailed, on mixed scales, nearly separable, unbalanced, or do not follow a
logistic regression. ``n`` and ``seed`` draw another table of the same law, so that a choice made on one table can be
tested on another.
"""

from collections.abc import Callable
from typing import Final, NamedTuple

import numpy as np
from scipy.special import expit

from app.inference.core.model import Array64
from benchmarks.designs import Rows


class Law(NamedTuple):
    """A law of tables.

    ``features(rng, n)`` ``(n, d)`` are within ``[-bound, bound]``. Logits have the standard deviation ``spread`` around
    ``offset``. Without ``straight``, labels do not follow a logistic regression.
    """

    features: Callable[[np.random.Generator, int], Array64]
    n: int
    spread: float
    offset: float = 0.0
    bound: float = 1.0
    straight: bool = True


def _normal(rng: np.random.Generator, n: int, d: int, correlation: float = 0.0) -> Array64:
    """Standard normal columns with a common ``correlation``."""
    return np.asarray(
        np.sqrt(1 - correlation) * rng.normal(size=(n, d)) + np.sqrt(correlation) * rng.normal(size=(n, 1))
    )


def _chain(rng: np.random.Generator, n: int) -> Array64:
    columns = [rng.normal(size=n)]
    for _ in range(19):
        columns.append(0.8 * columns[-1] + 0.6 * rng.normal(size=n))
    return np.column_stack(columns)


def _twins(rng: np.random.Generator, n: int) -> Array64:
    once = rng.normal(size=(n, 6))
    return np.column_stack((once, once + 0.05 * rng.normal(size=(n, 6))))


def _levels(rng: np.random.Generator, n: int) -> Array64:
    laws = [np.arange(1, count + 1) ** -power for count, power in ((12, 1.0), (9, 1.5), (7, 0.5))]
    hot = [np.eye(len(law))[rng.choice(len(law), n, p=law / law.sum())] for law in laws]
    return np.column_stack((*hot, rng.uniform(-1, 1, n)))


def _flags(rng: np.random.Generator, n: int, often: Array64 | list[float]) -> Array64:
    return np.asarray((rng.random((n, len(often))) < often) * 1.0)


def _within(x: Array64, bound: float) -> Array64:
    return np.asarray(np.clip(x, -bound, bound) / bound)


def _rare(rng: np.random.Generator, n: int) -> Array64:
    flags = _flags(rng, n, [0.3, 0.1, 0.05, 0.02, 0.01, 0.005, 0.003, 0.002])
    return np.column_stack((flags, _within(_normal(rng, n, 3), 4)))


def _clusters(rng: np.random.Generator, n: int) -> Array64:
    centres, which = rng.normal(size=(4, 24)), rng.choice(4, n, p=[0.5, 0.3, 0.15, 0.05])
    return np.asarray(0.8 * (centres[which] + 0.7 * rng.normal(size=(n, 24))))


def _many(rng: np.random.Generator, n: int) -> Array64:
    flags = _flags(rng, n, np.linspace(0.02, 0.5, 14))
    return np.column_stack((rng.uniform(-1, 1, (n, 25)), flags, _within(_normal(rng, n, 20), 4)))


def _large(rng: np.random.Generator, n: int) -> Array64:
    return np.column_stack(
        (_within(rng.standard_t(4, (n, 3)), 20), rng.uniform(-1, 1, (n, 2)), _flags(rng, n, [0.01, 0.4]))
    )


def _wide(rng: np.random.Generator, n: int) -> Array64:
    return _within(rng.normal(size=(n, 14)) * np.geomspace(0.003, 0.25, 14) + rng.uniform(-0.4, 0.4, 14), 1)


def _counts(rng: np.random.Generator, n: int) -> Array64:
    means = rng.gamma(1.0, 1.0, (n, 1)) * np.array([0.3, 1, 3, 8, 0.1])
    return np.asarray(np.clip(rng.poisson(means), 0, 30) / 15 - 1)


def _amounts(rng: np.random.Generator, n: int) -> Array64:
    return np.asarray(np.clip(np.exp(rng.normal(size=(n, 8)) * np.linspace(0.5, 1.3, 8)), 0, 50) / 25 - 1)


def _sparse(rng: np.random.Generator, n: int) -> Array64:
    return np.where(rng.random((n, 24)) < 0.05, _within(_normal(rng, n, 24), 4), 0.0)


LAWS: Final = {
    "equal correlations 0.3": Law(lambda rng, n: _normal(rng, n, 15, 0.3), 20_000, 1.5, 0.5, 8),
    "equal correlations 0.9": Law(lambda rng, n: _normal(rng, n, 11, 0.9), 30_000, 1.5, -0.5, 8),
    "autoregression": Law(_chain, 60_000, 2, 0, 8),
    "near-duplicate columns": Law(_twins, 40_000, 1.5, 0, 8),
    "one-hot levels": Law(_levels, 100_000, 1.2, -0.7),
    "rare flags": Law(_rare, 50_000, 0.6, -0.3),
    "log-normal": Law(_amounts, 20_000, 1.5, -0.5),
    "Student's t": Law(lambda rng, n: _within(rng.standard_t(2.5, (n, 10)), 30), 30_000, 1.5),
    "bounds far wider than data": Law(_wide, 50_000, 1.2, 0.4),
    "sparse": Law(_sparse, 100_000, 1.3, 0.3),
    "nearly separable": Law(lambda rng, n: _normal(rng, n, 7), 50_000, 8, 0, 8),
    "two in a hundred positive": Law(lambda rng, n: _normal(rng, n, 10), 100_000, 1.2, -4.5, 8),
    "no logistic regression": Law(lambda rng, n: _normal(rng, n, 9), 50_000, 2, 0, 8, straight=False),
    "three features": Law(lambda rng, n: _normal(rng, n, 3), 10_000, 1.5, 0.3, 8),
    "clusters": Law(_clusters, 40_000, 1.5, 0, 8),
    "sixty parameters": Law(_many, 300_000, 1.5, 0.4),
    "many rows": Law(_large, 300_000, 2, -1),
    "counts": Law(_counts, 15_000, 1.2),
}


def draw_unseen(name: str, *, seed: int = 0, n: int | None = None) -> Rows:
    """A table of the law ``name``. Coefficients of standardised columns are normal, then scaled."""
    law, place = LAWS[name], list(LAWS).index(name)
    rng = np.random.default_rng((101 + place, 1 + seed))
    x = law.features(rng, law.n if n is None else n)
    logit = (x / np.maximum(x.std(axis=0), 1e-9)) @ rng.normal(size=x.shape[1])
    logit = (logit - logit.mean()) * law.spread / logit.std()
    if law.straight:
        return Rows(x, (rng.random(len(x)) < expit(logit + law.offset)).astype(np.float64))
    is_positive = logit + 0.7 * (x[:, 0] ** 2 - 1) + 0.5 * rng.standard_cauchy(len(x)) > 0
    is_flipped = rng.random(len(x)) < 0.05
    return Rows(x, (is_positive ^ is_flipped).astype(np.float64))
