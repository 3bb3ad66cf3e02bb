"""Tables and noise for benchmarks: generated rows, rows in memory, and noise without privacy."""

import time
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from app.inference.core.facts import Column, DeclaredFacts
from app.inference.core.model import Array64
from app.inference.core.plan import ModelSpec
from app.inference.core.query import Integers
from app.inference.core.row_source import PRESENT, RowSource

TARGET = "label"


class NoNoise:
    """No noise. The difference shows the cost of the discrete Gaussian."""

    def perturb(self, sums: Integers, scale: float | Array64) -> Integers:
        """``sums``, unchanged."""
        return sums


class RoundedNoise:
    """Rounded floating-point noise. It is fast, and has the quality of the discrete Gaussian, but is not private."""

    def __init__(self, rng: np.random.Generator) -> None:
        self._rng = rng

    def perturb(self, sums: Integers, scale: float | Array64) -> Integers:
        """``sums`` plus rounded normal noise of standard deviation ``scale``."""
        return sums + np.rint(scale * self._rng.standard_normal(len(sums))).astype(np.int64)


class GeneratedRows:
    """A logistic regression on uniform features. Each row is a hash of its slot, and needs no storage."""

    rows_per_slot = 1

    def __init__(self, slots: int, features: int) -> None:
        self.slots = slots
        self._truth = np.random.default_rng(features).normal(size=features) * 2 / np.sqrt(features)

    def gather(self, indices: NDArray[np.int64]) -> Mapping[str, NDArray[Any]]:
        """The rows at ``indices``. The last uniform number of a row determines its label."""
        uniforms = (_hash(indices, column) for column in range(len(self._truth) + 1))
        table: dict[str, NDArray[Any]] = {}
        logit = np.zeros(len(indices))
        for column, weight in enumerate(self._truth):
            table[f"x{column}"] = 2 * next(uniforms) - 1
            logit += weight * table[f"x{column}"]
        table[TARGET] = (next(uniforms) < expit(logit)).astype(np.float64)
        table[PRESENT] = np.ones(len(indices), dtype=np.uint8)
        return table


class ArrayRows:
    """A table in memory: features ``(n, d)`` in [-1, 1], and labels 0 or 1. Further slots are null rows."""

    rows_per_slot = 1

    def __init__(self, x: NDArray[Any], y: NDArray[Any], slots: int) -> None:
        self.slots = slots
        self._table = {f"x{column}": x[:, column] for column in range(x.shape[1])} | {TARGET: y}
        self._count = len(y)

    def gather(self, indices: NDArray[np.int64]) -> Mapping[str, NDArray[Any]]:
        """The rows at ``indices``."""
        inside = indices < self._count
        places = np.where(inside, indices, 0)
        table = {name: np.where(inside, values[places], 0.0) for name, values in self._table.items()}
        return table | {PRESENT: inside.astype(np.uint8)}


class Timed:
    """A source that counts its gathered slots and the seconds for them.

    The seconds are processor time unless ``clock`` is given.
    """

    def __init__(self, source: RowSource, clock: Callable[[], float] | None = None) -> None:
        self.slots, self.rows_per_slot, self._source = source.slots, source.rows_per_slot, source
        self._clock = time.process_time if clock is None else clock
        self.gathered, self.seconds = 0, 0.0

    def gather(self, indices: NDArray[np.int64]) -> Mapping[str, NDArray[Any]]:
        """See :class:`app.inference.core.row_source.RowSource`."""
        start = self._clock()
        table = self._source.gather(indices)
        self.seconds += self._clock() - start
        self.gathered += len(indices)
        return table


def make_facts(features: int, slots: int, delta: float = 1e-6) -> DeclaredFacts:
    """The declaration of both tables."""
    columns = tuple(Column(f"x{column}", "real", -1.0, 1.0) for column in range(features))
    return DeclaredFacts((*columns, Column(TARGET, "binary")), slots, {"kind": "row"}, "private", delta)


def make_spec(features: int) -> ModelSpec:
    """The model of both tables."""
    return ModelSpec("logistic-regression", tuple(f"x{column}" for column in range(features)), TARGET)


def _hash(indices: NDArray[np.int64], column: int) -> NDArray[np.float64]:
    """Uniforms in [0, 1) from (slot, column): the finaliser of SplitMix64."""
    state = indices.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15) + np.uint64(
        (column + 1) * 0xD1B54A32D192ED03 % 2**64
    )
    state ^= state >> np.uint64(30)
    state *= np.uint64(0xBF58476D1CE4E5B9)
    state ^= state >> np.uint64(27)
    state *= np.uint64(0x94D049BB133111EB)
    state ^= state >> np.uint64(31)
    return (state >> np.uint64(11)).astype(np.float64) * 2.0**-53
