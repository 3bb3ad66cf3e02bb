"""Terms: their values by a second derivation (W6), and an encoding that is total and the same at every place (W14)."""

import hashlib
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.polynomial import legendre
from numpy.typing import NDArray
from scipy.interpolate import BSpline
from scipy.special import expit
from scipy.stats import norm

from app.inference.core.design import Design, build
from app.inference.core.designs import Feature, Interaction, Network, Polynomial, Spline
from app.inference.core.designs.arithmetic import compute_cosine, compute_tangent
from app.inference.core.designs.fourier import draw_features
from app.inference.core.designs.network import Layer
from app.inference.core.model import Array64
from app.inference.core.plan import ModelSpec
from app.inference.core.row_source import PRESENT
from app.inference.registry import find_family
from tests.inference.core.designs.features import COLUMNS, LAYERS, TERMS, draw_table, make_facts

EVERY = pytest.mark.parametrize("name", TERMS)
HOSTILE = (np.nan, np.inf, -np.inf, 1.7e308, -1.7e308, 5e-324, -0.0, 20.0, 80.0, 50.0, 50.0 + 1e-13)


def make_design(features: tuple[Feature, ...]) -> Design:
    return build(ModelSpec("logistic-regression", features, "ill"), make_facts(), find_family("logistic-regression"))


def encode(features: tuple[Feature, ...], table: dict[str, NDArray[Any]]) -> Array64:
    x, _, present = make_design(features).encode(table)
    assert present.all()
    return x[:, :-1].astype(np.float64)


def _scaled(table: dict[str, NDArray[Any]], name: str) -> Array64:
    column = next(each for each in COLUMNS if each.name == name)
    assert column.lower is not None
    assert column.upper is not None
    return np.asarray((table[name] - (column.lower + column.upper) / 2) / ((column.upper - column.lower) / 2))


def _inputs(table: dict[str, NDArray[Any]]) -> Array64:
    """The coordinates of age, hours and job, ``(n, 4)``."""
    levels = (table["job"][:, None] == np.array([1, 2])).astype(float)
    return np.column_stack([_scaled(table, "age"), _scaled(table, "hours"), levels])


def test_interactions_are_products_of_coordinates() -> None:
    table = draw_table(np.random.default_rng(0), 500)
    found = encode((Interaction(("job", "age", "smoker", "hours")),), table)
    inputs, smoker = _inputs(table), 2 * table["smoker"] - 1
    expected = np.column_stack([inputs[:, 2 + level] * inputs[:, 0] * smoker * inputs[:, 1] for level in (0, 1)])
    np.testing.assert_allclose(found, expected, atol=1e-7)
    names = [column.name for column in make_design((Interaction(("sex", "job")),)).columns]
    assert names == ["sex=M:job=b", "sex=M:job=c", "intercept"]


def test_interactions_multiply_splines_and_polynomials() -> None:
    """Against SciPy's B-splines and NumPy's Legendre polynomials."""
    table = draw_table(np.random.default_rng(6), 500)
    term = Interaction((Spline("hours", 5), "job", Polynomial("age", 2)))
    edges = np.concatenate([[0.0] * 4, np.linspace(0, 100, 4)[1:-1], [100.0] * 4])
    splines = BSpline(edges, np.eye(6), 3)(table["hours"])[:, 1:]
    levels, x = _inputs(table)[:, 2:], _scaled(table, "age")
    curves = np.column_stack([x, (3 * x**2 - 1) / 2])
    expected = np.einsum("ni,nj,nk->nijk", splines, levels, curves).reshape(500, 20)
    np.testing.assert_allclose(encode((term,), table), expected, atol=2e-7)
    columns = make_design((term,)).columns
    assert columns[3].name == "bs(hours, 5)[1]:job=c:poly(age, 2)[2]"
    assert {(column.term, column.sources) for column in columns[:-1]} == {
        ("bs(hours, 5):job:poly(age, 2)", ("hours", "job", "age"))
    }


