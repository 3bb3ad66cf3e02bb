"""Beliefs of conjugate models: without noise they equal textbook posteriors; with noise they state it."""

from dataclasses import replace
from typing import Any, cast

import numpy as np
import pytest
from scipy.special import digamma

from app.errors import InvalidRequest
from app.inference.conjugate import make_conjugate_problem, make_run_problem
from app.inference.core import reasons
from app.inference.core.facts import Column, DeclaredFacts
from app.inference.core.linear_algebra import invert
from app.inference.core.model import Array64
from app.inference.core.plan import Mechanism, ModelSpec, PlanRequest, PriorSpec
from app.inference.core.problems import make_problem
from app.inference.core.release import BeliefRelease, Grade, Pseudocoreset, Released
from app.inference.core.statistics import Averages, Statistics, split_answer
from app.inference.methods.vips.method import weigh_by_noise
from app.inference.models.location_scale import REFERENCE
from app.inference.private_zone.mechanisms import DiscreteGaussian, NoiseSource
from app.inference.private_zone.oracle import ClippedGaussianOracle
from app.inference.private_zone.rng import make_monte_carlo_generator, make_sampling_generator
from app.inference.registry import find_method, make_plan
from app.inference.runner import run
from support.table import Table
from tests.inference.support import NullNoise

ROWS = 3000
FACTS = DeclaredFacts(
    (
        Column("a", "real", -1, 1),
        Column("b", "real", -1, 1),
        Column("c", "real", -1, 1),
        Column("cost", "real", -1, 1),
        Column("ill", "binary"),
    ),
    ROWS,
    {"kind": "row"},
    "private",
    1e-6,
)
GAUSSIAN = ModelSpec("gaussian", ("a", "b", "cost"), None, PriorSpec(0.5))
LINEAR = ModelSpec("linear-regression", ("a", "b"), "cost", PriorSpec(2.0, mean={"a": 40.0}))
KNOWN = ModelSpec("linear-regression", ("a", "b"), "cost", PriorSpec(2.0), noise_scale=0.2)
LOGISTIC = ModelSpec("logistic-regression", ("a", "b", "c"), "ill")


def table(present: int = ROWS) -> Table:
    rng = np.random.default_rng(11)
    x = np.clip(0.4 * rng.standard_normal((ROWS, 3)), -1, 1)
    cost = np.clip(0.3 * x[:, 0] - 0.5 * x[:, 1] + 0.1 + 0.15 * rng.standard_normal(ROWS), -1, 1)
    ill = (rng.random(ROWS) < 1 / (1 + np.exp(-(3 * x[:, 0] - 2 * x[:, 2] + 0.5)))).astype(float)
    there = np.arange(ROWS) < present
    columns = {"a": x[:, 0], "b": x[:, 1], "c": x[:, 2], "cost": cost, "ill": ill}
    return Table({name: values * there for name, values in columns.items()} | {"_present": there.astype(np.uint8)})


def release(
    spec: ModelSpec, noise: NoiseSource, sigma: float, present: int = ROWS, iterations: int = 1, **parameters: Any
) -> Released:
    mechanism = Mechanism(sigma, 1.0, iterations)
    plan = find_method("vips").plan(PlanRequest("vips", 8, spec, parameters, mechanism), FACTS)
    oracle = ClippedGaussianOracle(
        make_run_problem(plan, FACTS).model,
        plan,
        FACTS,
        table(present),
        noise=noise,
        sampling=make_sampling_generator(),
    )
    return run(plan, FACTS, oracle, make_monte_carlo_generator(), lambda _: None)


def exact_sums(spec: ModelSpec) -> tuple[Statistics, Averages, Array64]:
    """The model, exact sums in double precision, and folded rows."""
    model, design = make_conjugate_problem(spec, FACTS)
    x, y, _ = design.encode(table().columns)
    rows = model.fold(x.astype(np.float64), y)
    blocks = model.list_blocks(model.largest_radius, moving=False)
    sums = split_answer(_pack(rows.T @ rows), blocks)
    return cast(Statistics, model), Averages(sums, {blocks[0].name: 0.0}, model.largest_radius), rows


