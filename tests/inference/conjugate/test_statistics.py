"""Statistics of conjugate models: their proven bounds, the sensitivity of their sums, and their transport."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, cast

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.inference.conjugate import make_conjugate_problem
from app.inference.core.designs import Fourier, Interaction, Polynomial, Spline
from app.inference.core.facts import Column, DeclaredFacts
from app.inference.core.model import Array32, Array64
from app.inference.core.plan import ModelSpec
from app.inference.core.statistics import (
    Statistics,
    compute_units,
    multiply_pairs,
    pack_symmetric,
    raise_to_noise,
    unpack_symmetric,
)
from app.inference.methods.vips.method import choose_square
from app.inference.private_zone.mechanisms import GRID, BadQuery
from app.inference.private_zone.queries import StatisticSum
from app.inference.private_zone.queries.arrays import from_arrays, to_arrays

FACTS = DeclaredFacts(
    (
        Column("age", "integer", 20, 80),
        Column("hours", "real", 0, 100),
        Column("colour", "categorical", categories=("red", "green", "blue")),
        Column("ill", "binary"),
        Column("cost", "real", -500, 900),
    ),
    100,
    {"kind": "row"},
    "private",
    1e-6,
)
SPECS = {
    "logistic": ModelSpec("logistic-regression", ("age", "hours", "colour"), "ill"),
    "logistic, no feature but the intercept's": ModelSpec("logistic-regression", ("age",), "ill"),
    "linear": ModelSpec("linear-regression", ("age", "colour"), "cost"),
    "linear, known noise": ModelSpec("linear-regression", ("age", "colour"), "cost", noise_scale=40.0),
    "gaussian": ModelSpec("gaussian", ("age", "hours", "cost"), None),
    "logistic, terms": ModelSpec(
        "logistic-regression", (Spline("hours", 5), Interaction((Spline("age", 4), "colour")), "cost"), "ill"
    ),
    "linear, terms": ModelSpec(
        "linear-regression",
        (Polynomial("age", 3), Interaction(("hours", "colour")), Fourier(("hours",), 4, 1.0, 2)),
        "cost",
    ),
}
EVERY = pytest.mark.parametrize("name", SPECS)
HOSTILE = (np.nan, np.inf, -np.inf, 3e38, -3e38, 1e30, 1e-45, 0.0)


def model_of(name: str) -> Statistics:
    return cast(Statistics, make_conjugate_problem(SPECS[name], FACTS).model)


def queries(name: str, rng: np.random.Generator, each: int = 1) -> Iterator[StatisticSum]:
    model = model_of(name)
    radius = float(rng.uniform(0.05, 1)) * model.largest_radius
    belief = 3 * rng.standard_normal(model.belief_shape)
    for moving in (False, True):
        if blocks := model.list_blocks(radius, moving=moving):
            yield StatisticSum(belief, compute_units(blocks, each), radius, moving)


def draw_rows(name: str, rng: np.random.Generator, n: int) -> Array32:
    """Fold rows: random ones, and corners of the declared bounds."""
    model, design = make_conjugate_problem(SPECS[name], FACTS)
    columns: dict[str, Any] = {"_present": np.ones(n, dtype=np.uint8)}
    for column in FACTS.columns:
        least, most = (0, max(len(column.categories) - 1, 1)) if column.is_discrete else (column.lower, column.upper)
        assert least is not None
        assert most is not None
        inside, corner = rng.uniform(least, most, n), rng.choice([least, most], n)
        values = np.where(rng.random(n) < 0.5, inside, corner)
        columns[column.name] = np.rint(values) if column.is_discrete else values
    x, y, _ = design.encode(columns)
    return np.ascontiguousarray(model.fold(x, y.astype(np.float32)), dtype=np.float32)


@EVERY
def test_w5_no_row_exceeds_the_proven_bounds(name: str) -> None:
    """Clipping then removes nothing: with the bounds' units, the joint norm is at most 1."""
    rng = np.random.default_rng(3)
    for _ in range(30):
        rows = draw_rows(name, rng, 200)
        for query in queries(name, rng):
            values = model_of(name).contribute(rows, query.belief, query.radius, moving=query.moving)
            assert np.linalg.norm(values / query.units, axis=1).max() <= 1 + 1e-5