@pytest.mark.parametrize(
    ("members", "square"),
    [
        (("age", "job"), 1.0),
        ((Spline("age", 9), "job"), 1.0),
        ((Spline("age", 9), Polynomial("hours", 4)), 4.0),
        ((Polynomial("age", 3), "smoker", Polynomial("hours", 2)), 6.0),
    ],
)
def test_the_length_of_interactions_is_bounded(members: tuple[Any, ...], square: float) -> None:
    """W5, W6: the bound follows from the declaration. Rows at all corners and at random places reach at most it."""
    design, table = make_design((Interaction(members),)), draw_table(np.random.default_rng(7), 4000)
    grid = np.array(np.meshgrid([20.0, 80.0, 50.0], [0.0, 100.0, 35.0])).reshape(2, -1)
    table["age"][:9], table["hours"][:9] = grid
    x = design.encode(table)[0][:, :-1].astype(np.float64)
    lengths = np.square(x).sum(axis=1)
    assert design.largest_square == square + 1
    assert lengths.max() <= square + 1e-6
    assert lengths.max() >= 0.98 * square


def test_polynomials_are_legendre_polynomials_of_the_bounds() -> None:
    table = draw_table(np.random.default_rng(1), 500)
    x = _scaled(table, "age")
    expected = np.column_stack([legendre.legval(x, np.eye(8)[degree]) for degree in range(1, 8)])
    np.testing.assert_allclose(encode((Polynomial("age", 7),), table), expected, atol=1e-7)


@pytest.mark.parametrize(("df", "knots"), [(3, None), (4, None), (9, None), (5, (1.0, 99.5)), (6, (20.0, 20.5, 60.0))])
def test_splines_are_b_splines_without_the_first(df: int, knots: tuple[float, ...] | None) -> None:
    table = draw_table(np.random.default_rng(2), 500)
    table["hours"][:4] = (0.0, 100.0, 20.0, 50.0)
    inner = np.linspace(0, 100, df - 1)[1:-1] if knots is None else np.array(knots)
    edges = np.concatenate([[0.0] * 4, inner, [100.0] * 4])
    expected = BSpline(edges, np.eye(df + 1), 3)(table["hours"])
    np.testing.assert_allclose(expected.sum(axis=1), 1)
    np.testing.assert_allclose(encode((Spline("hours", df, knots),), table), expected[:, 1:], atol=2e-7)


def test_fourier_features_follow_their_public_draw() -> None:
    """Frequencies are normal, and a number has the same draw in every version."""
    table = draw_table(np.random.default_rng(3), 300)
    weights, phases = draw_features(7, 12, 4, 0.7)
    expected = np.sqrt(2 / 12) * np.cos(_inputs(table) @ weights.T + phases)
    np.testing.assert_allclose(encode(TERMS["fourier"], table), expected, atol=1e-7)
    many, turned = draw_features(3, 4000, 2, 0.5)
    assert abs(many.std() - 2.0) < 0.1
    assert abs(turned.mean() - np.pi) < 0.2
    for unit in (0, 11):
        frequency, phase = (_hash(f"corevault-sha256-1/7/{unit}/{each}") for each in (3, -1))
        assert abs(weights[unit, 3] - norm.ppf(frequency) / 0.7) < 2**-30
        assert abs(phases[unit] - 2 * np.pi * phase) < 2**-30


def _hash(text: str) -> float:
    bits = hashlib.sha256(text.encode()).hexdigest()[:13]
    return (int(bits, 16) + 0.5) / 2**52


def test_networks_compose_their_layers() -> None:
    table = draw_table(np.random.default_rng(4), 300)
    first, second = LAYERS
    hidden = np.tanh(_inputs(table) @ np.array(first.weights).T + first.bias)
    expected = expit(hidden @ np.array(second.weights).T + second.bias)
    np.testing.assert_allclose(encode(TERMS["network"], table), expected, atol=2e-7)
    z = _scaled(table, "age")[:, None] * np.array([3.0, -1.5]) + np.array([0.5, 0.2])
    np.testing.assert_allclose(encode(TERMS["capped"], table), np.clip(z, 0, 1), atol=1e-7)


def test_elementary_functions_are_accurate() -> None:
    x = np.concatenate([np.linspace(-30, 30, 200_001), [1e5 + 0.3, -1e-12]])
    np.testing.assert_allclose(compute_tangent(x), np.tanh(x), atol=1e-8)
    np.testing.assert_allclose(compute_cosine(x.copy()), np.cos(2 * np.pi * x), atol=2e-9)


