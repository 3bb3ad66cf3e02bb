"""The rules of a declaration: a valid one is accepted, and each fault is reported at its member."""

import copy
import json
from typing import Any

import pytest
from pydantic import ValidationError

from app.datasets.declaration import check
from app.datasets.schemas import EXAMPLE_DECLARATION, DatasetBody
from app.errors import InvalidRequest
from app.http.requests.bodies import validate

LARGEST_SLOTS = 1_000_000


def declared(**changes: Any) -> dict[str, Any]:
    body = copy.deepcopy(EXAMPLE_DECLARATION)
    body.update(changes)
    return body


def with_column(**column: Any) -> dict[str, Any]:
    return declared(columns=[column])


def person(column: str = "hours", max_rows: int = 2) -> dict[str, Any]:
    return {"kind": "column", "column": column, "max_rows": max_rows}


def pointers(body: dict[str, Any]) -> set[str]:
    with pytest.raises(InvalidRequest) as caught:
        check(DatasetBody.model_validate(body), LARGEST_SLOTS)
    return {fault.pointer for fault in caught.value.faults}


def test_documented_example_is_accepted() -> None:
    check(DatasetBody.model_validate(EXAMPLE_DECLARATION), LARGEST_SLOTS)


@pytest.mark.parametrize("column", ["hours", "sex", "income_gt_50k"])
def test_unit_of_several_rows_is_accepted(column: str) -> None:
    body = declared(privacy_unit=person(column, LARGEST_SLOTS // 1000), slots=1000)
    check(DatasetBody.model_validate(body), LARGEST_SLOTS)


@pytest.mark.parametrize("name", ["weight", "y", "intercept", "present"])
def test_reserved_names_are_accepted_as_columns(name: str) -> None:
    check(DatasetBody.model_validate(with_column(name=name, type="binary")), LARGEST_SLOTS)


@pytest.mark.parametrize(
    ("body", "pointer"),
    [
        (declared(columns=[{"name": "a", "type": "binary"}] * 2), "/columns/1/name"),
        (with_column(name="a", type="real", lower=1, upper=1), "/columns/0/upper"),
        (with_column(name="a", type="real", lower=2.0, upper=1.0), "/columns/0/upper"),
        (with_column(name="a", type="real", lower=0.0, upper=5e-324), "/columns/0/upper"),
        (with_column(name="a", type="integer", lower=3, upper=3), "/columns/0/upper"),
        (
            with_column(name="a", type="integer", lower=0, upper=9, missing={"impute": 10}),
            "/columns/0/missing/impute",
        ),
        (
            with_column(name="a", type="categorical", categories=["x"], missing={"impute": "z"}),
            "/columns/0/missing/impute",
        ),
        (with_column(name="a", type="categorical", categories=["x", "x"]), "/columns/0/categories"),
        (with_column(name="a", type="categorical", categories=["x\n"]), "/columns/0/categories/0"),
        (declared(name="   "), "/name"),
        (declared(name="a\x00b"), "/name"),
        (declared(population="a\tb"), "/population"),
        (declared(slots=LARGEST_SLOTS + 1), "/slots"),
        (declared(budget=None), "/budget"),
        (declared(sensitivity="public"), "/budget"),
        (declared(privacy_unit=person(column="age")), "/columns/0/missing"),
        (declared(privacy_unit=person(max_rows=LARGEST_SLOTS // 1000 + 1), slots=1000), "/privacy_unit/max_rows"),
        (declared(privacy_unit=person(max_rows=2**22), slots=1), "/privacy_unit/max_rows"),
        (declared(privacy_unit={"kind": "column", "column": "nobody", "max_rows": 2}), "/privacy_unit/column"),
    ],
)
def test_broken_rule_is_reported_at_its_member(body: dict[str, Any], pointer: str) -> None:
    assert pointer in pointers(body)


def test_line_breaks_and_tabs_are_accepted_in_a_description() -> None:
    check(DatasetBody.model_validate(declared(description="one\n\ttwo")), LARGEST_SLOTS)


@pytest.mark.parametrize(
    "body",
    [
        with_column(name="1a", type="binary"),
        with_column(name="a b", type="binary"),
        with_column(name="a\n", type="binary"),
        with_column(name="a" * 64, type="binary"),
        with_column(name="a", type="text"),
        with_column(name="a", type="binary", lower=0),
        with_column(name="a", type="real", lower=0, upper=1, categories=["x"]),
        with_column(name="a", type="real", lower=0),
        with_column(name="a", type="real", lower="0", upper=1),
        with_column(name="a", type="real", lower=True, upper=2),
        with_column(name="a", type="real", lower=float("-inf"), upper=1),
        with_column(name="a", type="real", lower=float("nan"), upper=1),
        with_column(name="a", type="real", lower=0, upper=1e300),
        with_column(name="a", type="real", lower=0, upper=10**400),
        with_column(name="a", type="integer", lower=0, upper=1.5),
        with_column(name="a", type="integer", lower=0, upper=2**60),
        with_column(name="a", type="integer", lower=0, upper=2**53),  # as a double, 2**53 + 1 is the same number
        with_column(name="a", type="categorical", categories=[]),
        with_column(name="a", type="categorical", categories=[""]),
        with_column(name="a", type="categorical", categories=[1]),
        with_column(name="a", type="categorical", categories=["\ud800"]),
        declared(description="\ud800"),
        with_column(name="a", type="binary", missing={"impute": 2}),
        with_column(name="a", type="binary", missing={"impute": 1.0}),
        with_column(name="a", type="binary", missing={}),
        with_column(name="a", type="binary", missing={"impute": 1, "drop": True}),
        declared(columns=[]),
        declared(slots=0),
        declared(slots=1.0),
        declared(slots=True),
        declared(sensitivity="secret"),
        declared(privacy_unit={"kind": "row", "column": "age"}),
        declared(privacy_unit={"kind": "column", "column": "age", "max_rows": 0}),
        declared(privacy_unit={"kind": "person"}),
        declared(budget={"delta": 1e-6}),
        declared(budget={"epsilon": "inf"}),
        declared(budget={"epsilon": float("inf")}),
        declared(seed=1),
        declared(shared_with=["key with blanks"]),
        declared(releases_public="yes"),
    ],
)
def test_member_of_a_wrong_type_is_refused(body: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        DatasetBody.model_validate(body)


@pytest.mark.parametrize(
    ("changes", "pointer"),
    [
        ({"max_rows": None}, "/privacy_unit/max_rows"),
        ({"max_rows": 0}, "/privacy_unit/max_rows"),
        ({"column": ""}, "/privacy_unit/column"),
        ({"column": "\x00"}, "/privacy_unit/column"),
        ({"name": 1}, "/privacy_unit"),
    ],
)
def test_tag_of_a_union_is_not_taken_for_the_member_of_its_name(changes: dict[str, Any], pointer: str) -> None:
    body = declared(privacy_unit=person() | changes)
    with pytest.raises(InvalidRequest) as caught:
        validate(DatasetBody, json.dumps(body).encode())
    assert {fault.pointer for fault in caught.value.faults} == {pointer}


def test_missing_member_beside_the_tag_of_its_union_is_named() -> None:
    unit = {"kind": "column", "column": "hours"}
    with pytest.raises(InvalidRequest) as caught:
        validate(DatasetBody, json.dumps(declared(privacy_unit=unit)).encode())
    assert [fault.pointer for fault in caught.value.faults] == ["/privacy_unit/max_rows"]


@pytest.mark.parametrize("value", [0, 1, False, True])
def test_binary_column_accepts_either_value_for_missing_cells(value: object) -> None:
    check(DatasetBody.model_validate(with_column(name="a", type="binary", missing={"impute": value})), LARGEST_SLOTS)


@pytest.mark.parametrize("member", ["name", "sensitivity", "columns", "privacy_unit", "slots"])
def test_members_that_decide_privacy_have_no_default(member: str) -> None:
    body = declared()
    del body[member]
    with pytest.raises(ValidationError):
        DatasetBody.model_validate(body)
