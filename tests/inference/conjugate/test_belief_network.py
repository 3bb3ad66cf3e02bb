"""Sigmoid belief networks: bounds, sensitivity, hidden bits, and whole runs without noise."""

import itertools
import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.special import expit, kv

from app.errors import InvalidRequest
from app.inference import dry_run
from app.inference.conjugate import make_conjugate_problem, make_run_problem
from app.inference.conjugate.belief_network import BitEncoder, SigmoidBelief, _shrink
from app.inference.core import reasons
from app.inference.core.belief import has_fitting_shapes
from app.inference.core.facts import Column, DeclaredFacts
from app.inference.core.model import Array32, Array64
from app.inference.core.plan import Mechanism, MechanismPlan, ModelSpec, PlanRequest, PriorSpec
from app.inference.core.release import BeliefRelease, Grade
from app.inference.core.statistics import Averages, compute_units, split_answer, unpack_symmetric
from app.inference.private_zone import partition
from app.inference.private_zone.mechanisms import GRID, DiscreteGaussian, NoiseSource
from app.inference.private_zone.oracle import ClippedGaussianOracle
from app.inference.private_zone.partition import compute_partial_sum
from app.inference.private_zone.queries import StatisticSum
from app.inference.private_zone.rng import make_sampling_generator
from app.inference.private_zone.rows import HeldRows
from app.inference.registry import make_plan
from app.inference.runner import run
from support.table import Table
from tests.inference.private_zone.test_work_on_rows import SHARES, Steps
from tests.inference.support import NullNoise

VISIBLE, UNITS, ROWS = 8, 3, 1500
NAMES = tuple(f"bit {index}" for index in range(VISIBLE))
FACTS = DeclaredFacts(
    (*(Column(name, "binary") for name in NAMES), Column("age", "real", 0, 1)), ROWS, {"kind": "row"}, "private", 1e-6
)
SPEC = ModelSpec("sigmoid-belief-network", NAMES, None, hidden_units=UNITS)
HOSTILE = (np.nan, np.inf, -np.inf, 3e38, -3e38, 1e30, 1e-45, 0.5)


def model() -> SigmoidBelief:
    found = make_conjugate_problem(SPEC, FACTS).model
    assert isinstance(found, SigmoidBelief)
    return found


def draw_bits(rng: np.random.Generator, rows: int) -> NDArray[np.int64]:
    """Draw from a network of three units, which turn on different columns."""
    weights = np.zeros((VISIBLE, UNITS))
    weights[[0, 1, 2, 3, 4, 5, 6, 7], [0, 0, 0, 1, 1, 1, 2, 2]] = 4.0
    hidden = rng.random((rows, UNITS)) < 0.4
    return np.asarray(rng.random((rows, VISIBLE)) < expit(hidden @ weights.T - 2), dtype=np.int64)


def make_table(bits: NDArray[np.int64], present: NDArray[np.bool_]) -> Table:
    columns: dict[str, NDArray[Any]] = {name: bits[:, place] * 1.0 * present for place, name in enumerate(NAMES)}
    return Table(columns | {"age": np.zeros(len(bits)), "_present": present.astype(np.uint8)})


def draw_belief(rng: np.random.Generator, spread: float) -> Array64:
    return spread * rng.standard_normal(model().belief_shape)


def fold(bits: NDArray[np.int64]) -> Array32:
    return np.column_stack((bits, np.ones(len(bits)))).astype(np.float32)


def queries(belief: Array64, each: int = 1) -> list[StatisticSum]:
    found = []
    for moving in (False, True):
        blocks = model().list_blocks(1.0, moving=moving)
        found.append(StatisticSum(belief, compute_units(blocks, each), 1.0, moving))
    return found


