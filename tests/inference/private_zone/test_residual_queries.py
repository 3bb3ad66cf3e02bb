"""Queries of cut residuals: their sensitivity, totality and definition, for every model that has residuals."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.inference.core.facts import Column
from app.inference.core.model import Array32, Array64, Model
from app.inference.core.plan import ModelSpec
from app.inference.core.problems import make_problem
from app.inference.core.query import Integers, Query
from app.inference.private_zone import queries
from app.inference.private_zone.mechanisms import CLIP_FLOOR, GRID, BadQuery
from app.inference.private_zone.queries import CutScoreSum, ExcessSum, ResidualHistogram, find_kind
from app.inference.private_zone.queries.residuals import EDGES
from tests.inference.populations import DECLARED, REGRESSORS
from tests.inference.support import DESIGN, MODEL, facts

MODELS: dict[str, ModelSpec] = {
    "linear": ModelSpec("linear-regression", REGRESSORS, "cost", noise_scale=30.0),
    "linear, unknown noise": ModelSpec("linear-regression", REGRESSORS, "cost"),
    "poisson": ModelSpec("poisson-regression", REGRESSORS, "visits"),
    "negative binomial": ModelSpec("negative-binomial-regression", REGRESSORS, "visits", dispersion=0.7),
    "student t": ModelSpec("student-t-regression", REGRESSORS, "cost", noise_scale=30.0),
    "student t, unknown scale": ModelSpec("student-t-regression", REGRESSORS, "cost"),
}
KINDS: dict[str, Callable[[np.random.Generator, Model, float, float], Query]] = {
    "cut_score_sum": lambda rng, model, clip, cut: CutScoreSum(_theta(rng, model), _transform(rng, model), clip, cut),
    "residual_histogram": lambda rng, model, _clip, _cut: ResidualHistogram(_theta(rng, model)),
    "excess_sum": lambda rng, model, clip, cut: _excess(rng, model, clip, cut, 0.0),
    "excess_sum, with squares": lambda rng, model, clip, cut: _excess(rng, model, clip, cut, 0.3),
}
EVERY_KIND = pytest.mark.parametrize("name", KINDS)
EVERY_MODEL = pytest.mark.parametrize("chosen", MODELS)
HOSTILE = (np.nan, np.inf, -np.inf, 3e38, -3e38, 1e30, 1e-45, 0.0)


def _model(chosen: str) -> Model:
    return make_problem(MODELS[chosen], DECLARED).model


def _theta(rng: np.random.Generator, model: Model) -> Array64:
    return np.asarray(rng.standard_normal(model.dimension))


def _transform(rng: np.random.Generator, model: Model) -> Array64:
    return np.tril(rng.standard_normal((model.dimension, model.dimension)))


def _excess(rng: np.random.Generator, model: Model, clip: float, cut: float, squares: float) -> ExcessSum:
    return ExcessSum(_theta(rng, model), cut, scale=1.7, centre=0.2, spread=0.9, squares=squares, clip=clip)


def _rows(rng: np.random.Generator, chosen: str, n: int) -> Array32:
    """Draw design rows with an intercept, and targets far from most predictions."""
    x = np.column_stack([rng.uniform(-1, 1, (n, 3)), np.ones(n)])
    y = rng.integers(0, 60, n) if MODELS[chosen].target == "visits" else rng.uniform(-1, 1, n)
    return np.column_stack([x, y]).astype(np.float32)


def _sum(query: Query, chosen: str, rows: Array32, each: int = 1) -> Integers:
    return query.sum(_model(chosen), rows, np.ones(len(rows), dtype=bool), each)


@EVERY_KIND
@EVERY_MODEL
@settings(max_examples=12)
@given(
    seed=st.integers(0, 2**32),
    clip=st.floats(CLIP_FLOOR, 100.0),
    cut=st.sampled_from([1e-30, 1e-3, 1.0, 3.0, 500.0, 1e30, 1e300]),
    each=st.sampled_from([1, 1, 3]),
    spread=st.sampled_from([1.0, 1e-6, 30.0, 1e30]),
    faults=st.lists(st.tuples(st.integers(0, 2), st.integers(0, 4), st.sampled_from(HOSTILE)), max_size=4),
)
def test_one_unit_moves_the_sum_by_at_most_the_grids_radius(
    name: str,
    chosen: str,
    seed: int,
    clip: float,
    cut: float,
    each: int,
    spread: float,
    faults: list[tuple[int, int, float]],
) -> None:
    """W5, W14: after rounding, in exact integers, for any rows; an absent unit contributes zero."""
    rng, model = np.random.default_rng(seed), _model(chosen)
    query = KINDS[name](rng, model, clip, cut)
    query = replace(query, theta=spread * query.theta)  # type: ignore[attr-defined, type-var]
    rows, present = _rows(rng, chosen, 20 * each), np.ones(20 * each, dtype=bool)
    unit = slice(7 * each, 8 * each)
    for row, column, value in faults:
        rows[unit][row % each, column] = value
    full = query.sum(model, rows, present, each)
    rows[unit], present[unit] = 0, False
    without = query.sum(model, rows, present, each)
    assert full.dtype == without.dtype == np.int64
    assert full.shape == (query.length,)
    np.testing.assert_array_equal(np.broadcast_to(query.scales(1 / GRID), full.shape), 1.0)
    assert sum(int(value) ** 2 for value in full - without) <= GRID**2
    assert not np.any(query.sum(model, rows, np.zeros_like(present), each))


@EVERY_KIND
@EVERY_MODEL
@pytest.mark.parametrize("each", [1, 3])
def test_a_sum_is_the_total_of_the_sums_of_single_units(name: str, chosen: str, each: int) -> None:
    """W5, W6: no clip depends on other units, and the place of a unit does not matter."""
    rng, model = np.random.default_rng(8), _model(chosen)
    query, rows = KINDS[name](rng, model, 0.4, 1.0), _rows(rng, chosen, 12 * each)
    whole = _sum(query, chosen, rows, each)
    singles = [_sum(query, chosen, unit, each) for unit in np.split(rows, 12)]
    np.testing.assert_array_equal(whole, np.sum(singles, axis=0))
    order = np.random.default_rng(1).permutation(12)
    moved = rows.reshape(12, each, -1)[order].reshape(rows.shape)
    np.testing.assert_array_equal(_sum(query, chosen, moved, each), whole)
    largest = max(float(np.linalg.norm(single.astype(np.float64))) for single in singles)
    assert 0.9 * GRID < largest <= GRID  # some unit is at the bound


@EVERY_KIND
@EVERY_MODEL
def test_absent_rows_in_a_unit_add_nothing(name: str, chosen: str) -> None:
    """A unit of one present row contributes that row, at any of its places; null rows have no part."""
    rng, model = np.random.default_rng(3), _model(chosen)
    query, rows = KINDS[name](rng, model, 0.5, 1.0), _rows(rng, chosen, 40)
    padded = np.zeros((40, 3, rows.shape[1]), dtype=np.float32)
    present = np.zeros((40, 3), dtype=bool)
    places = rng.integers(0, 3, 40)
    padded[np.arange(40), places], present[np.arange(40), places] = rows, True
    together = query.sum(model, padded.reshape(120, -1), present.ravel(), 3)
    np.testing.assert_allclose(together, _sum(query, chosen, rows), atol=40)


@EVERY_KIND
@EVERY_MODEL
@pytest.mark.parametrize("clip", [1e-9, 1e155, 1e307])
@pytest.mark.parametrize("size", [0.0, 1e-300, 1e30, 1e300])
def test_w14_every_checked_query_has_a_sum_for_any_bound(name: str, chosen: str, clip: float, size: float) -> None:
    """A fault after the check would freeze the account like a fault among rows."""
    rng, model = np.random.default_rng(0), _model(chosen)
    for cut in (1e-300, 1.0, 1e300):
        query = KINDS[name](rng, model, clip, cut)
        query = replace(query, theta=size * query.theta)  # type: ignore[attr-defined, type-var]
        query.check(model, make_problem(MODELS[chosen], DECLARED).design)
        assert np.all(np.abs(_sum(query, chosen, _rows(rng, chosen, 20))) <= 20 * GRID)


def _standard(chosen: str, theta: Array64, rows: Array64) -> tuple[Array64, Array64]:
    """Compute standardised residuals and scales from the definitions of the families."""
    x, y = rows[:, :4], rows[:, 4]
    if MODELS[chosen].target == "visits":
        rate, dispersion = np.exp(x @ theta), MODELS[chosen].dispersion or 0.0
        spread = (rate + 0.5) / (1 + dispersion * rate)
        return (y - rate) / ((1 + dispersion * rate) * np.sqrt(spread)), np.sqrt(spread)
    sigma = 30.0 / 150.0 if MODELS[chosen].noise_scale else float(np.exp(theta[-1])) / 4
    return (y - x @ theta[:4]) / sigma, np.full(len(y), 1 / sigma)


def _by_hand(name: str, chosen: str, query: Query, rows: Array64) -> Array64:
    """Compute each kind in double precision from its definition."""
    theta: Array64 = query.theta  # type: ignore[attr-defined]
    x, (e, s) = rows[:, :4], _standard(chosen, theta, rows)
    if isinstance(query, ResidualHistogram):
        bins = np.searchsorted(EDGES, np.abs(e), side="right") - 1
        counts = [np.bincount(bins[(sign * e > 0) & (bins >= 0)], minlength=len(EDGES)) for sign in (-1, 1)]
        return np.concatenate(counts).astype(float)
    if isinstance(query, ExcessSum):
        inside = np.clip(e, -query.cut, query.cut)
        t = np.clip((x @ theta[:4] - query.centre) / query.spread, -1, 1)
        a = (e - inside) * s / query.scale
        values = np.column_stack([a, a * t, (e**2 - inside**2) * query.squares][: query.length])
    elif chosen == "student t":
        assert isinstance(query, CutScoreSum)
        directions, wide = (x * s[:, None]) @ query.transform.T, query.cut / 2
        slope, limit = 5 * e / (4 + (e / wide) ** 2), query.clip / np.linalg.norm(directions, axis=1)
        values = directions * np.clip(slope, -limit, limit)[:, None]
        assert np.any(np.abs(slope) < limit)
        assert np.any(np.abs(slope) > limit)
    else:
        assert isinstance(query, CutScoreSum)
        noisy = len(theta) > 4
        directions = (x * s[:, None]) @ query.transform[:, :4].T
        constant = query.transform[:, -1] if noisy else np.zeros(len(theta))
        e = np.clip(e, -query.cut, query.cut)
        values = directions * e[:, None] + np.outer(e**2 - 1, constant)
        most = query.cut * np.linalg.norm(directions, axis=1) + max(query.cut**2, 1) * np.linalg.norm(constant)
        values *= np.minimum(1, query.clip / most)[:, None]
        assert np.any(most < query.clip)
        assert np.any(most > query.clip)
    norms = np.linalg.norm(values, axis=1)
    return np.asarray(np.minimum(1, query.clip / np.maximum(norms, 1e-300)) @ values)


@EVERY_KIND
@EVERY_MODEL
def test_answers_match_the_definition(name: str, chosen: str) -> None:
    """Without noise, to the shrinkage and rounding of the grid: 2**-10 of each unit's bound."""
    rng, model = np.random.default_rng(11), _model(chosen)
    clip = {"poisson": 4.0, "negative binomial": 2.5}.get(chosen, 8.0 if MODELS[chosen].noise_scale else 25.0)
    query, rows = KINDS[name](rng, model, clip, 5.0 if chosen == "student t" else 1.5), _rows(rng, chosen, 700)
    answer = query.answer(_sum(query, chosen, rows))
    expected = _by_hand(name, chosen, query, rows.astype(np.float64))
    np.testing.assert_allclose(answer, expected, atol=700 * clip * 2.0**-10)
    assert np.any(expected != 0)
    assert answer.dtype == np.float64
    assert answer.base is None