def _pack(matrix: Array64) -> Array64:
    row, column = np.triu_indices(len(matrix))
    return np.asarray(np.where(row == column, 1.0, np.sqrt(2)) * matrix[row, column])


def test_the_normal_inverse_wishart_equals_the_textbooks() -> None:
    """Gelman et al., BDA3, section 3.6: the prior mean is zero, and its count is one."""
    model, averages, rows = exact_sums(GAUSSIAN)
    block = model.conclude(averages, ("a", "b", "cost")).blocks[0]
    x, n, d = rows[:, :3], ROWS, 3
    mean = x.mean(axis=0)
    centred = x - mean
    expected = 0.25 * np.eye(d) + centred.T @ centred + n / (n + 1) * np.outer(mean, mean)
    np.testing.assert_allclose(block.arrays["mean"], n * mean / (n + 1), rtol=1e-8)
    np.testing.assert_allclose(block.arrays["scale"], expected, rtol=1e-8)
    assert block.arrays["count"][0] == pytest.approx(n + 1, rel=1e-12)
    assert block.arrays["degrees"][0] == pytest.approx(d + 2 + n, rel=1e-12)


def test_the_normal_gamma_equals_the_textbooks() -> None:
    model, averages, rows = exact_sums(LINEAR)
    conclusion = model.conclude(averages, ("a", "b", "intercept"))
    x, y = rows[:, :3], rows[:, 3]
    precision = x.T @ x + np.diag(np.full(3, REFERENCE**2 / 4))
    prior, centre = np.diag(np.full(3, REFERENCE**2 / 4)), np.array([40.0, 0, 0])
    mean = np.linalg.solve(precision, x.T @ y + prior @ centre)
    shape = 0.5 + ROWS / 2
    rate = 0.5 * REFERENCE**2 + 0.5 * (y @ y + centre @ prior @ centre - mean @ precision @ mean)
    found = conclusion.blocks[0].arrays
    np.testing.assert_allclose(found["mean"], mean, rtol=1e-8)
    np.testing.assert_allclose(found["variance"], np.linalg.inv(precision), rtol=1e-8)
    assert (found["shape"][0], found["rate"][0]) == (pytest.approx(shape, rel=1e-8), pytest.approx(rate, rel=1e-8))
    assert conclusion.normal is not None
    log_noise = conclusion.normal[0][-1]
    assert log_noise == pytest.approx(0.5 * (np.log(rate) - digamma(shape)) - np.log(REFERENCE), rel=1e-8)


def test_linear_regression_of_known_noise_has_the_exact_posterior() -> None:
    model, averages, rows = exact_sums(KNOWN)
    conclusion = model.conclude(averages, ("a", "b", "intercept"))
    x, y = rows[:, :3], rows[:, 3]
    precision = x.T @ x / 0.04 + np.eye(3) / 4
    assert conclusion.normal is not None
    np.testing.assert_allclose(conclusion.normal[1], precision, rtol=1e-8)
    np.testing.assert_allclose(conclusion.normal[0], np.linalg.solve(precision, x.T @ y / 0.04), rtol=1e-8)


def test_a_run_without_noise_ends_at_the_exact_belief() -> None:
    """The whole path: encoder, query, grid, answer, belief. Single precision and the grid leave about 1e-5."""
    model, averages, _ = exact_sums(GAUSSIAN)
    expected = model.conclude(averages, ("a", "b", "cost")).blocks[0].arrays
    found = release(GAUSSIAN, NullNoise(), 0.05)
    assert isinstance(found, BeliefRelease)
    for name, values in found.blocks[0].arrays.items():
        if name != "names":
            np.testing.assert_allclose(values, expected[name], rtol=1e-4, atol=1e-4)


