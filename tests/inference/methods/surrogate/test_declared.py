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
        "town": rng.integers(0, 4, 50),
        "y": rng.integers(0, 2, 50),
        PRESENT: np.ones(50, np.uint8),
    }
    return read_declared(design), design.encode(table)[0]


def test_groups_and_signs_are_those_of_the_design() -> None:
    known, x = _read("age", "colour", "smoker", "town")
    assert x.shape[1] == len(known.group) + 1
    np.testing.assert_array_equal(known.group, (-1, 1, 1, -1, 3, 3, 3))
    np.testing.assert_array_equal(known.signs, (False, False, False, True, False, False, False))


def test_declared_facts_hold_for_every_row() -> None:
    known, x = _read("town", "age", "smoker", "colour")
    products = np.einsum("ni,nj->nij", x[:, :-1], x[:, :-1])
    assert np.all(products[:, known.exclusive] == 0)
    assert np.all(np.isin(x[:, :-1][:, known.indicators], (0, 1)))
    assert np.all(np.abs(x[:, :-1][:, known.signs]) == 1)
    assert known.exclusive.sum() == 3 * 2 + 2 * 1
    np.testing.assert_array_equal(known.exclusive, known.exclusive.T)


def test_shares_of_a_category_sum_to_one_at_most() -> None:
    known, _ = _read("age", "colour")
    np.testing.assert_allclose(known.limit_shares(np.array([7.0, 0.9, 0.6])), (7.0, 0.6, 0.4))
    np.testing.assert_allclose(known.limit_shares(np.array([-7.0, -0.2, 1.4])), (-7.0, 0.0, 1.0))
