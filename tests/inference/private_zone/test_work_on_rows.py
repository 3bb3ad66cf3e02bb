"""W14: the steps on a table and their shapes depend on its slots, not on the presence of rows."""

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from app.inference.conjugate import make_conjugate_problem
from app.inference.core.designs import Fourier, Interaction, Network, Polynomial, Spline
from app.inference.core.designs.network import Layer
from app.inference.core.grouping import make_grouped_problem
from app.inference.core.plan import ModelSpec
from app.inference.core.problems import make_problem
from app.inference.private_zone import queries
from app.inference.private_zone.partition import compute_partial_sum, fold
from app.inference.private_zone.queries.blocks import MOST_ROWS
from app.inference.private_zone.rows import HeldRows
from support.table import Table
from tests.inference.populations import DECLARED, SPECS
from tests.inference.private_zone.every_query import make_queries

EACH = 3
SLOTS = 2 * MOST_ROWS + 100
SHARES = {"empty": 0.0, "half": 0.5, "full": 1.0}
LAYER = Layer(((1.5, -0.5, 0.2, 0.4), (0.3, 0.8, -1.0, 0.6)), (0.1, -0.2), "tanh")
TERMS = ModelSpec(
    "logistic-regression",
    (
        Interaction(("age", "colour", "smoker")),
        Interaction((Spline("hours", 4), "smoker")),
        Polynomial("cost", 3),
        Spline("hours", 5),
        Fourier(("age", "colour"), 4, 1.0, 2),
        Network(("age", "hours", "colour"), (LAYER,)),
    ),
    "ill",
)
CONJUGATE = [
    ModelSpec("logistic-regression", ("age", "hours", "colour"), "ill"),
    ModelSpec("linear-regression", ("age", "colour"), "hours"),
    ModelSpec("gaussian", ("age", "hours"), None),
    TERMS,
]
GROUPED = [
    make_grouped_problem(ModelSpec("logistic-regression", ("age", "hours"), "ill"), names, DECLARED)
    for names in (("smoker",), ("colour", "smoker", "blood"))
]
"""Problems with fewer groups than a unit has rows, and with more."""
Problems = tuple[Any, Any]
EVERY = pytest.mark.parametrize(
    "problem",
    [
        *(
            pytest.param(make_problem(each, DECLARED)[:2], id=f"{each.family}-{each.noise_scale}")
            for each in (*SPECS, TERMS)
        ),
        *(
            pytest.param(make_conjugate_problem(each, DECLARED), id=f"conjugate {each.family}-{len(each.features)}")
            for each in CONJUGATE
        ),
        *(pytest.param(each, id=f"{each.model.groups} groups") for each in GROUPED),
    ],
)
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


@pytest.mark.long
@EVERY
@pytest.mark.parametrize("each", [pytest.param(1, marks=pytest.mark.sweep), EACH])
def test_steps_and_shapes_do_not_depend_on_presence(problem: Problems, each: int) -> None:
    """W14: no block is skipped, and absent rows take the same steps as present ones."""
    _work(problem, each, 0.5)  # fills caches that live from one query to the next
    taken = {name: _work(problem, each, share) for name, share in SHARES.items()}
    assert sum(name == "call sum" for name, _ in taken["full"]) >= 3 * len(list(make_queries(*problem)))
    assert taken["empty"] == taken["half"] == taken["full"]


def _work(problem: Problems, each: int, share: float) -> list[Step]:
    model, design = problem
    asked, source = list(make_queries(model, design)), _table(share, each)
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
    monkeypatch: pytest.MonkeyPatch, problem: Problems, each: int
) -> None:
    """W14: the duration of a boolean index reveals the number of selected rows."""
    model, design = problem
    source = _table(0.5, each)
    expected, there = fold(model, design, source, range(SLOTS))
    sums = [query.sum(model, expected, there, each) for query in make_queries(model, design)]
    for name in MAKERS:
        monkeypatch.setattr(np, name, _strict(getattr(np, name)))
    gathered = {name: values.view(Strict) for name, values in source.gather(np.arange(SLOTS)).items()}
    x, y, present = design.encode(gathered)
    np.testing.assert_array_equal(np.asarray(present), there)
    rows = np.ascontiguousarray(model.fold(x.view(Strict), y.view(Strict))).view(Strict)
    np.testing.assert_array_equal(np.asarray(rows), expected)
    for query, total in zip(make_queries(model, design), sums, strict=True):
        found = query.sum(model, rows, present.view(Strict), each)
        np.testing.assert_array_equal(np.asarray(found), total)


def _strict(make: Callable[..., Any]) -> Callable[..., Any]:
    def made(*args: Any, **options: Any) -> Any:
        return np.asarray(make(*args, **options)).view(Strict)

    return made


def test_every_kind_of_query_is_asked() -> None:
    problems: list[Problems] = [make_problem(spec, DECLARED)[:2] for spec in SPECS]
    problems += [make_conjugate_problem(spec, DECLARED) for spec in CONJUGATE] + list(GROUPED)
    found = {type(query) for problem in problems for query in make_queries(*problem)}
    elsewhere = {"TopicSum"}  # of documents: tests/inference/private_zone/test_topic_queries.py
    assert {each.__name__ for each in found} | elsewhere == set(queries.__all__) - {"find_kind"}
