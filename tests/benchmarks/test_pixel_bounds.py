"""The published form of belief networks: bounds of its statistics, its equations, and a run."""

from itertools import pairwise

import numpy as np
import pytest

from app.inference.conjugate import make_run_problem
from app.inference.core.facts import Column, DeclaredFacts
from app.inference.core.model import Array64
from app.inference.core.plan import Mechanism, ModelSpec, PlanRequest
from app.inference.core.statistics import unpack_symmetric
from app.inference.registry import make_plan
from benchmarks.pixel_bounds import PixelBounds, reconstruct, run_form
from benchmarks.sources import NoNoise
from support.table import Table

VISIBLE, UNITS = 6, 3
MODEL = PixelBounds(VISIBLE, UNITS, 2.5, 1000)


def draw_belief(rng: np.random.Generator, scale: float) -> Array64:
    weights = scale * rng.standard_normal((VISIBLE, UNITS))
    covariances = np.array([0.3 * np.eye(UNITS) + 0.1] * VISIBLE)
    biases = rng.standard_normal(VISIBLE)
    return MODEL._pack_lines(weights, covariances, biases, np.full(VISIBLE, 0.2), rng.standard_normal(UNITS))


def draw_rows(rng: np.random.Generator, count: int) -> np.ndarray:
    return np.column_stack((rng.integers(0, 2, (count, VISIBLE)), np.ones(count))).astype(np.float32)


@pytest.mark.parametrize("scale", [0.0, 1.0, 30.0, 1e4])
def test_statistics_of_every_row_are_within_their_bounds(scale: float) -> None:
    rng = np.random.default_rng(0)
    rows = draw_rows(rng, 200)
    rows[-1] = 0
    for moving in (False, True):
        blocks = MODEL.list_blocks(1.0, moving=moving)
        values = MODEL.contribute(rows, draw_belief(rng, scale), 1.0, moving=moving)
        ends = np.cumsum([0, *(block.length for block in blocks)])
        assert ends[-1] == values.shape[1]
        assert not values[-1].any()
        for (start, end), block in zip(pairwise(ends), blocks, strict=True):
            assert np.linalg.norm(values[:, start:end], axis=1).max() <= block.bound * (1 + 1e-6)


def test_hidden_bits_and_curves_solve_the_published_equations() -> None:
    """Equations 60 to 62, written out for one row."""
    rng = np.random.default_rng(1)
    belief = draw_belief(rng, 0.7)
    bits = draw_rows(rng, 1)[:, :-1] - np.float32(0.5)
    weights, biases, squares = belief[:-1, :UNITS], belief[:-1, -2], belief[:-1, -1]
    moments = np.array([unpack_symmetric(line[UNITS:-2]) for line in belief[:-1]])
    hidden, curves, products = (each[0].astype(float) for each in MODEL.infer(bits, belief))
    pairs = np.outer(hidden, hidden) + np.diag(hidden * (1 - hidden))
    np.testing.assert_allclose(unpack_symmetric(products), pairs, rtol=1e-5)
    root = np.sqrt(np.einsum("jkl,kl->j", moments, pairs) + 2 * biases * (weights @ hidden) + squares)
    np.testing.assert_allclose(curves, np.tanh(root / 2) / (2 * root), rtol=1e-5)
    for unit in range(UNITS):
        others = sum(moments[:, other, unit] * hidden[other] for other in range(UNITS) if other != unit)
        crossed = others + biases * weights[:, unit]
        logit = belief[-1, unit] + weights[:, unit] @ bits[0]
        logit -= 0.5 * float(curves @ (2 * crossed + moments[:, unit, unit]))
        assert hidden[unit] == pytest.approx(1 / (1 + np.exp(-logit)), abs=1e-3)


def test_a_run_without_noise_learns_two_patterns() -> None:
    rng = np.random.default_rng(2)
    patterns = np.array([[1, 1, 1, 0, 0, 0], [0, 0, 0, 1, 1, 1]])
    rows = np.abs(patterns[rng.integers(0, 2, 1000)] - (rng.random((1000, VISIBLE)) < 0.05))
    names = tuple(f"bit {place}" for place in range(VISIBLE))
    facts = DeclaredFacts(tuple(Column(name, "binary") for name in names), 1000, {"kind": "row"}, "private")
    spec = ModelSpec("sigmoid-belief-network", names, None, hidden_units=UNITS)
    plan = make_plan(PlanRequest("vips", 1, spec, {}, Mechanism(1.0, 1.0, 15)), facts)
    columns = {name: rows[:, place].astype(float) for place, name in enumerate(names)}
    table = Table(columns | {"_present": np.ones(1000, dtype=np.uint8)})
    belief = run_form(MODEL, make_run_problem(plan, facts).design, plan, facts, table, NoNoise(), 0)
    assert np.array_equal(reconstruct(MODEL, belief, patterns), patterns)
    assert np.mean(reconstruct(MODEL, belief, rows) == rows) > 0.9
