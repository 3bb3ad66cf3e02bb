"""Sigmoid belief networks: hidden bits, posterior, requests, and whole runs without noise."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.special import expit, kv

from app.errors import InvalidRequest
from app.inference import dry_run
from app.inference.conjugate import make_conjugate_problem, make_run_problem
from app.inference.conjugate.belief_network import BitEncoder, shrink_weights
from app.inference.core import reasons
from app.inference.core.belief import has_fitting_shapes
from app.inference.core.facts import Column
from app.inference.core.model import Array64
from app.inference.core.plan import Mechanism, MechanismPlan, PlanRequest, PriorSpec
from app.inference.core.release import BeliefRelease, Grade
from app.inference.core.statistics import Averages, split_answer, unpack_symmetric
from app.inference.private_zone.mechanisms import DiscreteGaussian, NoiseSource
from app.inference.private_zone.oracle import ClippedGaussianOracle
from app.inference.private_zone.rng import make_sampling_generator
from app.inference.registry import make_plan
from app.inference.runner import run
from tests.inference.conjugate.networks import (
    FACTS,
    NAMES,
    ROWS,
    SPEC,
    UNITS,
    VISIBLE,
    draw_belief,
    draw_bits,
    fold,
    make_model,
    make_table,
)
from tests.inference.support import NullNoise


def test_the_encoder_gives_bits_and_zeros_for_null_rows() -> None:
    problem = make_conjugate_problem(SPEC, FACTS)
    assert isinstance(problem.design, BitEncoder)
    bits = draw_bits(np.random.default_rng(3), 10)
    present = np.arange(10) != 4
    x, _, there = problem.design.encode(make_table(bits, present).columns)
    np.testing.assert_array_equal(x, bits * present[:, None])
    np.testing.assert_array_equal(there, present)
    assert problem.design.columns[0].transform == {"kind": "affine", "type": "binary", "center": 0.0, "scale": 1.0}


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
    belief = make_model()._pack(network["mean"], moments, network["b"], network["c"])
    bits = draw_bits(rng, 6)
    found = make_model().infer_hidden((bits - 0.5).astype(np.float32), belief)
    expected = [infer_plainly(row, network, 10) for row in bits]
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)


def test_statistics_are_those_of_bits_and_hidden_bits() -> None:
    rng = np.random.default_rng(5)
    bits, belief = draw_bits(rng, 7), draw_belief(rng, 0.5)
    hidden = make_model().infer_hidden((bits - 0.5).astype(np.float32), belief).astype(np.float64)
    fixed = split_answer(
        make_model().contribute(fold(bits), belief, 1.0, moving=False).sum(axis=0, dtype=np.float64),
        make_model().list_blocks(1.0, moving=False),
    )
    moving = split_answer(
        make_model().contribute(fold(bits), belief, 1.0, moving=True).sum(axis=0, dtype=np.float64),
        make_model().list_blocks(1.0, moving=True),
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
    network, floored = make_model().solve(averages)
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
    precisions, _ = shrink_weights(squares, tops)
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
    own, belief = make_model(), make_model().start(np.random.default_rng(3))
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
    blocks = [*make_model().list_blocks(1.0, moving=False), *make_model().list_blocks(1.0, moving=True)]
    for _ in range(20):
        sums = {block.name: size * rng.standard_normal(block.length) for block in blocks}
        averages = Averages(sums, {block.name: size for block in blocks}, 1.0)
        with np.errstate(all="ignore"):
            belief = make_model().update(averages, make_model().start(rng))
            conclusion = make_model().conclude(averages, NAMES)
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
