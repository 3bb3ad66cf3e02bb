"""Declared networks: a feed-forward map with weights in the request, whose last layer gives the design columns.

Each layer computes ``a(W x + b)`` with a bounded activation: ``tanh``, ``sigmoid``, or ``relu-capped``, which is
``min(max(z, 0), 1)``. So every value is within -1 and 1. The weights must not be fitted to private rows.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Final, Self

import numpy as np

from app.inference.core.designs.arithmetic import compute_tangent
from app.inference.core.designs.encoder import Encoder, Fault, Source
from app.inference.core.designs.mapped import (
    MOST_INPUTS,
    MappedEncoder,
    count_coordinates,
    find_inputs_fault,
    list_names,
    make_columns,
    state_inputs,
)
from app.inference.core.designs.values import make_interval
from app.inference.core.model import Array64

MOST_LAYERS: Final = 4
MOST_UNITS: Final = 256
STEEPEST: Final = 1e4
"""Largest product over layers of the largest sum of a unit's absolute weights: the change for a change of an input."""
_MOST_WEIGHT: Final = 1e6
_IN_RANGE: Final = f"Use numbers from {-_MOST_WEIGHT:g} to {_MOST_WEIGHT:g}."
_GRID: Final = 2.0**40
"""Weights are rounded to multiples of its inverse, so that no product is subnormal (W14)."""


def _activate_sigmoid(values: Array64) -> Array64:
    """Compute ``1 / (1 + exp(-z)) = (1 + tanh(z / 2)) / 2``. Row zone."""
    return 0.5 + 0.5 * compute_tangent(0.5 * values)


def _cap(values: Array64) -> Array64:
    """Clip to 0 and 1. Row zone."""
    return np.clip(values, 0, 1)


ACTIVATIONS: Final[Mapping[str, tuple[Callable[[Array64], Array64], float]]] = {
    "tanh": (compute_tangent, -1.0),
    "relu-capped": (_cap, 0.0),
    "sigmoid": (_activate_sigmoid, 0.0),
}
"""By name: the function and its least value."""


@dataclass(frozen=True, slots=True)
class Layer:
    """A layer of k units: ``weights`` ``(k, d)``, ``bias`` ``(k,)`` and the name of its activation."""

    weights: tuple[tuple[float, ...], ...]
    bias: tuple[float, ...]
    activation: str

    @property
    def steepness(self) -> float:
        """The largest sum of a unit's absolute weights."""
        return max((sum(map(abs, row)) for row in self.weights), default=0.0)

    @property
    def size(self) -> int:
        """The count of its numbers."""
        return sum(map(len, self.weights)) + len(self.bias)

    def to_json(self) -> dict[str, Any]:
        """``{"weights": ..., "bias": ..., "activation": ...}``."""
        return {"weights": [list(row) for row in self.weights], "bias": list(self.bias), "activation": self.activation}

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> Self:
        """Read the JSON."""
        weights = tuple(tuple(map(float, row)) for row in document["weights"])
        return cls(weights, tuple(map(float, document["bias"])), document["activation"])

    def round(self) -> "Layer":
        """Round weights and biases to the grid."""
        return Layer(tuple(map(_round, self.weights)), _round(self.bias), self.activation)

    def compute(self, x: Array64) -> Array64:
        """Compute the units ``(k, n)`` of inputs ``(d, n)``. Row zone."""
        sums = np.repeat(np.array(self.bias)[:, None], x.shape[1], axis=1)
        for column, own in zip(x, np.array(self.weights).T, strict=True):
            sums += own[:, None] * column
        return ACTIVATIONS[self.activation][0](sums)