def test_the_proven_bounds_hold_and_are_reached() -> None:
    """For every belief, each block alone; weights of one sign make all hidden bits one or zero."""
    rng = np.random.default_rng(0)
    rows, largest = fold(rng.integers(0, 2, (500, VISIBLE))), dict[str, float]()
    for spread in (0.1, 1.0, 30.0, 1e6):
        for moving in (False, True):
            belief = draw_belief(rng, spread)
            for sign in (0, 1, -1):
                belief[-2] = sign * 1e6 if sign else belief[-2]  # the biases of the hidden units
                values = model().contribute(rows, belief, 1.0, moving=moving)
                blocks, start = model().list_blocks(1.0, moving=moving), 0
                for block in blocks:
                    norms = np.linalg.norm(values[:, start : start + block.length].astype(np.float64), axis=1)
                    assert norms.max() <= block.bound * (1 + 1e-6)
                    largest[block.name] = max(largest.get(block.name, 0.0), norms.max() / block.bound)
                    start += block.length
                assert start == values.shape[1]
    assert all(share > 0.99 for share in largest.values()), largest


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), each=st.sampled_from([1, 3]), spread=st.sampled_from([0.1, 3.0, 1e5]))
def test_w5_one_unit_moves_the_sum_by_at_most_the_grids_radius(seed: int, each: int, spread: float) -> None:
    """For any values of rows, any belief and any units, in exact integers."""
    rng = np.random.default_rng(seed)
    rows = fold(rng.integers(0, 2, (4 * each, VISIBLE)))
    places = rng.random(rows.shape) < rng.choice([0.0, 0.1])
    rows[places] = rng.choice(HOSTILE, int(places.sum())).astype(np.float32)
    present = np.ones(len(rows), dtype=bool)
    for asked in queries(draw_belief(rng, spread), each):
        query = replace(asked, units=asked.units * rng.choice([1.0, 1e-2]))
        query.check(model(), make_conjugate_problem(SPEC, FACTS).design)
        whole = query.sum(model(), rows, present, each)
        without = present.copy()
        without[each : 2 * each] = False
        gap = (whole - query.sum(model(), rows, without, each)).astype(object)
        assert sum(int(value) ** 2 for value in gap) <= GRID**2
        assert not np.any(query.sum(model(), rows, np.zeros_like(present), each))


CELLS = (*HOSTILE, -1.0, 0.0, 1.0, 2.0, 1e300, -1e300, 1 + 1e-9, -1e-300)
EXTREME = (0.0, -1e-3, 1e-3, -100.0, 100.0, -1e4, 1e4, -3e38, 3e38)
"""Entries of beliefs: a run limits weights and biases to 100, and their products follow."""


def list_bits(visible: int) -> Array32:
    """List every row of bits, as ``[y, 1]``."""
    return fold(np.array(list(itertools.product((0, 1), repeat=visible))))


def measure_shares(own: SigmoidBelief, rows: Array32, belief: Array64, *, moving: bool) -> Array64:
    """Measure each row's blocks in their bounds, and the joint norm in units.

    The result is ``(blocks + 1, n)``.
    """
    values = own.contribute(rows, belief, 1.0, moving=moving).astype(np.float64)
    blocks = own.list_blocks(1.0, moving=moving)
    ends = np.cumsum([block.length for block in blocks])
    shares = [
        np.linalg.norm(values[:, end - block.length : end], axis=1) / block.bound
        for block, end in zip(blocks, ends, strict=True)
    ]
    return np.array([*shares, np.linalg.norm(values / compute_units(blocks, 1), axis=1)])


