"""Random Fourier features of a Gaussian kernel, from a public number in the request.

A feature is ``sqrt(2 / h) cos(w'x + b)`` of the coordinates x of the columns. The frequencies w are normal with
standard deviation ``1 / length``, the phases b are uniform. So the squared length of the h features is at most 2. With
independent coefficients of scale s, their sum has nearly the covariance ``s^2 exp(-|x - x'|^2 / (2 length^2))``.
Source: Rahimi & Recht, *Random Features for Large-Scale Kernel Machines*, NeurIPS 2007.

The draws follow from SHA-256 alone, so they are the same in every version. The design of a release states them too.
"""

import hashlib
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from statistics import NormalDist
from typing import Any, ClassVar, Final, Self

import numpy as np

from app.inference.core.designs.arithmetic import compute_cosine
from app.inference.core.designs.encoder import Encoder, Fault, Source
from app.inference.core.designs.mapped import (
    MappedEncoder,
    count_coordinates,
    find_inputs_fault,
    list_names,
    make_columns,
    state_inputs,
)
from app.inference.core.designs.values import make_interval
from app.inference.core.model import Array64

LEAST_UNITS, MOST_UNITS = 2, 1000
LEAST_LENGTH, MOST_LENGTH = 0.05, 100.0
MOST_COLUMNS: Final = 16
MOST_NUMBER: Final = 2**53 - 1
_GENERATOR: Final = "corevault-sha256-1"
_GRID: Final = 2.0**30
"""Draws are multiples of its inverse, so that differences of last digits between platforms do not show."""


@dataclass(frozen=True, slots=True)
class Fourier:
    """``units`` random Fourier features of ``columns``; ``number`` selects the public draw of frequencies.

    ``length`` is the length scale of the kernel, in coordinates: declared bounds are -1 and 1.
    """

    columns: tuple[str, ...]
    units: int
    length: float
    number: int
    kind: ClassVar[str] = "fourier"

    @property
    def name(self) -> str:
        """As in ``fourier(age, hours, length=1, seed=7)``."""
        return f"fourier({list_names(self.columns)}, length={self.length:.12g}, seed={self.number})"

    @property
    def places(self) -> tuple[tuple[str, str], ...]:
        """The columns."""
        return tuple((f"/fourier/{index}", name) for index, name in enumerate(self.columns))

    @property
    def size(self) -> int:
        """A phase and at least one frequency of each column, for each design column."""
        return self.units * (1 + len(self.columns))

    @property
    def spans(self) -> frozenset[str] | None:
        """None: cosines contain no linear function."""
        return None

    def to_json(self) -> dict[str, Any]:
        """``{"fourier": [...], "units": ..., "length": ..., "seed": ...}``."""
        return {"fourier": list(self.columns), "units": self.units, "length": self.length, "seed": self.number}

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> Self:
        """Read the JSON."""
        length, number = float(document.get("length", 1.0)), int(document.get("seed", 0))
        return cls(tuple(document["fourier"]), int(document["units"]), length, number)

    def find_fault(self, sources: Sequence[Source]) -> Fault | None:
        """Check all members."""
        if not 1 <= len(self.columns) <= MOST_COLUMNS:
            return Fault("/fourier", f"Name 1 to {MOST_COLUMNS} columns.")
        if not LEAST_UNITS <= self.units <= MOST_UNITS:
            return Fault("/units", f"Use {LEAST_UNITS} to {MOST_UNITS} units.")
        if not LEAST_LENGTH <= self.length <= MOST_LENGTH:
            return Fault("/length", f"Use a length from {LEAST_LENGTH:g} to {MOST_LENGTH:g}.")
        if not 0 <= self.number <= MOST_NUMBER:
            return Fault("/seed", "Use an integer from 0 to 2^53 - 1.")
        return find_inputs_fault(sources, "/fourier")

    def bind(self, sources: Sequence[Source]) -> Encoder:
        """Make the encoder."""
        inputs = count_coordinates(sources)
        weights, phases = draw_features(self.number, self.units, inputs, self.length)
        scale = math.sqrt(2 / self.units)
        shared = {"kind": "cosine", "inputs": state_inputs(sources), "scale": scale, "generator": _GENERATOR}
        own = [{"weights": each.tolist(), "phase": float(phase)} for each, phase in zip(weights, phases, strict=True)]
        columns = make_columns(self.name, self.columns, shared, own)
        turns = _Cosines(weights / (2 * math.pi), phases / (2 * math.pi), scale)
        return MappedEncoder(tuple(sources), columns, make_interval(-scale, scale, self.units), turns)


@dataclass(frozen=True, slots=True, eq=False)
class _Cosines:
    """The map ``scale cos(2 pi (w'x + b))``.

    w are rows of ``weights`` ``(h, d)``, b are ``phases`` ``(h,)``; both are in turns.
    """

    weights: Array64
    phases: Array64
    scale: float

    def __call__(self, coordinates: Sequence[Array64]) -> Array64:
        """Compute ``(h, n)``. Row zone."""
        x = np.concatenate(coordinates)
        turns = np.repeat(self.phases[:, None], x.shape[1], axis=1)
        for column, own in zip(x, self.weights.T, strict=True):
            turns += own[:, None] * column
        return compute_cosine(turns) * self.scale


@lru_cache(maxsize=64)
def draw_features(number: int, units: int, inputs: int, length: float) -> tuple[Array64, Array64]:
    """Draw the frequencies ``(units, inputs)`` and phases ``(units,)`` of a public ``number``; both are read only."""
    normal = NormalDist()
    weights = [
        [normal.inv_cdf(_draw_uniform(number, unit, each)) / length for each in range(inputs)] for unit in range(units)
    ]
    phases = [2 * math.pi * _draw_uniform(number, unit, -1) for unit in range(units)]
    return _round(np.array(weights).reshape(units, inputs)), _round(np.array(phases))


def _draw_uniform(number: int, unit: int, each: int) -> float:
    """Draw a number between 0 and 1: the first 52 bits of a hash, plus one half, over 2^52."""
    digest = hashlib.sha256(f"{_GENERATOR}/{number}/{unit}/{each}".encode()).digest()
    return ((int.from_bytes(digest[:8], "big") >> 12) + 0.5) / 2.0**52


def _round(values: Array64) -> Array64:
    rounded = np.asarray(np.rint(values * _GRID) / _GRID)
    rounded.setflags(write=False)
    return rounded