@pytest.mark.parametrize("chosen", [chosen for chosen in MODELS if chosen != "student t"])
def test_weights_of_cut_scores_do_not_depend_on_targets(chosen: str) -> None:
    """Scores of one design row are on one line: its residual, cut, times the same weighted direction."""
    rng, model = np.random.default_rng(4), _model(chosen)
    query = CutScoreSum(np.zeros(model.dimension), np.eye(model.dimension), 0.1, 1.0)
    row = _rows(rng, chosen, 1)
    there = [row.copy() for _ in range(2)]
    there[0][0, -1], there[1][0, -1] = (0, 60) if MODELS[chosen].target == "visits" else (-1, 1)
    both = np.array([query.answer(_sum(query, chosen, each))[:4] for each in there])
    e = np.array([np.clip(_standard(chosen, query.theta, each.astype(float))[0][0], -1, 1) for each in there])
    np.testing.assert_allclose(both[0] * e[1], both[1] * e[0], atol=1e-4)
    assert np.abs(both).max() > 0.01


def test_histogram_counts_each_residual_in_the_bin_of_its_size() -> None:
    """Residuals at an edge belong to the bin above; those below 1 or beyond all numbers to none or the last."""
    model = _model("linear")
    sigma = 30.0 / 150.0
    sizes = np.array([0.0, 0.99, 1.01, -1.01, 2.9, -400.0, 1e6])
    rows = np.column_stack([np.zeros((len(sizes), 4)), sigma * sizes]).astype(np.float32)
    query = ResidualHistogram(np.zeros(model.dimension))
    counts = query.answer(_sum(query, "linear", rows)).reshape(2, -1)
    expected = np.zeros((2, len(EDGES)))
    expected[1, 0] = expected[0, 0] = expected[1, 3] = expected[0, 17] = expected[1, 18] = 1
    np.testing.assert_allclose(counts, expected, atol=1e-2)