@EVERY
@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), each=st.sampled_from([1, 3]))
def test_w5_one_unit_moves_the_sum_by_at_most_the_grids_radius(name: str, seed: int, each: int) -> None:
    """For any rows and beliefs, also in units that are too small."""
    rng = np.random.default_rng(seed)
    rows = draw_rows(name, rng, 4 * each)
    places = rng.random(rows.shape) < 0.1
    rows[places] = rng.choice(HOSTILE, int(places.sum())).astype(np.float32)
    present, model = np.ones(len(rows), dtype=bool), model_of(name)
    for asked in queries(name, rng, each):
        query = replace(asked, units=asked.units * 10.0 ** rng.uniform(-3, 1))
        query.check(model, make_conjugate_problem(SPECS[name], FACTS).design)
        whole = query.sum(model, rows, present, each)
        without = present.copy()
        without[each : 2 * each] = False
        gap = (whole - query.sum(model, rows, without, each)).astype(object)
        assert sum(int(value) ** 2 for value in gap) <= GRID**2


@EVERY
def test_a_person_has_as_many_times_the_bound_as_rows(name: str) -> None:
    rng = np.random.default_rng(4)
    rows = np.repeat(draw_rows(name, rng, 50), 3, axis=0)
    present = np.ones(len(rows), dtype=bool)
    for query in queries(name, rng, 3):
        exact = model_of(name).contribute(rows, query.belief, query.radius, moving=query.moving).sum(axis=0)
        answered = query.answer(query.sum(model_of(name), rows, present, 3))
        np.testing.assert_allclose(answered, exact, atol=1e-4 * float(np.abs(exact).max()) + 1e-4)


@EVERY
def test_null_rows_contribute_nothing(name: str) -> None:
    model = model_of(name)
    rows = np.zeros((64, model.row_width), dtype=np.float32)
    for query in queries(name, np.random.default_rng(1)):
        assert not np.any(query.sum(model, rows, np.zeros(64, dtype=bool), 1))


@EVERY
def test_a_query_arrives_at_another_process_bit_by_bit(name: str) -> None:
    for query in queries(name, np.random.default_rng(2)):
        copied = from_arrays(to_arrays(query))
        assert isinstance(copied, StatisticSum)
        assert (copied.radius, copied.moving, copied.length) == (query.radius, query.moving, query.length)
        np.testing.assert_array_equal(copied.belief, query.belief)
        np.testing.assert_array_equal(copied.units, query.units)


@pytest.mark.parametrize("fault", ["belief", "units", "zero unit", "radius", "no radius"])
def test_a_query_that_does_not_fit_is_refused(fault: str) -> None:
    problem = make_conjugate_problem(SPECS["logistic"], FACTS)
    query = next(queries("logistic", np.random.default_rng(0)))
    broken = {
        "belief": replace(query, belief=np.full(query.belief.shape, np.nan)),
        "units": replace(query, units=query.units[1:]),
        "zero unit": replace(query, units=np.zeros_like(query.units)),
        "radius": replace(query, radius=2 * problem.model.largest_radius),
        "no radius": replace(query, radius=0.0),
    }
    with pytest.raises(BadQuery):
        broken[fault].check(cast(Statistics, problem.model), problem.design)


def test_symmetric_matrices_are_packed_with_their_norm() -> None:
    rng = np.random.default_rng(0)
    vector = rng.standard_normal((1, 5)).astype(np.float32)
    matrix = np.outer(vector, vector).astype(np.float64)
    packed = pack_symmetric(matrix)
    assert np.linalg.norm(packed) == pytest.approx(np.linalg.norm(matrix))
    np.testing.assert_allclose(unpack_symmetric(packed), matrix)
    np.testing.assert_allclose(multiply_pairs(vector)[0], packed, rtol=1e-6)


def test_eigenvalues_of_noise_alone_do_not_exceed_the_edge_by_much() -> None:
    """The floor is about the largest eigenvalue of pure noise."""
    rng, side = np.random.default_rng(0), 60
    noise: Array64 = unpack_symmetric(rng.standard_normal(side * (side + 1) // 2))
    raised, is_hidden = raise_to_noise(noise, 1.0)
    assert is_hidden
    floor = np.sqrt(2 * side)
    assert np.linalg.eigvalsh(raised)[0] == pytest.approx(floor)
    assert np.linalg.eigvalsh(noise)[-1] < 1.15 * floor


def test_the_radius_leaves_about_the_share_above_it() -> None:
    rng = np.random.default_rng(0)
    squares = rng.chisquare(3, 100_000) / 1000
    counts = np.histogram(squares, bins=np.concatenate(([0.0], 2.0 ** np.arange(-47.0, 1))))[0][::-1].astype(float)
    chosen = choose_square(counts, 1.0, 0.1, 1.0)
    assert np.mean(squares > chosen) == pytest.approx(0.1, abs=0.02)


def test_an_empty_table_gives_the_largest_radius() -> None:
    """A radius that noise chose would cut rows that exist."""
    noise = 50.0 * np.random.default_rng(1).standard_normal(48)
    assert choose_square(noise, 50.0, 0.1, 4.0) == 4.0
