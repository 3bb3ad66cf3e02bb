"""W14: the steps on a table and their shapes depend on its slots, not on the presence of rows."""

import sys
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from app.inference.core.design import Design
from app.inference.core.model import Model
from app.inference.core.plan import ModelSpec
from app.inference.core.problems import make_problem
from app.inference.core.query import Query
from app.inference.private_zone import queries
from app.inference.private_zone.mechanisms import BadQuery
from app.inference.private_zone.partition import compute_partial_sum, fold
from app.inference.private_zone.queries import (
    BoundedScoreSum,
    ClippedScoreSum,
    CutScoreSum,
    ExcessSum,
    InformationSum,
    LengthHistogram,
    MeanSum,
    MomentSum,
    PotentialSum,
    ResidualHistogram,
    TailSum,
)
from app.inference.private_zone.queries.blocks import MOST_ROWS
from app.inference.private_zone.rows import HeldRows
from support.table import Table
from tests.inference.populations import DECLARED, SPECS

EACH = 3
SLOTS = 2 * MOST_ROWS + 100
SHARES = {"empty": 0.0, "half": 0.5, "full": 1.0}
EVERY = pytest.mark.parametrize("spec", SPECS, ids=lambda spec: f"{spec.family}-{spec.noise_scale}")
MAKERS = ("concatenate", "column_stack", "einsum", "empty", "full", "hstack", "ones", "zeros")
"""Functions whose results are plain arrays for arguments of any type."""

Step = tuple[str, tuple[tuple[int, ...], ...]]


class Steps:
    """Record each call: its name, and the shapes of its arguments and results."""

    def __init__(self) -> None:
        self.taken: list[Step] = []

    def __enter__(self) -> "Steps":
        sys.setprofile(self._note)
        return self

    def __exit__(self, *_: object) -> None:
        sys.setprofile(None)

    def _note(self, frame: FrameType, event: str, value: Any) -> None:
        if str(frame.f_globals.get("__name__")).startswith("app.inference"):
            name = str(getattr(value, "__name__", "")) if event.startswith("c_") else frame.f_code.co_name
            seen = [*frame.f_locals.values(), value] if event in {"call", "return"} else []
            self.taken.append((f"{event} {name}", tuple(each.shape for each in seen if isinstance(each, np.ndarray))))


class Strict(np.ndarray):
    """An array that refuses boolean indices.

    Their duration depends on the number of selected values.
    """

    def __getitem__(self, key: Any) -> Any:
        _refuse_conditions(key)
        return super().__getitem__(key)

    def __setitem__(self, key: Any, value: Any) -> None:
        _refuse_conditions(key)
        super().__setitem__(key, value)


def _refuse_conditions(key: Any) -> None:
    for part in key if isinstance(key, tuple) else (key,):
        assert not (isinstance(part, np.ndarray) and part.dtype == bool), "values are picked by a condition"


def _table(share: float, each: int) -> Table:
    """Make a table with rows in a random ``share`` of the slots."""
    rng = np.random.default_rng(5)
    rows = SLOTS * each
    present = rng.random(rows) < share
    columns: dict[str, NDArray[Any]] = {"_present": present.astype(np.uint8)}
    for column in DECLARED.columns:
        least, most = (0, max(len(column.categories) - 1, 1)) if column.is_discrete else (column.lower, column.upper)
        values = rng.uniform(least or 0, most or 0, rows)
        columns[column.name] = np.where(present, values if column.type == "real" else np.rint(values), 0)
    return Table(columns, each)


