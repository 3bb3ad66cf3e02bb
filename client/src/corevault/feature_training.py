"""Features from a small network that is trained on a public table.

The network has hidden layers with tanh, and a linear output that is not used afterwards. Training is stochastic
gradient descent with Adam (Kingma & Ba 2015) on the squared error, or on the logistic loss of a binary target. Source
of the use: neural linear regression (thesis, section 5.3.3).
"""

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from corevault._arguments import describe, require_whole_number
from corevault.design import DesignColumn, Table, design_matrix
from corevault.errors import InvalidArgument, WrongType
from corevault.schema import Column, Schema
from corevault.terms import Term, network

Array = NDArray[np.float64]
_BATCH, _RATE, _DECAY = 32, 0.01, 1e-4
_FIRST, _SECOND, _LEAST = 0.9, 0.999, 1e-8
MOST_UNITS = 256
MOST_LAYERS = 4


def train_features(
    table: Table,
    schema: Schema,
    columns: Sequence[str],
    target: str,
    rng: np.random.Generator,
    *,
    units: int = 30,
    layers: int = 2,
    steps: int = 2000,
) -> Term:
    """A ``network`` term whose weights were trained on ``table`` to predict ``target`` from ``columns``.

    Use it as a feature of any model with this schema: a linear regression on it is a neural linear regression. The
    table must be public. The weights are in every request and release, and no guarantee covers them.

    ``schema`` declares the columns. ``target`` is a number, or binary. ``layers`` hidden layers have ``units`` units
    each. ``steps`` are minibatches of 32 rows. Rows with a missing value are left out. ``rng`` draws first weights and
    minibatches.

    Raises ``InvalidArgument`` if a column is not declared, the target is a category, or fewer than two rows remain.

    >>> term = train_features(table, schema, ["age", "sex"], "sick", np.random.default_rng(1), units=3, steps=50)
    >>> [len(layer["bias"]) for layer in term["layers"]]
    [3, 3]
    """
    if not isinstance(schema, Schema):
        raise WrongType(f"schema must be a Schema; {describe(schema)}.")
    if not isinstance(rng, np.random.Generator):
        raise WrongType(f"rng must be a generator, such as numpy.random.default_rng(); {describe(rng)}.")
    if isinstance(columns, str):
        raise WrongType("columns must be a list of names, even for one column.")
    require_whole_number(units, "units", lower=1, upper=MOST_UNITS)
    require_whole_number(layers, "layers", lower=1, upper=MOST_LAYERS)
    require_whole_number(steps, "steps", lower=1)
    declared = {column.name: column for column in schema}
    missing = [name for name in (*columns, target) if name not in declared]
    if missing or not columns or target in columns:
        raise InvalidArgument(
            f"Name declared columns, and a target that is not one of them; the schema has {', '.join(declared)}."
        )
    if declared[target].type == "categorical":
        raise InvalidArgument("The target must be a number or binary; use an indicator of one category.")
    x = design_matrix(_describe([declared[name] for name in columns]), table, schema=schema, null_rows="nan")
    y = design_matrix(_describe([declared[target]]), table, schema=schema, null_rows="nan")[:, 0]
    known = np.isfinite(x).all(axis=1) & np.isfinite(y)
    if known.sum() < 2:
        raise InvalidArgument("Training needs at least two rows without missing values.")
    trained = _train(x[known], y[known], [units] * layers, steps, rng, is_label=declared[target].type == "binary")
    return network(
        columns,
        [{"weights": weights.T, "bias": bias, "activation": "tanh"} for weights, bias in trained[:-1]],
    )


def _describe(columns: Sequence[Column]) -> list[DesignColumn]:
    """The design columns that the server makes of ``columns``: the inputs of a network."""
    found = []
    for column in columns:
        if column.categories is not None:
            transforms: list[Mapping[str, Any]] = [
                {"kind": "indicator", "value": value, "reference": column.categories[0]}
                for value in column.categories[1:]
            ]
        else:
            low, high = (0.0, 1.0) if column.type == "binary" else (float(column.lower or 0), float(column.upper or 0))
            half = high / 2 - low / 2
            transforms = [{"kind": "affine", "type": column.type, "center": low + half, "scale": half or 1.0}]
        found += [
            DesignColumn(name=f"{column.name}={index}", source=column.name, transform=each)
            for index, each in enumerate(transforms)
        ]
    return found


def _train(
    x: Array, y: Array, hidden: Sequence[int], steps: int, rng: np.random.Generator, *, is_label: bool
) -> list[tuple[Array, Array]]:
    """Weights ``(d, k)`` and biases ``(k,)`` of all layers; the last one is the output."""
    target = (y > 0).astype(np.float64) if is_label else (y - y.mean()) / (y.std() or 1.0)
    sizes = [x.shape[1], *hidden, 1]
    layers = [
        (rng.standard_normal((inputs, units)) / np.sqrt(inputs), np.zeros(units)) for inputs, units in pairwise(sizes)
    ]
    moments = [[np.zeros_like(part) for part in layer] * 2 for layer in layers]
    for step in range(1, steps + 1):
        rows = rng.integers(0, len(x), min(_BATCH, len(x)))
        gradients = _differentiate(layers, x[rows], target[rows], is_label=is_label)
        rate = _RATE * (1 - step / (steps + 1))
        layers = [
            (
                _step(weights, by_weights + _DECAY * weights, moment, 0, step, rate),
                _step(bias, by_bias, moment, 1, step, rate),
            )
            for (weights, bias), (by_weights, by_bias), moment in zip(layers, gradients, moments, strict=True)
        ]
    return layers


def _differentiate(
    layers: Sequence[tuple[Array, Array]], x: Array, y: Array, *, is_label: bool
) -> list[tuple[Array, Array]]:
    """The gradients of the mean loss in weights and biases, by back-propagation."""
    values = [x]
    for weights, bias in layers[:-1]:
        values.append(np.tanh(values[-1] @ weights + bias))
    weights, bias = layers[-1]
    output = (values[-1] @ weights + bias)[:, 0]
    predicted = 0.5 + 0.5 * np.tanh(0.5 * output) if is_label else output
    error = ((predicted - y) / len(y))[:, None]
    gradients = list[tuple[Array, Array]]()
    for place in range(len(layers) - 1, -1, -1):
        gradients.append((values[place].T @ error, error.sum(axis=0)))
        if place:
            error = (error @ layers[place][0].T) * (1 - values[place] ** 2)
    return gradients[::-1]


def _step(value: Array, gradient: Array, moment: list[Array], place: int, step: int, rate: float) -> Array:  # noqa: PLR0917
    """One step of Adam; ``moment`` is updated in place."""
    moment[place] = _FIRST * moment[place] + (1 - _FIRST) * gradient
    moment[place + 2] = _SECOND * moment[place + 2] + (1 - _SECOND) * gradient**2
    mean, square = moment[place] / (1 - _FIRST**step), moment[place + 2] / (1 - _SECOND**step)
    return np.asarray(value - rate * mean / (np.sqrt(square) + _LEAST))
