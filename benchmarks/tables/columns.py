"""Laws of feature columns: each maps a generator and a number of rows to declared columns with values."""

from collections.abc import Callable
from dataclasses import replace
from typing import Final

import numpy as np

from app.inference.core.facts import Column
from app.inference.core.model import Array64
from benchmarks.tables.drawn import Features, Values

Parts = list[tuple[Column, Values]]
Law = Callable[[np.random.Generator, int], Parts]
_FEWEST_ROWS, _MOST_ROWS, _MOST_VALUES = 200, 200_000, 3_000_000
_LEAST_SHARE: Final = 0.002
"""The least share of a rare level. In small tables, a rare level has at least five rows on average."""


def _make_real(values: Array64, half: float, center: float = 0.0) -> tuple[Column, Values]:
    return Column("", "real", center - half, center + half), values


def _make_integer(values: Values, lower: float, upper: float) -> tuple[Column, Values]:
    return Column("", "integer", lower, upper), np.asarray(values, dtype=np.float64)


def _draw_normal(rng: np.random.Generator, n: int) -> Parts:
    return [_make_real(rng.standard_normal(n), rng.uniform(3, 8)) for _ in range(rng.integers(1, 16))]


def _draw_some_normal(rng: np.random.Generator, n: int, most: int) -> Parts:
    return _draw_normal(rng, n)[: rng.integers(0, most + 1)]


def _draw_correlated(rng: np.random.Generator, n: int) -> Parts:
    common, share = rng.standard_normal(n), rng.uniform(0.3, 0.95)
    own = (rng.standard_normal(n) for _ in range(rng.integers(2, 16)))
    return [_make_real(np.sqrt(share) * common + np.sqrt(1 - share) * each, 6.0) for each in own]


def _draw_uniform(rng: np.random.Generator, n: int) -> Parts:
    return [_make_real(rng.uniform(-1, 1, n), 1.0) for _ in range(rng.integers(1, 13))]


def _draw_heavy_tails(rng: np.random.Generator, n: int) -> Parts:
    parts: Parts = []
    for _ in range(rng.integers(1, 11)):
        if rng.random() < 0.5:
            parts.append(_make_real(rng.standard_t(rng.uniform(2, 4), n), float(rng.choice([10, 30, 100]))))
        else:
            most = float(rng.choice([20, 50, 200]))
            parts.append(_make_real(np.exp(rng.uniform(0.7, 1.5) * rng.standard_normal(n)), most / 2, most / 2))
    return parts


def _draw_rare_levels(rng: np.random.Generator, n: int) -> Parts:
    parts, declared = _draw_some_normal(rng, n, 4), rng.random() < 0.5
    least = np.log(max(_LEAST_SHARE, min(5 / n, 0.04)))
    for _ in range(rng.integers(1, 7)):
        flags = (rng.random(n) < np.exp(rng.uniform(least, np.log(0.05)))) * 1.0
        parts.append((Column("", "binary"), flags) if declared else _make_integer(flags, 0, 1))
    return parts


def _draw_codes(rng: np.random.Generator, n: int) -> tuple[int, Values]:
    shares = np.arange(1.0, rng.integers(4, 14)) ** -rng.uniform(0.0, 2.0)
    return len(shares), rng.choice(len(shares), n, p=shares / shares.sum())


def _draw_categories(rng: np.random.Generator, n: int) -> Parts:
    parts = _draw_some_normal(rng, n, 3)
    for _ in range(rng.integers(1, 4)):
        levels, codes = _draw_codes(rng, n)
        parts.append((Column("", "categorical", categories=tuple(f"level {k}" for k in range(levels))), codes))
    return parts


def _draw_one_hot(rng: np.random.Generator, n: int) -> Parts:
    """Indicators as integers; in some tables all levels have one, so that they sum to one."""
    parts, first = _draw_some_normal(rng, n, 3), int(rng.random() < 0.7)
    for _ in range(rng.integers(1, 4)):
        levels, codes = _draw_codes(rng, n)
        parts += [_make_integer(codes == k, 0, 1) for k in range(first, levels)]
    return parts


