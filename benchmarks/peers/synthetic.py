"""Tables of codes for synthetic data, and the posterior of a synthetic table.

A numeric column of many values becomes bins. Half of their edges are exact quantiles of the private table, and half
have equal distances. Each bin decodes to its exact mean. Both are presents to the peer, which would have to buy them.
"""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from app.inference.core.model import Array64
from app.inference.post.laplace import fit_laplace
from benchmarks.peers.problem import Belief
from benchmarks.peers.tables import PeerTable
from benchmarks.tables.drawn import Features, compute_coordinates

Codes = NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class CodedTable:
    """Integer codes ``(n, k + 1)`` with the target last.


    ``sizes`` ``(k + 1,)`` are the numbers of codes. ``values`` holds the value of each code for each feature.
    """

    codes: Codes
    sizes: Codes
    values: tuple[Array64, ...]


def encode_table(table: PeerTable, bins: int) -> CodedTable:
    """Encode features with at most ``bins`` codes for each number."""
    parts = [
        (np.asarray(values, dtype=np.int64), np.arange(float(len(column.categories))))
        if column.type == "categorical"
        else bin_values(np.asarray(values, dtype=np.float64), bins)
        for column, values in zip(table.features.columns, table.features.values, strict=True)
    ]
    codes = np.column_stack([*(codes for codes, _ in parts), table.problem.y.astype(np.int64)])
    sizes = np.array([*(len(values) for _, values in parts), 2])
    return CodedTable(codes, sizes, tuple(values for _, values in parts))


def bin_values(values: Array64, bins: int) -> tuple[Codes, Array64]:
    """Bin values ``(n,)``; gives codes and the mean of each bin. Few values remain as they are."""
    distinct = np.unique(values)
    edges = distinct[1:]
    if len(distinct) > bins:
        half = bins // 2
        quantiles = np.quantile(values, np.linspace(0, 1, half + 1)[1:])
        edges = np.unique([*quantiles, *np.linspace(distinct[0], distinct[-1], bins - half + 1)[1:-1]])
    codes = np.searchsorted(edges, values, side="right")
    used, codes = np.unique(codes, return_inverse=True)
    return codes, np.bincount(codes, values, len(used)) / np.bincount(codes, minlength=len(used))


def fit_synthetic(table: PeerTable, coded: CodedTable, codes: Codes) -> Belief:
    """Fit the posterior of a synthetic table, weighted to the number of private rows."""
    columns = [values[codes[:, place]] for place, values in enumerate(coded.values)]
    columns = [
        values.astype(np.int64) if column.type == "categorical" else values
        for column, values in zip(table.features.columns, columns, strict=True)
    ]
    features: Features = replace(table.features, values=tuple(columns))
    x = np.column_stack([compute_coordinates(features), np.ones(len(codes))])
    model, _, prior = table.case.problem
    weights = np.full(len(codes), len(coded.codes) / len(codes))
    found = fit_laplace(model, model.fold(x, codes[:, -1].astype(np.float64)), weights, prior, np.zeros(x.shape[1]))
    return Belief(found.mean, found.factor @ found.factor.T)
