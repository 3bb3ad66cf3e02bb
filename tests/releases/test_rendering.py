"""The four formats contain the same points, and equal points give equal bytes."""

import csv
import io
import json
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

from app.errors import Internal
from app.inference.core.release import DesignColumn, Posterior, Pseudocoreset
from app.releases.http.formats import MEDIA_TYPES
from app.releases.http.rendering import render

DESIGN = (
    DesignColumn("age", "age", {"kind": "affine", "center": 53.5, "scale": 36.5}),
    DesignColumn('sex=Ma,le "x"', "sex", {"kind": "indicator", "value": 'Ma,le "x"'}),
    DesignColumn("intercept", None, {"kind": "constant", "value": 1}),
)


def points(**changes: Any) -> Pseudocoreset:
    rng = np.random.Generator(np.random.PCG64(7))
    fields: dict[str, Any] = {
        "u": rng.normal(size=(5, 3)),
        "y": np.array([0.0, 1.0, 1.0, 0.0, 1.0]),
        "weight": rng.random(5),
        "design": DESIGN,
    }
    return Pseudocoreset(**(fields | changes))


def test_every_representation_holds_the_same_doubles() -> None:
    original = points()
    assert original.y is not None
    rendered = render(original, discrete_target=True)
    names = ["age", 'sex=Ma,le "x"', "intercept", "y", "weight"]
    expected = np.column_stack([original.u, original.y, original.weight])

    document = json.loads(rendered["json"])
    assert document["columns"] == names
    np.testing.assert_array_equal(np.array(document["rows"]), expected)

    header, *lines = csv.reader(io.StringIO(rendered["csv"].decode()))
    assert header == names
    np.testing.assert_array_equal(np.array(lines, dtype=float), expected)

    table = pq.read_table(io.BytesIO(rendered["parquet"]))
    assert table.column_names == names
    np.testing.assert_array_equal(np.column_stack([column.to_numpy() for column in table.columns]), expected)

    with np.load(io.BytesIO(rendered["npz"]), allow_pickle=False) as arrays:
        assert sorted(arrays) == ["columns", "u", "weight", "y"]
        assert list(arrays["columns"]) == names[:3]
        np.testing.assert_array_equal(np.column_stack([arrays["u"], arrays["y"], arrays["weight"]]), expected)
    assert set(rendered) == set(MEDIA_TYPES)


def test_a_discrete_target_is_written_as_integers() -> None:
    rows = json.loads(render(points(), discrete_target=True)["json"])["rows"]
    assert all(type(row[3]) is int for row in rows)
    rows = json.loads(render(points(), discrete_target=False)["json"])["rows"]
    assert all(type(row[3]) is float for row in rows)


def test_a_model_without_a_target_has_no_y() -> None:
    rendered = render(points(y=None), discrete_target=False)
    assert "y" not in json.loads(rendered["json"])["columns"]
    with np.load(io.BytesIO(rendered["npz"]), allow_pickle=False) as arrays:
        assert sorted(arrays) == ["columns", "u", "weight"]


def test_rendering_is_deterministic() -> None:
    """W3: the bytes depend on no clock, host or path."""
    first = render(points(), discrete_target=True)
    fortran = points(u=np.asfortranarray(points().u))
    assert render(fortran, discrete_target=True) == first


@pytest.mark.parametrize(
    "changes",
    [
        {"u": np.full((5, 3), np.nan)},
        {"weight": np.full(5, np.inf)},
        {"weight": np.array([1.0, 1, 1, 1, -1e-9])},
        {"weight": np.ones(4)},
        {"y": np.ones(6)},
        {"design": DESIGN[:2]},
        {"posterior": Posterior(("a",), np.array([np.nan]), np.eye(1))},
        {"posterior": Posterior(("a",), np.zeros(1), np.array([[np.inf]]))},
        {"posterior": Posterior(("a",), np.zeros(2), np.eye(2))},
        {"posterior": Posterior(("a", "b"), np.zeros(2), np.eye(3))},
    ],
)
def test_points_that_break_a_rule_are_not_rendered(changes: dict[str, Any]) -> None:
    with pytest.raises(Internal):
        render(points(**changes), discrete_target=False)
