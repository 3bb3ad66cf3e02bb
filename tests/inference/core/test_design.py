"""The design matrix follows declarations alone (W6), and encoding is total (W14)."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.errors import InvalidRequest
from app.inference.core.design import build
from app.inference.core.facts import Column, DeclaredFacts
from app.inference.core.plan import ModelSpec
from app.inference.core.problems import make_problem
from app.inference.registry import find_family
from tests.inference.support import COLUMNS, FEATURES, SPEC, facts

LOGISTIC = find_family("logistic-regression")


def _pointer(spec: ModelSpec, declared: DeclaredFacts | None = None) -> str:
    with pytest.raises(InvalidRequest) as caught:
        build(spec, declared or facts(10), LOGISTIC)
    return caught.value.faults[0].pointer


def _with(*columns: Column, **fields: Any) -> DeclaredFacts:
    return replace(facts(10), columns=(*COLUMNS, *columns), **fields)


def test_columns_and_values_follow_the_declaration() -> None:
    """W6: centre and scale follow from the declared bounds."""
    design = build(SPEC, facts(2), LOGISTIC)
    assert [column.name for column in design.columns] == [
        "age",
        "hours",
        "colour=green",
        "colour=blue",
        "smoker",
        "intercept",
    ]
    assert design.columns[0].transform == {"kind": "affine", "type": "integer", "center": 50.0, "scale": 30.0}
    assert design.columns[3].transform == {"kind": "indicator", "value": "blue", "reference": "red"}
    assert design.columns[5].transform == {"kind": "constant", "value": 1}
    table = {
        "age": np.array([20.0, 65.0]),
        "hours": np.array([75.0, 1000.0]),
        "colour": np.array([0, 2], np.uint16),
        "smoker": np.array([1.0, 0.0]),
        "ill": np.array([1.0, 0.0]),
        "_present": np.ones(2, np.uint8),
    }
    x, y, present = design.encode(table)
    assert x.dtype == np.float32
    np.testing.assert_array_equal(x, [[-1, 0.5, 0, 0, 1, 1], [0.5, 1, 0, 1, -1, 1]])
    np.testing.assert_array_equal(y, [1, 0])
    assert present.all()


@pytest.mark.parametrize(
    ("family_name", "declared"), [("linear-regression", (-5, 20)), ("poisson-regression", (0, 20))]
)
def test_targets_are_clamped_to_declared_bounds_row_by_row(family_name: str, declared: tuple[float, float]) -> None:
    """W6: a target is clamped to the declared bounds, and its encoding does not depend on other rows."""
    target = Column("dose", "real" if family_name == "linear-regression" else "integer", *declared)
    design = build(ModelSpec(family_name, ("age",), "dose"), _with(target), find_family(family_name))
    dose = np.array([-1e6, declared[0], 3.0, 7.25, declared[1], 1e6, 4.0])
    encoded = design.encode({"age": np.full(7, 40.0), "dose": dose, "_present": np.ones(7, np.uint8)})
    decoded, rounding = design.decode_targets(encoded[1]), 1e-12 * (declared[1] - declared[0])
    assert decoded is not None
    np.testing.assert_allclose(decoded, np.clip(dose, *declared), rtol=0, atol=rounding)
    for place in range(7):
        one = {"age": np.full(1, 40.0), "dose": dose[place : place + 1], "_present": np.ones(1, np.uint8)}
        assert design.encode(one)[1] == encoded[1][place]
    others = design.encode({"age": np.full(2, 40.0), "dose": np.array([3.0, 4.0]), "_present": np.ones(2, np.uint8)})
    np.testing.assert_array_equal(others[1], encoded[1][[2, 6]])


def test_a_constant_column_is_zero() -> None:
    design = build(ModelSpec("logistic-regression", ("k",), "ill"), _with(Column("k", "real", 3.0, 3.0)), LOGISTIC)
    table = {"k": np.array([3.0, 9.0]), "ill": np.zeros(2), "_present": np.ones(2, np.uint8)}
    np.testing.assert_array_equal(design.encode(table)[0], [[0, 1], [0, 1]])
    assert np.all(design.sample(np.random.default_rng(1), 5)[:, 0] == 0)


@pytest.mark.parametrize(
    ("spec", "pointer"),
    [
        (replace(SPEC, features=("age", "nope")), "/model/features/1"),
        (replace(SPEC, features=("age", "age")), "/model/features/1"),
        (replace(SPEC, features=("ill",)), "/model/features/0"),
        (replace(SPEC, features=()), "/model/features"),
        (replace(SPEC, target="nope"), "/model/target"),
        (replace(SPEC, target=None), "/model/target"),
        (replace(SPEC, features=("hours",), target="age"), "/model/target"),
    ],
)
def test_a_faulty_model_is_refused_with_its_pointer(spec: ModelSpec, pointer: str) -> None:
    assert _pointer(spec) == pointer


@pytest.mark.parametrize("name", ["weight", "y", "intercept"])
def test_a_reserved_name_can_be_a_target_but_not_a_feature(name: str) -> None:
    declared = _with(Column(name, "binary"))
    assert _pointer(replace(SPEC, features=("age", name)), declared) == "/model/features/1"
    target = build(replace(SPEC, target=name), declared, LOGISTIC).target
    assert target is not None
    assert target.name == name


def test_the_unit_column_is_refused_in_a_model() -> None:
    declared = _with(Column("person", "integer", 0, 9), unit={"kind": "column", "column": "person", "max_rows": 2})
    assert _pointer(replace(SPEC, features=("person",)), declared) == "/model/features/0"
    assert _pointer(replace(SPEC, target="person"), declared) == "/model/target"


def test_a_design_of_too_many_columns_is_refused() -> None:
    wide = Column("wide", "categorical", categories=tuple(map(str, range(3000))))
    assert _pointer(replace(SPEC, features=("wide",)), _with(wide)) == "/model/features"


ANY = st.floats(allow_nan=True, allow_infinity=True, width=64)


@given(values=st.lists(st.tuples(ANY, ANY, st.integers(0, 65535), ANY, ANY, st.integers(0, 255)), max_size=6))
def test_encoding_is_total_and_bounded_and_null_rows_are_zero(values: list[tuple[float, ...]]) -> None:
    """W14: for any row, encoding neither raises nor warns, and the result is within the declared bounds."""
    names = (*FEATURES, "ill", "_present")
    table: dict[str, Any] = {name: np.array([row[i] for row in values], float) for i, name in enumerate(names)}
    table["colour"] = table["colour"].astype(np.uint16)
    table["_present"] = table["_present"].astype(np.uint8)
    x, y, present = build(SPEC, facts(10), LOGISTIC).encode(table)
    assert x.shape == (len(values), 6)
    assert np.all(np.abs(x) <= 1)
    assert np.all(np.isfinite(y))
    assert not np.any(x[~present])
    assert not np.any(present & (table["_present"] == 0))
    assert not np.any(present & (np.isnan(table["age"]) | (table["colour"] > 2)))


BOUNDS = [(-1.0, 1.0), (20.0, 80.0), (1e6, 1e6 + 2), (-1e308, 1e308), (0.0, 1e-310), (-3e-305, 3e-305), (1e305, 1e307)]


@pytest.mark.parametrize(("lower", "upper"), BOUNDS)
def test_bounds_of_any_size_are_encoded_as_minus_one_and_one(lower: float, upper: float) -> None:
    """W14: values beyond the bounds are clamped too; the inverse of the scale need not be a normal number."""
    declared = _with(Column("k", "real", lower, upper))
    beyond = [-np.inf, -1.7e308, lower, upper, 1.7e308, np.inf]
    table = {
        "k": np.array([*beyond, lower / 2 + upper / 2, lower / 4 + 3 * (upper / 4), np.nan]),
        "ill": np.ones(9),
        "_present": np.ones(9, np.uint8),
    }
    x, _, present = build(ModelSpec("logistic-regression", ("k",), "ill"), declared, LOGISTIC).encode(table)
    np.testing.assert_array_equal(present, [True] * 8 + [False])
    np.testing.assert_allclose(x[:, 0], [-1, -1, -1, 1, 1, 1, 0, 0.5, 0], rtol=0, atol=1e-7)
    assert np.all(np.abs(x) <= 1)
    assert x.flags.f_contiguous


def test_sampled_rows_lie_in_the_declared_box() -> None:
    sample = build(SPEC, facts(10), LOGISTIC).sample(np.random.default_rng(3), 400)
    assert np.all(np.abs(sample) <= 1)
    assert set(np.unique(sample[:, 4])) == {-1.0, 1.0}
    assert {tuple(row) for row in sample[:, 2:4]} == {(0.0, 0.0), (1.0, 0.0), (0.0, 1.0)}
    assert np.all(sample[:, 5] == 1)


@given(st.lists(st.floats(-1, 1), min_size=1, max_size=20))
def test_no_encoded_value_is_subnormal(values: list[float]) -> None:
    """W14: tiny values are rounded to zero in features and targets; others keep single precision."""
    declared = _with(Column("k", "real", -1.0, 1.0), Column("t", "real", -1.0, 1.0))
    spec = ModelSpec("linear-regression", ("k",), "t")
    table = {"k": np.array(values), "t": np.array(values), "_present": np.ones(len(values), np.uint8)}
    x, y, present = build(spec, declared, find_family("linear-regression")).encode(table)
    assert present.all()
    for found in (x[:, 0], y):
        np.testing.assert_allclose(found, values, rtol=6e-8, atol=1e-12)
        assert np.all((found == 0) | (np.abs(found) > 1e-13))


def test_targets_are_clamped_and_undeclared_categories_are_null() -> None:
    declared = _with(Column("t", "integer", -3, 5))
    table = {
        "age": np.full(4, 50.0),
        "t": np.array([-9.0, 2.0, 99.0, np.nan]),
        "colour": np.array([0, 2, 3, 1], np.uint16),
        "_present": np.ones(4, np.uint8),
    }
    _, y, present = build(
        ModelSpec("linear-regression", ("age",), "t"), declared, find_family("linear-regression")
    ).encode(table)
    np.testing.assert_array_equal(y, [-1, 0.25, 1, 0])
    np.testing.assert_array_equal(present, [True, True, True, False])
    spec = ModelSpec("multinomial-logistic", ("age",), "colour")
    x, y, present = build(spec, declared, find_family("multinomial-logistic")).encode(table)
    np.testing.assert_array_equal(y, [0, 2, 0, 1])
    np.testing.assert_array_equal(present, [True, True, False, True])
    assert not np.any(x[2])


def test_a_model_without_a_target_has_no_intercept() -> None:
    design = build(ModelSpec("gaussian-mean", ("age", "hours"), None), facts(2), find_family("gaussian-mean"))
    assert [column.name for column in design.columns] == ["age", "hours"]
    assert (design.intercept, design.target) == (False, None)
    table = {"age": np.array([80.0, 20.0]), "hours": np.array([50.0, 0.0]), "_present": np.array([1, 0], np.uint8)}
    x, y, present = design.encode(table)
    np.testing.assert_array_equal(x, [[1, 0], [0, 0]])
    np.testing.assert_array_equal(y, [0, 0])
    np.testing.assert_array_equal(present, [True, False])


def test_a_model_of_too_many_parameters_is_refused() -> None:
    """A design of 900 columns is valid, but four classes have too many coefficients."""
    wide = Column("wide", "categorical", categories=tuple(map(str, range(900))))
    declared = _with(wide, Column("blood", "categorical", categories=("o", "a", "b", "ab")))
    assert make_problem(replace(SPEC, features=("wide",)), declared).model.dimension == 900
    with pytest.raises(InvalidRequest) as caught:
        make_problem(ModelSpec("multinomial-logistic", ("wide",), "blood"), declared)
    assert caught.value.faults[0].pointer == "/model/features"


@pytest.mark.parametrize("noise_scale", [0.0, -1.0, 1e-300, 1e300, float("nan")])
@pytest.mark.parametrize("family_name", ["linear-regression", "gaussian-mean", "logistic-regression"])
def test_a_noise_scale_out_of_range_is_refused(family_name: str, noise_scale: float) -> None:
    target = {"linear-regression": "hours", "gaussian-mean": None}.get(family_name, "ill")
    with pytest.raises(InvalidRequest) as caught:
        make_problem(ModelSpec(family_name, ("age",), target, noise_scale=noise_scale), facts(10))
    assert caught.value.faults[0].pointer == "/model/noise_scale"