def test_w5_no_row_exceeds_its_bounds_by_brute_force() -> None:
    """All rows of small networks are shorter than the bounds.

    With one unit, all extreme beliefs are tried, and otherwise 300. So no row is clipped.
    """
    rng, largest = np.random.default_rng(7), np.zeros(4)
    for visible, units in ((1, 1), (2, 2), (5, 3), (6, 2)):
        own, rows = SigmoidBelief(visible, units, 1.0, 100), list_bits(visible)
        size = math.prod(own.belief_shape)
        chosen: Any = itertools.product(EXTREME, repeat=size) if size == 4 else rng.choice(EXTREME, (300, size))
        for entries in chosen:
            belief = np.reshape(entries, own.belief_shape).astype(np.float64)
            shares = measure_shares(own, rows, belief, moving=True)
            assert not np.any(shares > 1 + 1e-5), (belief, shares)
            largest = np.fmax(largest, np.nan_to_num(shares.max(axis=1)))
        assert not np.any(own.contribute(np.zeros_like(rows), belief, 1.0, moving=True))
        fixed = measure_shares(own, rows, belief, moving=False)
        np.testing.assert_allclose(fixed, 1, rtol=1e-6)  # all rows have the largest norm
    assert np.all(largest > 0.99), largest


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), each=st.sampled_from([1, 3]))
def test_w5_any_cells_of_a_table_give_bounded_statistics(seed: int, each: int) -> None:
    """Cells are clamped to bits, and cells that are no numbers leave null rows.

    So rows need no clipping, and one unit moves the sum by at most the grid's radius, in exact integers.
    """
    rng = np.random.default_rng(seed)
    cells = rng.choice(CELLS, (4 * each, VISIBLE))
    present = rng.random(len(cells)) < 0.9
    problem = make_conjugate_problem(SPEC, FACTS)
    table = {name: cells[:, place] for place, name in enumerate(NAMES)}
    x, y, there = problem.design.encode(table | {"age": np.zeros(len(cells)), "_present": present.astype(np.uint8)})
    np.testing.assert_array_equal(there, present & ~np.isnan(cells).any(axis=1))
    np.testing.assert_allclose(x, np.clip(np.nan_to_num(cells), 0, 1) * there[:, None], atol=1e-6)
    rows = problem.model.fold(x, y)
    belief = rng.choice(EXTREME[:-2], model().belief_shape)
    for asked in queries(belief, each):
        for row in np.flatnonzero(there):
            assert measure_shares(model(), rows[row : row + 1], belief, moving=asked.moving).max() <= 1 + 1e-5
        whole = asked.sum(model(), rows, there, each)
        for unit in range(4):
            without = there.copy()
            without[unit * each : (unit + 1) * each] = False
            gap = (whole - asked.sum(model(), rows * without[:, None], without, each)).astype(object)
            assert sum(int(value) ** 2 for value in gap) <= GRID**2


def test_w5_held_and_split_rows_give_the_same_bits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(partition, "CHUNK_ROWS", 2048)
    rng, count = np.random.default_rng(1), 9000
    problem = make_conjugate_problem(SPEC, replace(FACTS, slots=count))
    source = make_table(draw_bits(rng, count), rng.random(count) < 0.7)
    for query in queries(draw_belief(rng, 1.0)):
        held = HeldRows(problem.model, problem.design, source, make_sampling_generator(), [(1.0, 1)]).sum(query)
        halves = [
            compute_partial_sum(query, problem.model, problem.design, source, part)
            for part in (range(4096), range(4096, count))
        ]
        np.testing.assert_array_equal(halves[0] + halves[1], held)
        streamed = compute_partial_sum(query, problem.model, problem.design, source, range(count))
        np.testing.assert_array_equal(streamed, held)


def test_w14_steps_and_shapes_do_not_depend_on_presence() -> None:
    taken, rng = {}, np.random.default_rng(2)
    problem, bits, chances = make_conjugate_problem(SPEC, FACTS), draw_bits(rng, ROWS), rng.random(ROWS)
    asked = queries(draw_belief(rng, 1.0))
    for name, share in [("warm", 0.5), *SHARES.items()]:
        source = make_table(bits, chances < share)
        with Steps() as steps:
            for query in asked:
                compute_partial_sum(query, problem.model, problem.design, source, range(ROWS))
        taken[name] = steps.taken
    assert any(name == "call infer_hidden" for name, _ in taken["full"])
    assert taken["empty"] == taken["half"] == taken["full"]


