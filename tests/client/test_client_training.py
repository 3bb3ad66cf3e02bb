"""Features that are trained on a public table: gradients, predictions and refusals."""

from typing import Any

import numpy as np
import pytest
from corevault import InvalidArgument, Schema, WrongType, binary, categorical, real, train_features
from corevault.feature_training import _differentiate

from app.inference.core.designs import feature_from_json
from app.inference.core.facts import Column, DeclaredFacts
from app.inference.core.plan import ModelSpec
from app.inference.core.problems import make_problem

SCHEMA = Schema(
    real("a", -1, 1), real("b", 0, 10), categorical("c", ["x", "y", "z"]), binary("d"), real("t", -9, 9), binary("s")
)
COLUMNS = (
    Column("a", "real", -1, 1),
    Column("b", "real", 0, 10),
    Column("c", "categorical", categories=("x", "y", "z")),
    Column("d", "binary"),
    Column("t", "real", -9, 9),
)
NAMES = ("a", "b", "c", "d")


def make_table(rows: int, seed: int = 0) -> dict[str, Any]:
    """A target that no linear function of the columns predicts."""
    rng = np.random.default_rng(seed)
    a, b, c, d = rng.uniform(-1, 1, rows), rng.uniform(0, 10, rows), rng.integers(0, 3, rows), rng.integers(0, 2, rows)
    target = 4 * (2 * a**2 - 1) * np.where(c == 1, 1, -0.5) + np.sin(b) * (2 * d - 1) + 0.1 * rng.standard_normal(rows)
    return {"a": a, "b": b, "c": np.array(["x", "y", "z"])[c], "d": d, "t": target, "s": (target > 0).astype(int)}


def encode(term: dict[str, Any], table: dict[str, Any]) -> np.ndarray:
    """The design rows that the server computes for the term."""
    facts = DeclaredFacts(COLUMNS, 10, {"kind": "row"}, "public")
    spec = ModelSpec("linear-regression", (feature_from_json(term),), "t")
    codes = np.array([("x", "y", "z").index(each) for each in table["c"]], dtype=np.uint16)
    gathered = {**table, "c": codes, "d": table["d"].astype(float), "_present": np.ones(len(codes), dtype=np.uint8)}
    return np.asarray(make_problem(spec, facts).design.encode(gathered)[0], dtype=np.float64)


def residual(x: np.ndarray, y: np.ndarray, new_x: np.ndarray, new_y: np.ndarray) -> float:
    """The error of ridge regression on new rows, as a share of the variance."""
    weights = np.linalg.solve(x.T @ x + 1e-2 * np.eye(x.shape[1]), x.T @ y)
    return float(np.mean((new_y - new_x @ weights) ** 2) / new_y.var())


@pytest.mark.parametrize("is_label", [False, True])
def test_gradients_agree_with_finite_differences(is_label: bool) -> None:
    rng = np.random.default_rng(1)
    x = rng.standard_normal((7, 3))
    y = rng.integers(0, 2, 7).astype(float) if is_label else rng.standard_normal(7)
    shapes = ((3, 4), (4, 2), (2, 1))
    layers = [(rng.standard_normal(shape), rng.standard_normal(shape[1])) for shape in shapes]

    def loss() -> float:
        values = x
        for weights, bias in layers[:-1]:
            values = np.tanh(values @ weights + bias)
        output = (values @ layers[-1][0] + layers[-1][1])[:, 0]
        return float(np.mean(np.logaddexp(0, output) - y * output if is_label else 0.5 * (output - y) ** 2))

    for layer, found in zip(layers, _differentiate(layers, x, y, is_label=is_label), strict=True):
        for part, gradient in zip(layer, found, strict=True):
            for place in np.ndindex(part.shape):
                kept, size = part[place], 1e-5
                part[place] = kept + size
                above = loss()
                part[place] = kept - size
                below = loss()
                part[place] = kept
                assert gradient[place] == pytest.approx((above - below) / (2 * size), abs=1e-8)


def test_trained_features_predict_new_rows_where_columns_do_not() -> None:
    table, fresh = make_table(3000), make_table(1000, seed=1)
    term = train_features(table, SCHEMA, NAMES, "t", units=20, steps=3000, rng=np.random.default_rng(0))
    trained = residual(encode(term, table), table["t"], encode(term, fresh), fresh["t"])
    flat = {"network": ["a", "b", "c", "d"], "layers": [_identity()]}
    linear = residual(encode(flat, table), table["t"], encode(flat, fresh), fresh["t"])
    assert trained < 0.25
    assert linear > 0.6


def _identity() -> dict[str, Any]:
    """A layer that is nearly linear in the five coordinates."""
    return {"weights": (0.01 * np.eye(5)).tolist(), "bias": [0.0] * 5, "activation": "tanh"}


def test_a_binary_target_is_trained_by_its_likelihood() -> None:
    table, fresh = make_table(3000), make_table(1000, seed=1)
    term = train_features(table, SCHEMA, NAMES, "s", units=20, steps=2000, rng=np.random.default_rng(0))
    x, new = encode(term, table), encode(term, fresh)
    weights = np.linalg.solve(x.T @ x + 1e-2 * np.eye(x.shape[1]), x.T @ (2.0 * table["s"] - 1))
    assert np.mean((new @ weights > 0) == fresh["s"]) > 0.85


def test_a_seed_repeats_the_training() -> None:
    table = make_table(200)
    found = [
        train_features(table, SCHEMA, ["a"], "t", units=2, layers=1, steps=20, rng=np.random.default_rng(3))
        for _ in range(2)
    ]
    assert found[0] == found[1]
    assert found[0] != train_features(table, SCHEMA, ["a"], "t", np.random.default_rng(4), units=2, layers=1, steps=20)


def test_rows_with_missing_values_are_left_out() -> None:
    table = make_table(50) | {"a": [None, *make_table(50)["a"][1:]]}
    rest = {name: values[1:] for name, values in make_table(50).items()}
    with_gap, without = (
        train_features(each, SCHEMA, ["a"], "t", units=2, steps=10, rng=np.random.default_rng(3))
        for each in (table, rest)
    )
    assert with_gap == without


@pytest.mark.parametrize(
    "changes",
    [
        {"columns": []},
        {"columns": ["a", "nothing"]},
        {"columns": ["a", "t"]},
        {"target": "c"},
        {"target": "nothing"},
        {"units": 0},
        {"layers": 5},
        {"steps": 0},
        {"table": {name: values[:1] for name, values in make_table(2).items()}},
    ],
    ids=str,
)
def test_a_request_that_cannot_be_trained_is_refused(changes: dict[str, Any]) -> None:
    given: dict[str, Any] = {"table": make_table(20), "schema": SCHEMA, "columns": ["a", "b"], "target": "t"} | changes
    given["rng"] = np.random.default_rng(0)
    with pytest.raises(InvalidArgument):
        train_features(**given)


def test_wrong_types_are_named() -> None:
    for name in ("units", "layers", "steps"):
        halves: dict[str, Any] = {name: 1.5}
        with pytest.raises(WrongType, match=f"{name} must be a whole number"):
            train_features(make_table(5), SCHEMA, ["a"], "t", np.random.default_rng(0), **halves)
    with pytest.raises(WrongType, match="list"):
        train_features(make_table(5), SCHEMA, "a", "t", np.random.default_rng(0))
    with pytest.raises(WrongType, match="Schema"):
        train_features(make_table(5), {"a": 1}, ["a"], "t", np.random.default_rng(0))  # type: ignore[arg-type]