@dataclass(frozen=True, slots=True)
class Network:
    """A feed-forward map of the coordinates of ``columns``."""

    columns: tuple[str, ...]
    layers: tuple[Layer, ...]
    kind: ClassVar[str] = "network"

    @property
    def name(self) -> str:
        """As in ``network(age, hours)``."""
        return f"network({list_names(self.columns)})"

    @property
    def places(self) -> tuple[tuple[str, str], ...]:
        """The columns."""
        return tuple((f"/network/{index}", name) for index, name in enumerate(self.columns))

    @property
    def size(self) -> int:
        """All weights and biases."""
        return sum(layer.size for layer in self.layers)

    @property
    def spans(self) -> frozenset[str] | None:
        """None: activations are bounded, so there is no linear function."""
        return None

    def to_json(self) -> dict[str, Any]:
        """``{"network": [...], "layers": [...]}``."""
        return {"network": list(self.columns), "layers": [layer.to_json() for layer in self.layers]}

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> Self:
        """Read the JSON."""
        return cls(tuple(document["network"]), tuple(map(Layer.from_json, document["layers"])))

    def find_fault(self, sources: Sequence[Source]) -> Fault | None:
        """Check the shapes of all layers, and how steep the map is."""
        if not 1 <= len(self.columns) <= MOST_INPUTS:
            return Fault("/network", f"Name 1 to {MOST_INPUTS} columns.")
        fault = find_inputs_fault(sources, "/network")
        if fault is not None:
            return fault
        if not 1 <= len(self.layers) <= MOST_LAYERS:
            return Fault("/layers", f"Use 1 to {MOST_LAYERS} layers.")
        inputs = count_coordinates(sources)
        for index, layer in enumerate(self.layers):
            fault = _find_layer_fault(layer, inputs)
            if fault is not None:
                return Fault(f"/layers/{index}{fault.pointer}", fault.message)
            inputs = len(layer.weights)
        if math.prod(layer.steepness for layer in self.layers) > STEEPEST:
            return Fault(
                "/layers",
                "Use smaller weights: the product over layers of the largest sum of a unit's absolute weights is above "
                f"{STEEPEST:g}.",
            )
        return None

    def bind(self, sources: Sequence[Source]) -> Encoder:
        """Make the encoder."""
        layers = tuple(layer.round() for layer in self.layers)
        units = len(layers[-1].weights)
        shared = {"kind": "network", "inputs": state_inputs(sources), "layers": [layer.to_json() for layer in layers]}
        columns = make_columns(self.name, self.columns, shared, [{"unit": unit} for unit in range(units)])
        least = ACTIVATIONS[layers[-1].activation][1]
        return MappedEncoder(tuple(sources), columns, make_interval(least, 1.0, units), _Map(layers))


@dataclass(frozen=True, slots=True)
class _Map:
    """The composition of layers."""

    layers: tuple[Layer, ...]

    def __call__(self, coordinates: Sequence[Array64]) -> Array64:
        """Compute the units ``(k, n)`` of the last layer. Row zone."""
        x = np.concatenate(coordinates)
        for layer in self.layers:
            x = layer.compute(x)
        return x


def _find_layer_fault(layer: Layer, inputs: int) -> Fault | None:
    """Find a fault of a layer with ``inputs`` inputs."""
    if not 1 <= len(layer.weights) <= MOST_UNITS:
        return Fault("/weights", f"Use 1 to {MOST_UNITS} lists of weights, one for each unit.")
    for unit, row in enumerate(layer.weights):
        if len(row) != inputs:
            return Fault(f"/weights/{unit}", f"Use {inputs} weights, one for each input of the layer.")
        if not all(abs(each) <= _MOST_WEIGHT for each in row):
            return Fault(f"/weights/{unit}", _IN_RANGE)
    if len(layer.bias) != len(layer.weights):
        return Fault("/bias", f"Use {len(layer.weights)} numbers, one for each unit.")
    if not all(abs(each) <= _MOST_WEIGHT for each in layer.bias):
        return Fault("/bias", _IN_RANGE)
    return None if layer.activation in ACTIVATIONS else Fault("/activation", f"Use one of: {', '.join(ACTIVATIONS)}.")


def _round(numbers: Sequence[float]) -> tuple[float, ...]:
    return tuple(round(number * _GRID) / _GRID for number in numbers)