@EVERY
def test_values_are_within_their_declared_range(name: str) -> None:
    """The ranges, shares and flags that methods rely on hold in every row."""
    design, rng = make_design(TERMS[name]), np.random.default_rng(5)
    x = design.encode(draw_table(rng, 4000))[0][:, :-1].astype(np.float64)
    for rows in (x, design.sample(rng, 4000)[:, :-1], design.sample(rng, 400, 2.0)[:, :-1]):
        assert np.all(rows >= design.lower - 1e-7)
        assert np.all(rows <= design.upper + 1e-7)
        assert np.all(np.abs(rows) <= 1)
        for encoder, block in zip(design.encoders, design.blocks, strict=True):
            part, values = rows[:, block], encoder.values
            if values.shares:
                assert np.all(part >= -1e-9)
                assert np.all(part.sum(axis=1) <= 1 + 1e-6)
            if values.two_valued:
                assert np.all((part == values.lower) | (part == values.upper))
            assert not (values.shares and values.two_valued) or np.all(part.sum(axis=1) <= 1)


@EVERY
@settings(max_examples=25)
@given(cells=st.lists(st.tuples(*[st.sampled_from(HOSTILE) | st.floats()] * 9), min_size=1, max_size=5))
def test_encoding_is_total_for_hostile_cells(name: str, cells: list[tuple[float, ...]]) -> None:
    """W14: no error and no warning for any cells; a cell that is no number makes its row null, and null rows are 0."""
    table: dict[str, Any] = {
        column.name: np.array([row[place] for row in cells]) for place, column in enumerate(COLUMNS)
    }
    table[PRESENT] = (np.arange(len(cells)) % 3 != 1).astype(np.uint8)
    design = make_design(TERMS[name])
    x, y, present = design.encode(table)
    assert np.all(np.isfinite(x))
    assert np.all(np.abs(x) <= 1)
    assert not np.any(x[~present])
    assert not np.any(y[~present])
    assert not np.any(present & (table[PRESENT] == 0))
    for source in {source.column for encoder in design.encoders for source in encoder.sources}:
        assert not np.any(present & np.isnan(table[source.name]))


@EVERY
def test_a_row_has_the_same_bits_at_every_place(name: str) -> None:
    """W5, W14: alone, moved, or in pieces of any size, a row is the same bit by bit."""
    design, rng, n = make_design(TERMS[name]), np.random.default_rng(6), 20_003
    table = draw_table(rng, n)
    whole = design.encode(table)[0]
    order = rng.permutation(n)
    moved = design.encode({key: values[order] for key, values in table.items()})[0]
    np.testing.assert_array_equal(moved, whole[order])
    for size in (1, 7, 4096, 8193):
        for start in (0, 3, 8190, n - size):
            part = {key: values[start : start + size] for key, values in table.items()}
            np.testing.assert_array_equal(design.encode(part)[0], whole[start : start + size])


@EVERY
def test_no_step_of_a_term_reaches_a_subnormal_number(name: str) -> None:
    """W14: the smallest coordinates of columns are about 2^-41, and no product of them underflows."""
    design = make_design(TERMS[name])
    for encoder in design.encoders:
        small = 2.0 ** -np.arange(42)
        coordinates = [
            np.tile(np.concatenate([small, -small, [0.0]]), (len(each.columns), 1)) for each in encoder.sources
        ]
        with np.errstate(under="raise"):
            made = encoder.transform(coordinates)
        assert np.all((made == 0) | (np.abs(made) > 1e-200))
    table = draw_table(np.random.default_rng(7), 200)
    table["age"], table["hours"] = 50 + 2.0 ** -np.arange(200), 50 - 2.0 ** -np.arange(200)
    x = design.encode(table)[0]
    assert np.all((x == 0) | (np.abs(x) > 1e-13))


def test_weights_and_knots_too_small_for_single_precision_are_rounded() -> None:
    """W14: a request cannot bring subnormal numbers into the row zone."""
    layer = Layer(((1e-300, 1.0),), (1e-310,), "tanh")
    for features in ((Network(("age", "hours"), (layer,)),), (Spline("cost", 4, (100.0 + 1e-12,)),)):
        (encoder,) = make_design(features).encoders
        coordinates = [np.array([[2.0**-41, 0.5, 0.0]]) for _ in encoder.sources]
        with np.errstate(under="raise"):
            encoder.transform(coordinates)