def test_the_encoder_gives_bits_and_zeros_for_null_rows() -> None:
    problem = make_conjugate_problem(SPEC, FACTS)
    assert isinstance(problem.design, BitEncoder)
    bits = draw_bits(np.random.default_rng(3), 10)
    present = np.arange(10) != 4
    x, _, there = problem.design.encode(make_table(bits, present).columns)
    np.testing.assert_array_equal(x, bits * present[:, None])
    np.testing.assert_array_equal(there, present)
    assert problem.design.columns[0].transform == {"kind": "affine", "center": 0.0, "scale": 1.0}


def infer_plainly(row: NDArray[np.int64], network: dict[str, Array64], sweeps: int) -> Array64:
    """Equation 62 with every Polya-Gamma expectation 1/4, sum by sum in double precision."""
    mean, covariance, b, c = network["mean"], network["covariance"], network["b"], network["c"]
    hidden = np.full(UNITS, 0.5)
    for _ in range(sweeps):
        for k in range(UNITS):
            logit = b[k]
            for j in range(VISIBLE):
                crossed = c[j] * mean[j, k]
                for other in range(UNITS):
                    if other != k:
                        crossed += (mean[j, other] * mean[j, k] + covariance[j, other, k]) * hidden[other]
                square = mean[j, k] ** 2 + covariance[j, k, k]
                logit += mean[j, k] * row[j] - 0.5 * (mean[j, k] + 0.25 * (2 * crossed + square))
            hidden[k] = expit(logit)
    return hidden


def test_hidden_bits_equal_a_plain_implementation() -> None:
    rng = np.random.default_rng(4)
    roots = 0.3 * rng.standard_normal((VISIBLE, UNITS, UNITS))
    network = {
        "mean": rng.standard_normal((VISIBLE, UNITS)),
        "covariance": roots @ roots.transpose(0, 2, 1),
        "b": rng.standard_normal(UNITS),
        "c": rng.standard_normal(VISIBLE),
    }
    moments = network["mean"].T @ network["mean"] + network["covariance"].sum(axis=0)
    belief = model()._pack(network["mean"], moments, network["b"], network["c"])
    bits = draw_bits(rng, 6)
    found = model().infer_hidden((bits - 0.5).astype(np.float32), belief)
    expected = [infer_plainly(row, network, 10) for row in bits]
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)


def test_statistics_are_those_of_bits_and_hidden_bits() -> None:
    rng = np.random.default_rng(5)
    bits, belief = draw_bits(rng, 7), draw_belief(rng, 0.5)
    hidden = model().infer_hidden((bits - 0.5).astype(np.float32), belief).astype(np.float64)
    fixed = split_answer(
        model().contribute(fold(bits), belief, 1.0, moving=False).sum(axis=0, dtype=np.float64),
        model().list_blocks(1.0, moving=False),
    )
    moving = split_answer(
        model().contribute(fold(bits), belief, 1.0, moving=True).sum(axis=0, dtype=np.float64),
        model().list_blocks(1.0, moving=True),
    )
    assert fixed["count"] == 7
    np.testing.assert_allclose(fixed["visible"], (bits - 0.5).sum(axis=0))
    np.testing.assert_allclose(moving["hidden"], (hidden - 0.5).sum(axis=0), atol=1e-5)
    products = moving["products"].reshape(VISIBLE, UNITS)
    np.testing.assert_allclose(products, (bits - 0.5).T @ hidden, atol=1e-5)
    pairs = hidden.T @ hidden + np.diag((hidden * (1 - hidden)).sum(axis=0))
    np.testing.assert_allclose(unpack_symmetric(moving["pairs"]), pairs, atol=1e-4)


