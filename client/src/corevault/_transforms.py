"""How a release computes each design column: its inputs, and the function of their coordinates.

Inputs are coordinates of declared columns: numbers between their bounds as −1 to 1, or indicators of categories.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from corevault.errors import InvalidArgument

Array = NDArray[np.float64]
Transform = Mapping[str, Any]
_INPUTS: Final = ("affine", "indicator")


def share_members(columns: Sequence[tuple[str, Transform]]) -> list[Transform]:
    """The transforms of named columns, with the members that they share with another one."""
    named = dict(columns)
    shared = [named.get(str(transform.get("shared_with")), {}) for _, transform in columns]
    return [{**dict(first), **dict(own)} for first, (_, own) in zip(shared, columns, strict=True)]


def list_inputs(source: str | None, transform: Transform) -> list[Transform]:
    """The inputs of a column. Each has a ``source``, and the transform of a plain column."""
    kind = transform.get("kind")
    if kind in _INPUTS:
        return [{"source": source, **transform}]
    if kind == "legendre":
        return [_make_affine(source, transform, transform["center"], transform["scale"])]
    if kind == "b-spline":
        low, high = float(transform["knots"][0]), float(transform["knots"][-1])
        half = high / 2 - low / 2
        return [_make_affine(source, transform, low + half, half)]
    if kind == "product":
        return [given for each in transform["of"] for given in list_inputs(each["source"], each)]
    return [dict(each) for each in transform.get("inputs", ())]


def _make_affine(source: str | None, curve: Transform, center: float, scale: float) -> Transform:
    """The input of a ``curve``, with the declared type if the curve states it."""
    stated = {"type": curve["type"]} if "type" in curve else {}
    return {"source": source, "kind": "affine", "center": center, "scale": scale, **stated}


def write_key(given: Transform) -> str:
    """A text that is the same for equal inputs."""
    return json.dumps({name: given[name] for name in sorted(given)}, default=float)


def compute_column(transform: Transform, inputs: Array) -> Array:
    """The design column ``(n,)`` from its inputs ``(n, k)``, NaN where one is NaN."""
    found = _FUNCTIONS[str(transform["kind"])](transform, inputs)
    return np.where(np.isnan(inputs).any(axis=1), np.nan, found)


def _take_first(_: Transform, inputs: Array) -> Array:
    return inputs[:, 0]


def _multiply(transform: Transform, inputs: Array) -> Array:
    """The product of members, each of which has one input."""
    members = enumerate(transform["of"])
    return np.asarray(np.prod([compute_column(each, inputs[:, [place]]) for place, each in members], axis=0))


def _legendre(transform: Transform, inputs: Array) -> Array:
    degree = int(transform["degree"])
    return np.asarray(np.polynomial.legendre.legval(inputs[:, 0], np.eye(degree + 1)[degree]))


def _b_spline(transform: Transform, inputs: Array) -> Array:
    from scipy.interpolate import BSpline  # noqa: PLC0415 - few designs have splines, and the import takes long

    knots, degree = np.array(transform["knots"], dtype=np.float64), int(transform["degree"])
    half = knots[-1] / 2 - knots[0] / 2
    scaled = np.clip((knots - (knots[0] + half)) / half, -1, 1)
    chosen = np.zeros(len(knots) - degree - 1)
    chosen[int(transform["index"])] = 1.0
    return np.asarray(BSpline(scaled, chosen, degree, extrapolate=True)(np.nan_to_num(inputs[:, 0])))


def _cosine(transform: Transform, inputs: Array) -> Array:
    turned = inputs @ np.array(transform["weights"], dtype=np.float64) + float(transform["phase"])
    return np.asarray(float(transform["scale"]) * np.cos(turned))


def _network(transform: Transform, inputs: Array) -> Array:
    values = inputs
    for layer in transform["layers"]:
        sums = values @ np.array(layer["weights"], dtype=np.float64).T + np.array(layer["bias"], dtype=np.float64)
        activation = _ACTIVATIONS.get(str(layer["activation"]))
        if activation is None:
            raise InvalidArgument(
                "This version does not know an activation of the design's network; upgrade corevault."
            )
        values = activation(sums)
    return np.asarray(values[:, int(transform["unit"])])


_ACTIVATIONS: Final[Mapping[str, Callable[[Array], Array]]] = {
    "tanh": np.tanh,
    "sigmoid": lambda sums: 0.5 + 0.5 * np.tanh(0.5 * sums),
    "relu-capped": lambda sums: np.clip(sums, 0.0, 1.0),
}
_FUNCTIONS: Final[Mapping[str, Callable[[Transform, Array], Array]]] = {
    "affine": _take_first,
    "indicator": _take_first,
    "product": _multiply,
    "legendre": _legendre,
    "b-spline": _b_spline,
    "cosine": _cosine,
    "network": _network,
}
KINDS: Final = frozenset(_FUNCTIONS)
"""Kinds of transforms of declared columns that this version can compute."""