@EVERY_KIND
def test_kinds_are_found_by_name(name: str) -> None:
    query = KINDS[name](np.random.default_rng(0), _model("linear"), 1.0, 1.0)
    assert find_kind(query.kind) is type(query)
    assert name.startswith(query.kind)
    assert type(query).__name__ in queries.__all__


D = 4
LINEAR = make_problem(MODELS["linear"], DECLARED)
GOOD_SCORES = CutScoreSum(np.zeros(D), np.eye(D), 1.0, 1.0)
GOOD_EXCESS = ExcessSum(np.zeros(D), 1.0, scale=1.0, centre=0.0, spread=1.0, squares=0.0, clip=1.0)


def _changed(name: str, value: Any) -> ExcessSum:
    return replace(GOOD_EXCESS, **{name: value})


@pytest.mark.parametrize(
    "query",
    [
        ResidualHistogram(np.zeros(D + 1)),
        ResidualHistogram(np.full(D, np.nan)),
        *(replace(GOOD_SCORES, cut=cut) for cut in (0.0, -1.0, np.nan, np.inf)),
        *(replace(GOOD_SCORES, clip=clip) for clip in (np.nan, np.inf)),
        replace(GOOD_SCORES, theta=np.zeros(D + 1)),
        replace(GOOD_SCORES, transform=np.full((D, D), np.inf)),
        *(_changed(name, np.nan) for name in ("cut", "scale", "centre", "spread", "squares", "clip")),
        *(_changed(name, 0.0) for name in ("cut", "scale", "spread")),
        *(_changed(name, -1.0) for name in ("cut", "scale", "spread", "squares")),
        replace(GOOD_EXCESS, theta=np.zeros(D - 1)),
    ],
)
def test_a_malformed_query_is_refused(query: Query) -> None:
    with pytest.raises(BadQuery):
        query.check(LINEAR.model, LINEAR.design)