def _draw_near_duplicates(rng: np.random.Generator, n: int) -> Parts:
    parts: Parts = []
    for _ in range(rng.integers(1, 7)):
        once = rng.standard_normal(n)
        parts += [_make_real(once, 6.0), _make_real(once + rng.uniform(0.01, 0.1) * rng.standard_normal(n), 6.0)]
    return parts


def _draw_isotropic(rng: np.random.Generator, n: int) -> Parts:
    return [_make_real(rng.standard_normal(n), 6.0) for _ in range(rng.integers(20, 61))]


def _draw_wide_bounds(rng: np.random.Generator, n: int) -> Parts:
    halves = np.exp(rng.uniform(np.log(10), np.log(300), rng.integers(1, 13)))
    return [_make_real(rng.standard_normal(n), half, rng.uniform(-0.7, 0.7) * half) for half in halves]


def _draw_constant(rng: np.random.Generator, n: int) -> Parts:
    kinds: Parts = [
        _make_real(np.full(n, rng.uniform(-1, 1)), 1.0),
        _make_real(np.zeros(n), 1.0),
        _make_integer(np.full(n, 3.0), 0, 3),
        _make_integer(np.full(n, 3.0), 3, 3),
        (Column("", "binary"), np.zeros(n)),
    ]
    kept = rng.permutation(len(kinds))[: rng.integers(1, 4)]
    return [*(kinds[place] for place in kept), *_draw_some_normal(rng, n, 5)]


def _draw_counts(rng: np.random.Generator, n: int) -> Parts:
    parts: Parts = []
    for _ in range(rng.integers(1, 9)):
        means = rng.gamma(1.0, 1.0, n) * rng.choice([0.3, 1.0, 3.0, 8.0])
        parts.append(_make_integer(np.minimum(rng.poisson(means), 50), 0, 50))
    return parts


def _draw_mixed(rng: np.random.Generator, n: int) -> Parts:
    """Up to five columns each of three other laws."""
    laws = [law for name, law in DESIGNS.items() if name not in {"isotropic, many columns", "mixed"}]
    chosen = (laws[place] for place in rng.permutation(len(laws))[:3])
    return [part for law in chosen for part in law(rng, n)[:5]]


DESIGNS: Final[dict[str, Law]] = {
    "normal": _draw_normal,
    "correlated": _draw_correlated,
    "uniform": _draw_uniform,
    "heavy tails": _draw_heavy_tails,
    "rare levels": _draw_rare_levels,
    "categories": _draw_categories,
    "one-hot, not declared": _draw_one_hot,
    "near-duplicates": _draw_near_duplicates,
    "isotropic, many columns": _draw_isotropic,
    "bounds too wide": _draw_wide_bounds,
    "constant columns": _draw_constant,
    "counts": _draw_counts,
    "mixed": _draw_mixed,
}


def draw_rows(rng: np.random.Generator, least: int = _FEWEST_ROWS, most: int = _MOST_ROWS) -> int:
    """Draw a number of rows, uniform on a logarithmic scale, with two digits."""
    rows = np.exp(rng.uniform(np.log(least), np.log(most)))
    unit = 10 ** np.floor(np.log10(rows) - 1)
    return int(np.round(rows / unit) * unit)


def draw_features(rng: np.random.Generator, rows: int | None = None, design: str | None = None) -> Features:
    """Draw columns of a law, by default any law and any number of rows."""
    design = str(rng.choice(list(DESIGNS))) if design is None else design
    rows = draw_rows(rng) if rows is None else rows
    parts = DESIGNS[design](rng, rows)
    kept = max(min(rows, _MOST_VALUES // len(parts)), 1) if rows else 0
    columns = tuple(replace(column, name=f"x{place}") for place, (column, _) in enumerate(parts))
    return Features(design, columns, tuple(values[:kept] for _, values in parts))
