"""Dummy rows come from the declaration alone, and fit it."""

import sys
from typing import Any

import numpy as np
import pytest
from corevault import InvalidArgument, Schema, binary, categorical, example, integer, real

SCHEMA = Schema(
    integer("age", 17, 90),
    real("hours", 1, 99),
    categorical("sex", ["F", "M", "X"]),
    binary("ill"),
    integer("days", 0.5, 2.5),  # type: ignore[arg-type]  # a declaration may have such bounds
)


def test_dummy_rows_fit_their_declaration() -> None:
    frame = SCHEMA.dummy(500)
    check = SCHEMA.check(frame)
    assert (check.rows, check.null_rows, check.absent, check.unknown) == (500, 0, (), ())
    assert all(column.missing == column.clamped == 0 for column in check.columns.values())
    assert set(frame["days"]) == {1, 2}
    assert (frame["age"].min(), frame["age"].max()) == (17, 90)
    np.testing.assert_allclose(frame["sex"].value_counts(normalize=True), 1 / 3, atol=0.02)
    np.testing.assert_allclose(frame[["age", "hours", "ill"]].corr().to_numpy() - np.eye(3), 0, atol=0.1)
    assert frame.equals(SCHEMA.dummy(500))


def test_dummy_rows_go_through_a_release() -> None:
    core = example()
    schema = Schema(real("age", 20, 80), binary("smoker"), categorical("sex", ["female", "male"]))
    assert len(core.predict(schema.dummy(20), schema=schema)) == 20


def test_dummy_rows_without_pandas_are_a_mapping(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pandas", None)
    rows = SCHEMA.dummy(4)
    assert {name: len(cells) for name, cells in rows.items()} == dict.fromkeys(SCHEMA.names, 4)
    assert SCHEMA.check(rows).null_rows == 0


@pytest.mark.parametrize("wrong", [-1, 2.5, "3", True, None])
def test_a_wrong_count_is_refused(wrong: Any) -> None:
    with pytest.raises(InvalidArgument, match="count must be"):
        SCHEMA.dummy(wrong)