def _queries(model: Model, design: Design) -> Iterator[Query]:
    rng, d, p = np.random.default_rng(6), model.dimension, design.width
    theta, transform = 0.3 * rng.standard_normal(d), np.tril(rng.standard_normal((d, d)))
    draws = theta + 0.2 * rng.standard_normal((4, d))
    shape: dict[str, Any] = {"scale": 1.0, "width": p, "intercept": design.intercept}
    deviation = np.full(max(p - 1, 0), 0.5)
    for query in (
        PotentialSum(draws, 1.0),
        PotentialSum(np.concatenate([draws, 2 * theta - draws]), 1.0, antithetic=True),
        BoundedScoreSum(theta, transform, 1.0),
        BoundedScoreSum(theta, transform, 1.0, 0.5),
        ClippedScoreSum(theta, transform, 1.0),
        CutScoreSum(theta, transform, 1.0, 2.0),
        ResidualHistogram(theta),
        ExcessSum(theta, 1.5, scale=1.0, centre=0.1, spread=0.5, squares=0.0, clip=2.0),
        ExcessSum(theta, 1.5, scale=1.0, centre=0.1, spread=0.5, squares=0.3, clip=2.0),
        InformationSum(theta, transform, 1.0),
        MomentSum(**shape, clip=2.0),
        MeanSum(**shape, clip=2.0),
        LengthHistogram(**shape, largest=9.0, squares=True),
        TailSum(**shape, deviation=deviation, clip=1.0),
    ):
        try:
            query.check(model, design)
        except BadQuery:
            continue
        yield query


@EVERY
@pytest.mark.parametrize("each", [1, EACH])
def test_steps_and_shapes_do_not_depend_on_presence(spec: ModelSpec, each: int) -> None:
    """W14: no block is skipped, and absent rows take the same steps as present ones."""
    _work(spec, each, 0.5)  # fills caches that live from one query to the next
    taken = {name: _work(spec, each, share) for name, share in SHARES.items()}
    assert sum(name == "call sum" for name, _ in taken["full"]) > 20
    assert taken["empty"] == taken["half"] == taken["full"]


def _work(spec: ModelSpec, each: int, share: float) -> list[Step]:
    model, design, _ = make_problem(spec, DECLARED)
    asked, source = list(_queries(model, design)), _table(share, each)
    with Steps() as steps:
        held = HeldRows(model, design, source, np.random.default_rng(0), [(0.3, len(asked)), (1.0, len(asked))])
        for query in asked * 2:
            held.sum(query)
        for query in asked:
            compute_partial_sum(query, model, design, source, range(SLOTS))
    return steps.taken


@EVERY
@pytest.mark.parametrize("each", [1, EACH])
def test_no_row_value_is_selected_by_a_boolean_index(
    monkeypatch: pytest.MonkeyPatch, spec: ModelSpec, each: int
) -> None:
    """W14: the duration of a boolean index reveals the number of selected rows."""
    model, design, _ = make_problem(spec, DECLARED)
    source = _table(0.5, each)
    expected, there = fold(model, design, source, range(SLOTS))
    sums = [query.sum(model, expected, there, each) for query in _queries(model, design)]
    for name in MAKERS:
        monkeypatch.setattr(np, name, _strict(getattr(np, name)))
    gathered = {name: values.view(Strict) for name, values in source.gather(np.arange(SLOTS)).items()}
    x, y, present = design.encode(gathered)
    np.testing.assert_array_equal(np.asarray(present), there)
    rows = np.ascontiguousarray(model.fold(x.view(Strict), y.view(Strict))).view(Strict)
    np.testing.assert_array_equal(np.asarray(rows), expected)
    for query, total in zip(_queries(model, design), sums, strict=True):
        found = query.sum(model, rows, present.view(Strict), each)
        np.testing.assert_array_equal(np.asarray(found), total)


def _strict(make: Callable[..., Any]) -> Callable[..., Any]:
    def made(*args: Any, **options: Any) -> Any:
        return np.asarray(make(*args, **options)).view(Strict)

    return made


def test_every_kind_of_query_is_asked() -> None:
    found = {type(query) for spec in SPECS for query in _queries(*make_problem(spec, DECLARED)[:2])}
    assert {each.__name__ for each in found} == set(queries.__all__) - {"find_kind"}