def test_the_posterior_maximises_its_quadratic_bound() -> None:
    """Weights and biases are at a maximum of the bound, by finite differences."""
    rng = np.random.default_rng(6)
    bits = draw_bits(rng, 400)
    hidden = rng.random((400, UNITS))
    pairs = hidden.T @ hidden + np.diag((hidden * (1 - hidden)).sum(axis=0))
    row, column = np.triu_indices(UNITS)
    sums = {
        "count": np.array([400.0]),
        "visible": (bits - 0.5).sum(axis=0),
        "hidden": (hidden - 0.5).sum(axis=0),
        "products": ((bits - 0.5).T @ hidden).ravel(),
        "pairs": pairs[row, column] * np.where(row == column, 1, np.sqrt(2)),
    }
    averages = Averages(sums, dict.fromkeys(sums, 0.0), 1.0)
    network, floored = model().solve(averages)
    assert not floored

    def bound(weights: Array64, biases: Array64) -> float:
        total = np.sum((bits - 0.5) * (hidden @ weights.T + biases))
        total -= np.einsum("jk,kl,jl->", weights, pairs, weights) / 8
        total -= np.sum(2 * biases * (weights @ hidden.sum(axis=0)) + 400 * biases**2) / 8
        return float(total - np.sum(network.prior_precisions * weights**2) / 2 - np.sum(biases**2) / 2)

    at, step = bound(network.weights, network.visible), 1e-3
    for j in range(VISIBLE):
        moved = network.visible.copy()
        moved[j] += step
        assert bound(network.weights, moved) < at
        for k in range(UNITS):
            for sign in (1, -1):
                weights = network.weights.copy()
                weights[j, k] += 0.05 * sign
                assert bound(weights, network.visible) < at


def test_shrinkage_follows_the_generalised_inverse_gaussian() -> None:
    """Against numerical integrals of ``z^-1 exp(-(a z + b / z) / 2)``."""
    squares = np.array([[0.3, 2.0], [1e-3, 5.0]])
    tops = np.array([[0.7, 0.2], [1.5, 3.0]])
    precisions, _ = _shrink(squares, tops)
    grid = np.exp(np.linspace(-25, 25, 200_001))
    for place in np.ndindex(squares.shape):
        density = np.exp(-(2 * tops[place] * grid + squares[place] / grid) / 2)  # times z, for steps of log z
        expected = float(np.sum(density / grid) / np.sum(density))
        assert precisions[place] == pytest.approx(expected, rel=1e-5)
        root = np.sqrt(2 * tops[place] * squares[place])
        closed = np.sqrt(2 * tops[place] / squares[place]) * kv(1, root) / kv(0, root)
        assert precisions[place] == pytest.approx(closed, rel=1e-9)


def plan(sigma: float, iterations: int = 20, **parameters: Any) -> MechanismPlan:
    return make_plan(PlanRequest("vips", 1, SPEC, parameters, Mechanism(sigma, 1.0, iterations)), FACTS)


def release(planned: MechanismPlan, noise: NoiseSource, present: int = ROWS, seed: int = 0) -> BeliefRelease:
    bits = draw_bits(np.random.default_rng(11), ROWS)
    oracle = ClippedGaussianOracle(
        make_run_problem(planned, FACTS).model,
        planned,
        FACTS,
        make_table(bits, np.arange(ROWS) < present),
        noise=noise,
        sampling=make_sampling_generator(),
    )
    found = run(planned, FACTS, oracle, np.random.default_rng(seed), lambda _: None)
    assert isinstance(found, BeliefRelease)
    return found


