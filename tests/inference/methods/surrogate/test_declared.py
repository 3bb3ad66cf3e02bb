"""Declared facts about design columns."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from app.inference.core.facts import Column, DeclaredFacts
from app.inference.core.plan import ModelSpec
from app.inference.core.problems import make_problem
from app.inference.core.row_source import PRESENT
from app.inference.methods.surrogate.moments import Declared, read_declared

COLUMNS = (
    Column("age", "real", 18.0, 90.0),
    Column("colour", "categorical", categories=("red", "green", "blue")),
    Column("smoker", "binary"),
    Column("children", "integer", 3.0, 4.0),
    Column("visits", "integer", 0.0, 2.0),
    Column("town", "categorical", categories=("a", "b", "c", "d")),
    Column("y", "binary"),
)


def _read(*features: str) -> tuple[Declared, np.ndarray]:
    facts = DeclaredFacts(COLUMNS, 50, {"kind": "row"}, "private", 1e-3)
    design = make_problem(ModelSpec("logistic-regression", features, "y"), facts).design
    rng = np.random.default_rng(0)
    table: dict[str, NDArray[Any]] = {
        "age": rng.uniform(18, 90, 50),
        "colour": rng.integers(0, 3, 50),
        "smoker": rng.integers(0, 2, 50),
        "children": rng.integers(3, 5, 50),
        "visits": rng.integers(0, 3, 50),
        "town": rng.integers(0, 4, 50),
        "y": rng.integers(0, 2, 50),
        PRESENT: np.ones(50, np.uint8),
    }
    return read_declared(design), design.encode(table)[0]


def test_columns_of_two_values_are_those_of_the_design() -> None:
    """Indicators, binary columns, and integers between two successive bounds."""
    known, x = _read("age", "colour", "smoker", "visits", "children", "town")
    assert x.shape[1] == len(known.group) + 1
    np.testing.assert_array_equal(known.group, (-1, 1, 1, 2, -1, 4, 5, 5, 5))
    np.testing.assert_array_equal(known.least[known.group >= 0], (0, 0, -1, -1, 0, 0, 0))


def test_declared_facts_hold_for_every_row() -> None:
    known, x = _read("town", "age", "smoker", "children", "colour")
    values = x[:, :-1]
    assert np.all(((values == known.least) | (values == 1))[:, known.group >= 0])
    assert [len(members) for members in known.features] == [3, 1, 1, 2]
    for members in known.features:
        assert np.all(np.sum(values[:, members] == 1, axis=1) <= 1)
