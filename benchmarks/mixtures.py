"""Random tables that mix columns of every kind.

Defaults were chosen on named tables, so these are for their test. Each law of :mod:`benchmarks.unseen` has one
difficulty; these tables have several, in random shares:

- small and large tables, correlated columns, amounts, levels, flags and counts;
- bounds that are too wide;
- labels that are rare, nearly certain, or almost independent of the columns.
"""

from collections.abc import Callable
from typing import Final

import numpy as np
from scipy.special import expit

from app.inference.core.model import Array64
from benchmarks.designs import Rows

_FIRST_SEED: Final = 777
_ROWS: Final = (5_000, 10_000, 20_000, 50_000, 100_000, 200_000)
_FEATURES: Final[dict[float, float]] = {3: 0.1, 6: 0.15, 10: 0.2, 15: 0.2, 25: 0.15, 40: 0.1, 60: 0.1}
_SPREADS: Final = {0.5: 0.1, 1.0: 0.25, 1.5: 0.3, 2.0: 0.2, 3.0: 0.1, 5.0: 0.05}
"""Standard deviations of logits, with their probabilities."""
_OFFSETS: Final = {0.0: 0.3, 0.5: 0.25, -1.0: 0.25, -2.0: 0.12, -3.0: 0.08}
_WIDER: Final = (1.0, 1.0, 1.0, 2.0, 5.0)
"""Factors by which bounds are too wide."""
_CONCENTRATED: Final = 0.4
"""The concentration of the Dirichlet law of the kinds' shares. Most tables have few kinds."""
_FEW, _SQUARED = 0.3, 0.15
"""The share of columns with an effect in half of the tables, and the share of tables with a square in the logit."""


def _clip(values: Array64, bound: float) -> Array64:
    return np.asarray(np.clip(values, -bound, bound) / bound)


def _amounts(rng: np.random.Generator, common: Array64) -> Array64:
    most = float(rng.choice([20, 50, 100]))
    return np.asarray(np.clip(np.exp(rng.uniform(0.4, 1.4) * rng.normal(size=common.shape)), 0, most) / (most / 2) - 1)


def _student(rng: np.random.Generator, common: Array64) -> Array64:
    bound, freedom = float(rng.choice([10, 20, 50])), float(rng.choice([2.5, 4, 8]))
    return _clip(rng.standard_t(freedom, common.shape), bound)


def _flags(rng: np.random.Generator, common: Array64) -> Array64:
    """Flags that are 1 in 0.3 % to 50 % of the rows."""
    return np.asarray((rng.random(common.shape) < np.exp(rng.uniform(np.log(0.003), np.log(0.5)))) * 1.0)


def _levels(rng: np.random.Generator, common: Array64) -> Array64:
    """Indicators of four to nine levels by Zipf's law; the first level has no column."""
    shares = np.arange(1.0, rng.integers(5, 11)) ** -rng.uniform(0.3, 2)
    return np.asarray(np.eye(len(shares))[rng.choice(len(shares), len(common), p=shares / shares.sum())][:, 1:])


def _counts(rng: np.random.Generator, common: Array64) -> Array64:
    means = rng.gamma(1, 1, common.shape) * rng.choice([0.3, 1, 3])
    return np.asarray(np.clip(rng.poisson(means), 0, 20) / 10 - 1)


KINDS: Final[dict[str, Callable[[np.random.Generator, Array64], Array64]]] = {
    "normal": lambda rng, common: _clip(rng.normal(size=common.shape), 6),
    "correlated": lambda rng, common: _clip((rng.normal(size=common.shape) + common) / np.sqrt(2), 6),
    "uniform": lambda rng, common: rng.uniform(-1, 1, common.shape),
    "amounts": _amounts,
    "Student's t": _student,
    "flags": _flags,
    "levels": _levels,
    "counts": _counts,
}
"""Columns within [-1, 1], from a generator and the common part of correlated columns, ``(n, 1)``."""


def _of(rng: np.random.Generator, law: dict[float, float]) -> float:
    return float(rng.choice(list(law), p=list(law.values())))


def draw_mixture(seed: int) -> tuple[str, Rows]:
    """A description of the table, and the table with features within [-1, 1]."""
    rng = np.random.default_rng((_FIRST_SEED, seed))
    n, features, wider = int(rng.choice(_ROWS)), int(_of(rng, _FEATURES)), float(rng.choice(_WIDER))
    shares, common = rng.dirichlet(np.full(len(KINDS), _CONCENTRATED)), 2 * rng.random() * rng.normal(size=(n, 1))
    columns, kinds = np.empty((n, 0)), list[str]()
    while len(kinds) < features:
        kind = str(rng.choice(list(KINDS), p=shares))
        columns = np.column_stack([columns, KINDS[kind](rng, common)])
        kinds += [kind] * (columns.shape[1] - len(kinds))
    counts = ", ".join(f"{kind} {kinds[:features].count(kind)}" for kind in KINDS if kind in kinds)
    what = f"{n:,} x {features}: {counts}" + (f"; bounds {wider:g} times as wide" if wider > 1 else "")
    return what, _draw_labels(rng, columns[:, :features] / wider)


def _draw_labels(rng: np.random.Generator, x: Array64) -> Rows:
    """Labels from a linear logit of the scaled columns, or with a square too."""
    spread, offset, share = _of(rng, _SPREADS), _of(rng, _OFFSETS), float(rng.choice([_FEW, 1.0]))
    truth = np.asarray(rng.normal(size=x.shape[1]))
    truth[rng.random(x.shape[1]) >= share] = 0
    logit = (x / np.maximum(x.std(axis=0), 1e-9)) @ (truth if truth.any() else np.ones_like(truth))
    logit = (logit - logit.mean()) * spread / max(float(logit.std()), 1e-9) + offset
    if rng.random() < _SQUARED:
        logit += 0.5 * (np.clip((logit - offset) / spread, -3, 3) ** 2 - 1)
    return Rows(x, (rng.random(len(x)) < expit(logit)).astype(np.float64))