def test_a_run_without_noise_equals_plain_batch_inference() -> None:
    """From the same start, with exact sums in double precision; single precision and the grid leave about 1e-3."""
    found = release(plan(0.05, 6, forgetting=0.0), NullNoise(), seed=3)
    bits = draw_bits(np.random.default_rng(11), ROWS)
    own, belief = model(), model().start(np.random.default_rng(3))
    row, column = np.triu_indices(UNITS)
    sums = {"count": np.array([float(ROWS)]), "visible": (bits - 0.5).sum(axis=0)}
    for _ in range(6):
        hidden = own.infer_hidden((bits - 0.5).astype(np.float32), belief).astype(np.float64)
        pairs = hidden.T @ hidden + np.diag((hidden * (1 - hidden)).sum(axis=0))
        sums |= {
            "hidden": (hidden - 0.5).sum(axis=0),
            "products": ((bits - 0.5).T @ hidden).ravel(),
            "pairs": pairs[row, column] * np.where(row == column, 1, np.sqrt(2)),
        }
        belief = own.update(Averages(sums, dict.fromkeys(sums, 0.0), 1.0), belief)
    np.testing.assert_allclose(found.blocks[0].arrays["mean"], belief[:VISIBLE], rtol=0.02, atol=0.02)
    np.testing.assert_allclose(found.blocks[1].arrays["mean"], belief[-2], rtol=0.02, atol=0.02)
    assert found.reliability.grade is Grade.CENTRE_ONLY
    assert all(has_fitting_shapes(block) for block in found.blocks)


@pytest.mark.parametrize("present", [0, 3])
def test_w16_a_nearly_empty_table_is_not_usable(present: int) -> None:
    found = release(plan(5.0), DiscreteGaussian(), present)
    assert found.reliability.grade is Grade.NOT_USABLE
    assert reasons.FEW_ROWS in found.reliability.reasons


@pytest.mark.parametrize("size", [1e-30, 1.0, 1e30])
def test_w14_any_answers_give_a_finite_belief(size: float) -> None:
    rng = np.random.default_rng(5)
    blocks = [*model().list_blocks(1.0, moving=False), *model().list_blocks(1.0, moving=True)]
    for _ in range(20):
        sums = {block.name: size * rng.standard_normal(block.length) for block in blocks}
        averages = Averages(sums, {block.name: size for block in blocks}, 1.0)
        with np.errstate(all="ignore"):
            belief = model().update(averages, model().start(rng))
            conclusion = model().conclude(averages, NAMES)
        assert np.all(np.isfinite(belief))
        for block in conclusion.blocks:
            numbers = [each for each in block.arrays.values() if each.dtype.kind == "f"]
            assert all(np.isfinite(each).all() for each in numbers)


def test_w15_a_dry_run_takes_every_step() -> None:
    dry_run.carry_out(plan(2.0), FACTS, to_the_end=True)


@pytest.mark.parametrize(
    ("changes", "pointer"),
    [
        ({"features": ("age",)}, "/model/features/0"),
        ({"features": ()}, "/model/features"),
        ({"target": "age"}, "/model/target"),
        ({"hidden_units": 0}, "/model/hidden_units"),
        ({"hidden_units": 201}, "/model/hidden_units"),
        ({"topics": 3}, "/model/topics"),
        ({"prior": PriorSpec(0.0)}, "/model/prior/scale"),
        ({"prior": PriorSpec(1.0, {"bit 0": 2.0})}, "/model/prior/scales"),
        ({"prior": PriorSpec(1.0, {}, 3.0)}, "/model/prior/degrees_of_freedom"),
    ],
)
def test_w15_a_request_that_does_not_fit_is_refused(changes: dict[str, Any], pointer: str) -> None:
    with pytest.raises(InvalidRequest) as caught:
        make_plan(PlanRequest("vips", 1, replace(SPEC, **changes), noise_multiplier=2.0), FACTS)
    assert [each.pointer for each in caught.value.faults] == [pointer]


def test_w15_too_many_weights_are_refused() -> None:
    names = tuple(f"pixel {index}" for index in range(784))
    facts = replace(FACTS, columns=tuple(Column(name, "binary") for name in names))
    with pytest.raises(InvalidRequest) as caught:
        make_plan(PlanRequest("vips", 1, replace(SPEC, features=names, hidden_units=128), noise_multiplier=2.0), facts)
    assert [each.pointer for each in caught.value.faults] == ["/model/hidden_units"]