def test_logistic_without_noise_is_the_fixed_point_of_coordinate_ascent() -> None:
    """An independent implementation of the batch algorithm, on the same rows; single precision leaves about 1e-6."""
    made, design = make_conjugate_problem(LOGISTIC, FACTS)
    model = cast(Statistics, made)
    x, y, _ = design.encode(table().columns)
    rows, radius = model.fold(x, y.astype(np.float32)), 0.7
    belief, noise = model.start(np.random.default_rng(0)), {"score": 0.0, "curvature": 0.0}
    for _ in range(80):
        sums = dict[str, Array64]()
        for moving in (False, True):
            total = model.contribute(rows, belief, radius, moving=moving).sum(axis=0, dtype=np.float64)
            sums |= split_answer(total, model.list_blocks(radius, moving=moving))
        belief = model.update(Averages(sums, noise, radius), belief)
    conclusion = model.conclude(Averages(sums, noise, radius), ("a", "b", "c", "intercept"))
    z = make_problem(LOGISTIC, FACTS).model.fold(x.astype(np.float64), y)
    weights = np.minimum(1, radius**2 / np.square(z[:, :-1]).sum(axis=1))
    assert 0.2 < np.mean(weights < 1) < 0.8
    mean, covariance = np.zeros(4), np.eye(4)
    for _ in range(400):
        c = np.sqrt(np.einsum("ni,ij,nj->n", z, covariance + np.outer(mean, mean), z))
        covariance = np.linalg.inv((z * (weights * np.tanh(c / 2) / (2 * c))[:, None]).T @ z + np.eye(4))
        mean = covariance @ (weights @ z) / 2
    assert conclusion.normal is not None
    np.testing.assert_allclose(conclusion.normal[0], mean, rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(conclusion.normal[1], np.linalg.inv(covariance), rtol=1e-4)
    assert (reasons.VARIATIONAL, Grade.CENTRE_ONLY) in conclusion.findings


def test_long_rows_weigh_less_and_leave_the_coefficients() -> None:
    """Labels that follow the model: the estimate is the truth at every radius."""
    truth, estimates = np.array([4.0, -3.0, 2.0, 0.5]), []
    made, design = make_conjugate_problem(replace(LOGISTIC, prior=PriorSpec(30.0)), FACTS)
    model = cast(Statistics, made)
    x, _, _ = design.encode(table().columns)
    p = 1 / (1 + np.exp(-x.astype(np.float64) @ truth))
    rows = [model.fold(x, np.full(ROWS, label, dtype=np.float32)) for label in (0.0, 1.0)]
    for radius in (0.4, model.largest_radius):
        belief = model.start(np.random.default_rng(0))
        for _ in range(60):
            sums = dict[str, Array64]()
            for moving in (False, True):
                parts = [model.contribute(each, belief, radius, moving=moving) for each in rows]
                total = (1 - p) @ parts[0].astype(np.float64) + p @ parts[1].astype(np.float64)
                sums |= split_answer(total, model.list_blocks(radius, moving=moving))
            averages = Averages(sums, {"score": 0.0, "curvature": 0.0}, radius)
            belief = model.update(averages, belief)
        conclusion = model.conclude(averages, ("a", "b", "c", "intercept"))
        assert conclusion.normal is not None
        estimates.append(conclusion.normal[0])
    np.testing.assert_allclose(estimates[0], truth, atol=0.06)
    np.testing.assert_allclose(estimates[1], truth, atol=0.06)


@pytest.mark.parametrize(("drift", "least", "most"), [(0.0, 0.2, 0.3), (10.0, 0.98, 1.0)])
def test_answers_are_averaged_until_they_drift(drift: float, least: float, most: float) -> None:
    """Three equal answers have a third of the noise: the fourth counts a quarter, or all if the statistics moved."""
    rng = np.random.default_rng(3)
    differences = rng.standard_normal(5000) + rng.standard_normal(5000) / np.sqrt(3) + drift
    assert least <= weigh_by_noise(differences**2, 1 / 3) <= most
    assert weigh_by_noise(np.zeros(3), 1 / 3) == pytest.approx(0.25)
    assert weigh_by_noise(np.array([np.nan]), 1.0) == pytest.approx(0.5)


@pytest.mark.parametrize(
    ("chosen", "expected"),
    [
        ({}, {}),
        ({"delay": 3.0}, {"delay": 3.0, "forgetting": 0.5}),
        ({"forgetting": 0.0}, {"delay": 0.0, "forgetting": 0.0}),
        ({"sampling_rate": 0.1}, {"delay": 0.0, "forgetting": 0.5}),
    ],
)
def test_weights_follow_noise_unless_rows_are_sampled(chosen: dict[str, float], expected: dict[str, float]) -> None:
    """Differences between subsamples are no drift."""
    plan = find_method("vips").plan(PlanRequest("vips", 8, LOGISTIC, chosen, noise_multiplier=5.0), FACTS)
    assert plan.parameters == expected


@pytest.mark.parametrize("spec", [LINEAR, KNOWN], ids=["unknown noise", "known noise"])
def test_stated_noise_is_that_of_the_mean(spec: ModelSpec) -> None:
    """W16: over runs, squared errors in stated units have mean 1; the band holds 1 - 1e-7 of chances."""
    model, averages, _ = exact_sums(spec)
    conclusion = model.conclude(averages, ("a", "b", "intercept"))
    assert conclusion.normal is not None
    exact, runs, total = conclusion.normal[0][:3], 60, 0.0
    for _ in range(runs):
        found = release(spec, DiscreteGaussian(), 2.0)
        assert isinstance(found, Pseudocoreset)
        assert found.posterior is not None
        assert found.doubt is not None
        error = found.posterior.mean[:3] - exact
        total += float(error @ invert(found.doubt[:3, :3]) @ error)
    assert 0.5 < total / (3 * runs) < 1.7


def test_stated_noise_of_a_gaussian_mean_is_true() -> None:
    model, averages, _ = exact_sums(GAUSSIAN)
    exact, runs, total = model.conclude(averages, ("a", "b", "cost")).blocks[0].arrays["mean"], 60, 0.0
    for _ in range(runs):
        found = release(GAUSSIAN, DiscreteGaussian(), 0.4)
        assert isinstance(found, BeliefRelease)
        posterior, noise = found.blocks
        error = posterior.arrays["mean"] - exact
        total += float(error @ invert(noise.arrays["covariance"]) @ error)
        assert found.reliability.grade is Grade.CALIBRATED
    assert 0.5 < total / (3 * runs) < 1.7


@pytest.mark.parametrize("spec", [GAUSSIAN, LINEAR, KNOWN, LOGISTIC], ids=lambda spec: f"{spec.family}")
@pytest.mark.parametrize("present", [0, 5])
def test_a_nearly_empty_table_is_not_calibrated(spec: ModelSpec, present: int) -> None:
    """W16."""
    found = release(spec, DiscreteGaussian(), 20.0, present, iterations=5 if spec is LOGISTIC else 1)
    assert found.reliability is not None
    assert found.reliability.grade is not Grade.CALIBRATED


@pytest.mark.parametrize("family", ["gaussian", "linear-regression"])
def test_answers_of_no_rows_are_few_rows_however_many_columns(family: str) -> None:
    """W16: moments are raised to their noise, which grows with the columns; the count that is judged is not."""
    columns = tuple(Column(f"x{place}", "real", -1, 1) for place in range(40))
    facts = replace(FACTS, columns=(*columns, Column("cost", "real", -1, 1)))
    features = tuple(column.name for column in columns)
    spec = ModelSpec(family, features, None if family == "gaussian" else "cost")
    model = make_conjugate_problem(spec, facts).model
    (block,) = model.list_blocks(model.largest_radius, moving=False)
    averages = Averages({block.name: np.zeros(block.length)}, {block.name: 1.0}, model.largest_radius)
    findings = model.conclude(averages, [*features, "intercept"][: 40 if family == "gaussian" else 41]).findings
    assert (reasons.FEW_ROWS, Grade.NOT_USABLE) in findings


@pytest.mark.parametrize("size", [1e-30, 1.0, 1e30])
@pytest.mark.parametrize("spec", [GAUSSIAN, LINEAR, KNOWN, LOGISTIC], ids=lambda spec: f"{spec.family}")
def test_any_answers_give_a_finite_belief(spec: ModelSpec, size: float) -> None:
    """W14, W15: post-processing refuses no finite answer."""
    model, design = make_conjugate_problem(spec, FACTS)
    rng = np.random.default_rng(5)
    blocks = [
        *model.list_blocks(model.largest_radius, moving=False),
        *model.list_blocks(model.largest_radius, moving=True),
    ]
    names = [column.name for column in design.columns]
    for _ in range(20):
        sums = {block.name: size * rng.standard_normal(block.length) for block in blocks}
        averages = Averages(sums, {block.name: size for block in blocks}, model.largest_radius)
        with np.errstate(all="ignore"):
            model.update(averages, model.start(rng))
            conclusion = model.conclude(averages, names)
        for block in conclusion.blocks:
            assert all(np.isfinite(values).all() for name, values in block.arrays.items() if name != "names")


@pytest.mark.parametrize(
    ("method", "spec"),
    [
        ("vips", ModelSpec("probit-regression", ("a",), "ill")),
        ("dp-psvi", GAUSSIAN),
        ("dp-psvi-surrogate", GAUSSIAN),
        ("giga", GAUSSIAN),
    ],
)
def test_a_method_refuses_a_model_without_what_it_needs(method: str, spec: ModelSpec) -> None:
    """W15: before anything is charged, with the methods that take the model."""
    with pytest.raises(InvalidRequest) as caught:
        make_plan(PlanRequest(method, 8, spec, noise_multiplier=5.0), FACTS)
    assert caught.value.faults[0].pointer == "/method"
    assert "vips" in caught.value.detail or "dp-psvi" in caught.value.detail


@pytest.mark.parametrize(
    ("prior", "pointer"),
    [
        (PriorSpec(0.0), "/model/prior/scale"),
        (PriorSpec(1.0, {"a": 2.0}), "/model/prior/scales"),
        (PriorSpec(1.0, {}, 3.0), "/model/prior/degrees_of_freedom"),
        (PriorSpec(1.0, mean={"a": 1.0}), "/model/prior/mean"),
    ],
)
def test_a_prior_that_the_gaussian_has_not_is_refused(prior: PriorSpec, pointer: str) -> None:
    spec = ModelSpec("gaussian", ("a", "b"), None, prior)
    with pytest.raises(InvalidRequest) as caught:
        make_plan(PlanRequest("vips", 8, spec, noise_multiplier=5.0), FACTS)
    assert caught.value.faults[0].pointer == pointer


def test_unknown_noise_has_no_hierarchical_prior() -> None:
    """W15: the conjugate prior has no unknown factor."""
    spec = replace(LINEAR, prior=PriorSpec(1.0, degrees_of_freedom=3.0))
    with pytest.raises(InvalidRequest) as caught:
        make_plan(PlanRequest("vips", 8, spec, noise_multiplier=5.0), FACTS)
    assert caught.value.faults[0].pointer == "/model/prior/degrees_of_freedom"
    make_plan(PlanRequest("vips", 8, replace(spec, noise_scale=0.2), noise_multiplier=5.0), FACTS)


def test_a_model_that_moves_nothing_has_one_query() -> None:
    with pytest.raises(InvalidRequest) as caught:
        find_method("vips").plan(PlanRequest("vips", 8, GAUSSIAN, {"iterations": 3}, noise_multiplier=5.0), FACTS)
    assert caught.value.faults[0].pointer == "/parameters"