@pytest.mark.parametrize("query", [GOOD_SCORES, GOOD_EXCESS, ResidualHistogram(np.zeros(D))], ids=lambda q: q.kind)
def test_models_with_bounded_residuals_are_refused(query: Query) -> None:
    query.check(LINEAR.model, LINEAR.design)
    size = MODEL.dimension
    other = replace(query, theta=np.zeros(size))  # type: ignore[type-var]
    if isinstance(other, CutScoreSum):
        other = replace(other, transform=np.eye(size))
    with pytest.raises(BadQuery, match="unbounded residuals"):
        other.check(MODEL, DESIGN)


@pytest.mark.parametrize("chosen", MODELS)
def test_no_declared_row_has_a_residual_beyond_the_largest(chosen: str) -> None:
    """The bound follows from declared facts, for predictions within the declared bounds."""
    rng, model = np.random.default_rng(5), _model(chosen)
    rows = _rows(rng, chosen, 3000)
    rows[:, -1] = rng.choice([0, 60] if MODELS[chosen].target == "visits" else [-1, 1], 3000)
    theta = np.zeros(model.dimension)
    theta[:4] = [0.2, -0.3, 0.1, 0.3]
    e = np.abs(model.residuals(rows, theta).standard)  # type: ignore[attr-defined]
    largest = model.largest_residual(theta)  # type: ignore[attr-defined]
    assert e.max() <= largest
    assert largest < 20 * e.max()


def test_columns_without_a_range_have_no_part() -> None:
    """A declared column of one value is zero in the design; queries of residuals are total all the same."""
    declared = replace(facts(10), columns=(Column("x", "real", 1, 1 + 1e-12), Column("y", "integer", 0, 9)))
    model, design, _ = make_problem(ModelSpec("poisson-regression", ("x",), "y"), declared)
    query = ResidualHistogram(np.zeros(model.dimension))
    query.check(model, design)
    rows = np.array([[0, 1, 9], [0, 1, 0]], dtype=np.float32)
    assert query.answer(query.sum(model, rows, np.ones(2, dtype=bool), 1)).sum() == pytest.approx(1, abs=1e-2)
