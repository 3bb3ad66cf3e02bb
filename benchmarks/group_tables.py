"""Census income with groups of people: age in eight bands by race by sex, 80 groups.

As in the thesis, section 5.3.4, a third of the groups has no outliers, a third has 10 % and a third 20 %.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from app.inference.core.facts import Column, DeclaredFacts
from app.inference.core.model import Array64
from app.inference.core.row_source import RowSource
from app.inference.post.laplace import Laplace, fit_laplace
from benchmarks.adult import TRAIN, load_adult10, read_rows, require
from benchmarks.cases import Case, make_design_rows, make_logistic
from benchmarks.designs import Rows
from benchmarks.measures import compute_prediction

GROUPED_BY: Final = ("age", "race", "sex")
BOUND: Final = 4.0
"""Declared bound of each component; rows are clamped to it, outliers too."""
SHARES: Final = (0.0, 0.1, 0.2)
FEATURE_VARIANCE: Final = 5.0
_EDGES: Final = (25, 30, 35, 40, 45, 50, 60)
_AGE, _RACE, _SEX = 0, 8, 9


class GroupedRows:
    """Rows of ``source`` with further columns, which make groups."""

    def __init__(self, source: RowSource, columns: Mapping[str, NDArray[Any]]) -> None:
        self.slots, self.rows_per_slot = source.slots, source.rows_per_slot
        self._source, self._columns = source, columns

    def gather(self, indices: NDArray[np.int64]) -> Mapping[str, NDArray[Any]]:
        """See :class:`app.inference.core.row_source.RowSource`."""
        return {**self._source.gather(indices), **{name: values[indices] for name, values in self._columns.items()}}


@dataclass(frozen=True, eq=False)
class GroupedCase:
    """A table in groups: ``codes`` ``(N,)`` of the rows, and shares of ``outliers`` ``(G,)``.

    ``case.exact`` is the posterior of the rows that are no outliers.
    """

    case: Case
    codes: NDArray[np.int64]
    outliers: Array64
    rows: Array64

    @property
    def sizes(self) -> NDArray[np.int64]:
        """The number of rows of each group."""
        return np.bincount(self.codes, minlength=len(self.outliers))

    def fit(self, weight: Array64) -> Laplace:
        """Compute the posterior of rows with the weights ``(N,)``."""
        model, _, prior = self.case.problem
        used = weight > 0
        return fit_laplace(model, self.rows[used], weight[used], prior, prior.mean)

    def fit_groups(self, weight: Array64) -> Laplace:
        """Compute the posterior of groups with the weights ``(G,)``."""
        return self.fit(weight[self.codes])

    def measure_accuracy(self, posterior: Laplace) -> float:
        """Compute the accuracy of the posterior on held-out rows without outliers."""
        return compute_prediction(self.case, posterior).accuracy


def make_grouped_case(seed: int, shares: tuple[float, ...] = SHARES) -> GroupedCase:
    """Make the table; ``seed`` decides the shares of outliers of the groups, and the outliers.

    Raises:
        MissingData: the files of census income are missing.
    """
    train, test = load_adult10()
    columns, columns_of_table = _read_groups()
    sizes = [len(column.categories) or 2 for column in columns]
    codes = np.zeros(len(train[1]), dtype=np.int64)
    for column, size in zip(columns, sizes, strict=True):
        codes = codes * size + columns_of_table[column.name].astype(np.int64)
    rng = np.random.default_rng((seed, 2))
    outliers = rng.permutation(np.resize(shares, math.prod(sizes)))
    rows, is_outlier = spoil(Rows(*train), outliers[codes], rng)
    case = make_logistic(f"adult10 in groups, {seed}", rows, bound=BOUND, held_out=Rows(*test))
    facts = DeclaredFacts((*case.facts.columns, *columns), case.facts.slots, case.facts.unit, "private", 1e-6)
    case = replace(case, facts=facts, source=GroupedRows(case.source, columns_of_table))
    x, y = make_design_rows(case)
    folded = np.asarray(case.problem.model.fold(x, y), dtype=np.float64)
    grouped = GroupedCase(case, codes, outliers, folded)
    return replace(grouped, case=replace(case, exact=grouped.fit((~is_outlier).astype(np.float64))))


def _read_groups() -> tuple[tuple[Column, ...], dict[str, NDArray[Any]]]:
    raw = read_rows(require(TRAIN))
    races, sexes = (sorted(set(raw[:, place])) for place in (_RACE, _SEX))
    bands = tuple(f"from {low}" for low in (17, *_EDGES))
    columns = (
        Column("age", "categorical", categories=bands),
        Column("race", "categorical", categories=tuple(map(str, races))),
        Column("sex", "categorical", categories=tuple(map(str, sexes))),
    )
    values = {
        "age": np.digitize(raw[:, _AGE].astype(int), _EDGES).astype(np.uint16),
        "race": np.searchsorted(races, raw[:, _RACE]).astype(np.uint16),
        "sex": np.searchsorted(sexes, raw[:, _SEX]).astype(np.uint16),
    }
    return columns, values


def spoil(rows: Rows, share: Array64, rng: np.random.Generator) -> tuple[Rows, NDArray[np.bool_]]:
    """Make outliers of a random ``share`` ``(N,)`` of the rows: half of the features wrong, and the label flipped."""
    x, y, (n, d) = rows.x.copy(), rows.y.copy(), rows.x.shape
    chosen = np.flatnonzero(rng.random(n) < share)
    columns = rng.permuted(np.tile(np.arange(d), (len(chosen), 1)), axis=1)[:, : d // 2]
    x[chosen[:, None], columns] = rng.normal(0, math.sqrt(FEATURE_VARIANCE), columns.shape)
    y[chosen] = 1 - y[chosen]
    is_outlier = np.zeros(n, dtype=bool)
    is_outlier[chosen] = True
    return Rows(np.clip(x, -BOUND, BOUND), y), is_outlier
