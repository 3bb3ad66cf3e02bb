"""What a method, a model, an oracle and a plan are: the contracts of the pure core.

A method never meets a row. It asks its oracle planned questions and sees noised answers only;
``plan`` states the price beside the algorithm that it prices.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from app.privacy.events import PrivacyEvent

Array32 = NDArray[np.float32]
Array64 = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Column:
    """A declared column. Bounds and categories are the owner's word, never inferred."""

    name: str
    type: Literal["integer", "real", "categorical", "binary"]
    lower: float | None = None
    upper: float | None = None
    categories: tuple[str, ...] = ()
    impute: float | str | bool | None = None


@dataclass(frozen=True, slots=True)
class DeclaredFacts:
    """All that planning may know of a table: public by declaration."""

    columns: tuple[Column, ...]
    slots: int
    unit: Mapping[str, Any]  # {"kind": "row"} or {"kind": "column", ...}
    sensitivity: Literal["private", "public"]
    delta: float | None = None


@dataclass(frozen=True, slots=True)
class ModelSpec:
    family: str
    features: tuple[str, ...]
    target: str | None
    prior_scale: float = 1.0


@dataclass(frozen=True, slots=True)
class Mechanism:
    """The knobs of a subsampled Gaussian mechanism, all fixed before the first row is read."""

    noise_multiplier: float
    sampling_rate: float
    iterations: int


@dataclass(frozen=True, slots=True)
class MechanismPlan:
    """A run, decided beforehand: what is sampled, how it is clipped and noised, and its price."""

    method: str
    size: int
    model: ModelSpec
    parameters: Mapping[str, Any]
    mechanism: Mechanism | None  # None for methods without a mechanism (public data only)
    answer_length: int  # values noised per iteration (S)
    clipping: str  # the rule in words, for the certificate
    grid_bits: int  # K = 2**grid_bits
    events: tuple[PrivacyEvent, ...]  # in the order of the queries, run-length encoded
    steps: int  # planned steps, for progress
    warnings: tuple[str, ...] = field(default=())

    @property
    def noised_values(self) -> int:
        """How many integers get discrete noise: what the discretisation share pays for."""
        return 0 if self.mechanism is None else self.mechanism.iterations * self.answer_length


@dataclass(frozen=True, slots=True)
class DesignColumn:
    """How one design column comes from the declared table (the public ``design`` of a release)."""

    name: str
    source: str | None
    transform: Mapping[str, Any]  # {"kind": "affine"|"indicator"|"constant", ...}


@dataclass(frozen=True, slots=True)
class Pseudocoreset:
    """What leaves: points in the design's coordinates, targets in their own units, weights."""

    u: Array64  # (M, p), intercept included, columns as in ``design``
    y: Array64 | None  # (M,)
    weight: Array64  # (M,), non-negative
    design: tuple[DesignColumn, ...]
    diagnostics: Mapping[str, Any] = field(default_factory=dict)


class Oracle(Protocol):
    """The only way to private rows: noised answers to planned questions, nothing else."""

    def clipped_potential_sum(self, draws: Array64, clip: float) -> Array64:
        """Noised ``sum_b clip_C(G(x_b))`` over this iteration's subsample, shape ``(S,)``; unscaled by 1/q."""


class RowSource(Protocol):
    """Implemented by the enclave (encrypted storage) and by generators in tests and benchmarks."""

    slots: int

    def gather(self, indices: NDArray[np.int64]) -> Mapping[str, NDArray[Any]]:
        """The declared columns at sorted, unique ``indices``: name -> (n,) array, plus ``"present"`` (uint8).

        real, integer: float64, clamped; binary: float64 0/1; categorical: integer code in declared order.
        A null row has present == 0 and zeros.
        """


Columns = Sequence[Column]
