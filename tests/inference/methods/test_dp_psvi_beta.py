"""``beta`` of ``dp-psvi``: contributions, plans, refusals, and statements of a release."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from randomgen import ChaCha

from app.errors import InvalidRequest
from app.inference.core import plan_json
from app.inference.core.facts import DeclaredFacts
from app.inference.core.model import Array32, Array64
from app.inference.core.plan import Mechanism, MechanismPlan, ModelSpec, PlanRequest
from app.inference.core.problems import make_problem
from app.inference.core.release import Grade, Pseudocoreset
from app.inference.methods.dp_psvi.robust import bound_norm
from app.inference.models.robust import LEAST_BETA, make_robust
from app.inference.post.gradients import compute_centred_potentials
from app.inference.post.laplace import Laplace
from app.inference.private_zone.mechanisms import GRID
from app.inference.private_zone.oracle import ClippedGaussianOracle
from app.inference.private_zone.queries import PotentialSum, RobustPotentialSum
from app.inference.private_zone.queries.arrays import from_arrays, to_arrays
from app.inference.registry import find_method
from app.inference.runner import run_points
from support.table import Table
from tests.inference.populations import DECLARED, SPECS, population, posterior
from tests.inference.support import SPEC, NullNoise, facts, table

BETA = 0.5
BOUNDED = [
    spec
    for spec in SPECS
    if spec.noise_covariance is None
    and (
        spec.noise_scale is not None
        or spec.family in {"logistic-regression", "probit-regression", "multinomial-logistic", "gaussian-mean"}
    )
]
COUNTS = [spec for spec in SPECS if spec.target == "visits"]


def _plan(spec: ModelSpec = SPEC, declared: Any = None, **fields: Any) -> MechanismPlan:
    fields.setdefault("mechanism", Mechanism(4.0, 0.5, 6))
    parameters = {"posterior_draws": 12, "beta": BETA, **fields.pop("parameters", {})}
    request = PlanRequest("dp-psvi", fields.pop("size", 20), spec, parameters, **fields)
    return find_method("dp-psvi").plan(request, declared or facts(60))


def _rows(spec: ModelSpec, rng: np.random.Generator, n: int) -> Array32:
    """Folded rows at the corners of the declared bounds and inside, with every target."""
    model, design, _ = make_problem(spec, DECLARED)
    x = design.sample(rng, n)
    x[: n // 2, : design.width - int(design.intercept)] = np.sign(x[: n // 2, : design.width - int(design.intercept)])
    return np.asarray(model.fold(x, model.starting_targets(rng, x)), dtype=np.float32)


@pytest.mark.parametrize("spec", BOUNDED, ids=lambda spec: f"{spec.family}-{spec.noise_scale}")
@pytest.mark.parametrize("beta", [0.05, BETA, 1.0])
def test_no_contribution_exceeds_the_bound_before_clipping(spec: ModelSpec, beta: float) -> None:
    """W5: the bound follows from the range of potentials, at ordinary and at extreme draws."""
    rng = np.random.default_rng(0)
    model = make_robust(make_problem(spec, DECLARED).model, beta)
    rows, longest = _rows(spec, rng, 400), 0.0
    for scale in (0.1, 1.0, 10.0, 1000.0):
        draws = (scale * rng.standard_normal((24, model.dimension))).astype(np.float32)
        potentials = compute_centred_potentials(model, rows, draws)
        longest = max(longest, float(np.linalg.norm(potentials, axis=1).max()))
    assert 0.2 * bound_norm(model, 24, 1) < longest <= bound_norm(model, 24, 1) * (1 + 1e-5)


@pytest.mark.parametrize("each", [1, 3])
@pytest.mark.parametrize(
    "spec",
    [spec for spec in SPECS if spec not in COUNTS and spec.noise_covariance is None],
    ids=lambda s: f"{s.family}-{s.noise_scale}",
)
def test_w5_zeroing_a_unit_moves_the_sum_by_its_bound_at_most(spec: ModelSpec, each: int) -> None:
    """W5: by brute force over random and crafted units, after rounding; rows of a person count together."""
    rng = np.random.default_rng(1)
    model, _, _ = make_problem(spec, DECLARED)
    rows, present = _rows(spec, rng, 40 * each), np.ones(40 * each, dtype=bool)
    wild = rng.choice([0.0, 1.0, -1.0, 1e3, -1e9, 1e30, np.inf, -np.inf, np.nan, 1e-45], (10 * each, rows.shape[1]))
    rows[: 10 * each] = wild
    rows[10 * each : 11 * each] = rows[20 * each]  # a person with equal rows
    for beta in (LEAST_BETA, BETA, 1.0):
        for scale in (0.3, 30.0):
            draws = scale * rng.standard_normal((6, model.dimension))
            longest = min(bound_norm(make_robust(model, beta), 6, each), 1e3)
            for clip in (1e-3, longest):
                query = RobustPotentialSum(draws, clip, beta=beta)
                query.check(model, make_problem(spec, DECLARED).design)
                whole = query.sum(model, rows, present, each)
                for unit in range(40):
                    place = slice(unit * each, (unit + 1) * each)
                    less, there = rows.copy(), present.copy()
                    less[place], there[place] = 0, False
                    moved = whole - query.sum(model, less, there, each)
                    assert sum(int(k) ** 2 for k in moved) <= GRID**2


def test_nothing_is_clipped_at_the_bound() -> None:
    """The sum equals that of contributions, up to the grid's margin."""
    rng = np.random.default_rng(2)
    model = make_problem(SPECS[0], DECLARED).model
    rows, draws = _rows(SPECS[0], rng, 300), 2 * rng.standard_normal((10, model.dimension))
    robust = make_robust(model, BETA)
    clip = bound_norm(robust, 10, 1)
    query = RobustPotentialSum(draws, clip, beta=BETA)
    found = query.answer(query.sum(model, rows, np.ones(300, dtype=bool), 1))
    expected = compute_centred_potentials(robust, rows.astype(np.float64), draws).sum(axis=0)
    np.testing.assert_allclose(found, expected, atol=300 * clip * 2.0**-11)


def test_query_of_another_beta_is_another_query() -> None:
    """W5: a query that is sent to another process keeps its beta; without it, the sum would differ."""
    rng = np.random.default_rng(3)
    model = make_problem(SPECS[0], DECLARED).model
    rows, draws = _rows(SPECS[0], rng, 70), rng.standard_normal((6, model.dimension))
    query = RobustPotentialSum(draws, 0.7, beta=0.123456789)
    again = from_arrays(to_arrays(query))
    assert isinstance(again, RobustPotentialSum), "W5"
    assert again.beta == query.beta, "W5"
    there = np.ones(70, dtype=bool)
    np.testing.assert_array_equal(again.sum(model, rows, there, 1), query.sum(model, rows, there, 1))
    assert not np.array_equal(query.sum(model, rows, there, 1), PotentialSum(draws, 0.7).sum(model, rows, there, 1))


def test_plan_names_beta_and_survives_storage() -> None:
    plan = _plan()
    assert {query.kind for query in plan.queries} == {"robust_potential_sum"}
    assert plan.parameters["beta"] == BETA
    assert "(beta = 0.5)" in plan.clipping
    assert plan_json.from_json(plan_json.to_json(plan)) == plan


def test_plan_without_beta_is_that_of_earlier_versions() -> None:
    """Jobs in flight keep their plan; beta 0 is the same request."""
    plain = _plan(parameters={"beta": 0})
    request = PlanRequest("dp-psvi", 20, SPEC, {"posterior_draws": 12}, Mechanism(4.0, 0.5, 6))
    assert plain == find_method("dp-psvi").plan(request, facts(60))
    assert "beta" not in plain.parameters
    assert {query.kind for query in plain.queries} == {"potential_sum"}
    assert "beta" not in plain.clipping


def test_price_does_not_depend_on_beta() -> None:
    assert _plan().events == _plan(parameters={"beta": 0}).events


def test_clipping_of_people_is_bounded_for_all_their_rows() -> None:
    model = make_robust(make_problem(SPEC, facts(60)).model, BETA)
    assert bound_norm(model, 16, 3) == 3 * bound_norm(model, 16, 1) == pytest.approx(3 * 4 / (2 * BETA))
    unknown = make_robust(make_problem(SPECS[3], DECLARED).model, BETA)
    assert bound_norm(unknown, 16, 1) == np.inf


@pytest.mark.parametrize("beta", [-0.1, 1.5, LEAST_BETA / 2, float("nan"), float("inf"), "0.2", True])
def test_beta_out_of_range_is_refused_with_its_pointer(beta: Any) -> None:
    """W15: before anything is charged."""
    with pytest.raises(InvalidRequest) as caught:
        _plan(parameters={"beta": beta})
    assert caught.value.faults[0].pointer == "/parameters/beta"


@pytest.mark.parametrize("spec", COUNTS, ids=lambda spec: spec.family)
def test_models_of_counts_refuse_beta_in_words(spec: ModelSpec) -> None:
    """W15: and they take every other request as before."""
    with pytest.raises(InvalidRequest) as caught:
        _plan(spec, DECLARED)
    assert caught.value.faults[0].pointer == "/parameters/beta"
    assert "counts" in caught.value.faults[0].message
    assert _plan(spec, DECLARED, parameters={"beta": 0}).steps == 6


def _run(source: Table, plan: MechanismPlan, declared: DeclaredFacts) -> Pseudocoreset:
    sampling = np.random.Generator(ChaCha(key=2))
    model = make_problem(plan.model, declared).model
    asked = ClippedGaussianOracle(model, plan, declared, source, noise=NullNoise(), sampling=sampling)
    points = run_points(plan, declared, asked, np.random.default_rng(2), lambda _: None)
    assert asked.executed == plan.events
    return points


def _fit(points: Pseudocoreset, spec: ModelSpec, declared: DeclaredFacts) -> Laplace:
    """The posterior of the points under the model itself."""
    problem = make_problem(spec, declared)
    assert points.y is not None
    return posterior(problem, points.u, problem.design.encode_targets(points.y), points.weight)


def test_wrong_targets_move_the_posterior_less_with_beta() -> None:
    """A tenth of the targets is at the far bound; the run without noise follows the exact beta-posterior."""
    spec, clean = SPECS[2], population()
    dirty = Table({name: values.copy() for name, values in clean.columns.items()})
    dirty.columns["cost"][:400] = 250.0
    problem = make_problem(spec, DECLARED)
    x, y, present = problem.design.encode(dirty.gather(np.arange(dirty.slots)))
    robust = problem._replace(model=make_robust(problem.model, BETA))
    exact = posterior(robust, x.astype(np.float64), y, present.astype(np.float64))
    fields: dict[str, Any] = {"mechanism": Mechanism(1.0, 0.2, 400), "size": 12}

    def mean(source: Table, beta: float) -> Array64:
        plan = _plan(spec, DECLARED, parameters={"posterior_draws": 40, "beta": beta}, **fields)
        return _fit(_run(source, plan, DECLARED), spec, DECLARED).mean

    truth, plain, found = mean(clean, 0.0), mean(dirty, 0.0), mean(dirty, BETA)
    assert np.linalg.norm(exact.mean - truth) < 0.2 * np.linalg.norm(plain - truth)
    assert np.linalg.norm(found - truth) < 0.3 * np.linalg.norm(plain - truth)


def test_release_states_the_divergence_of_its_two_posteriors() -> None:
    """W16: the points represent a beta-posterior, but are used with the model; a large difference is a reason."""
    slots = 2000
    fields: dict[str, Any] = {"mechanism": Mechanism(1.0, 0.5, 300), "size": 20}
    plan = _plan(declared=facts(slots), parameters={"posterior_draws": 40, "beta": 0.3}, **fields)
    points = _run(table(slots), plan, facts(slots))
    assert points.reliability is not None
    fit = points.diagnostics["fit_kl"]
    assert fit > 0
    codes = {reason.code for reason in points.reliability.reasons}
    assert ("points-differ" in codes) is (fit > 1)
    assert points.reliability.grade is not Grade.CALIBRATED or fit <= 1
    used = _fit(points, SPEC, facts(slots))
    assert points.doubt is not None
    inverse = np.linalg.inv(used.factor @ used.factor.T)
    expected = np.sqrt(points.doubt.diagonal() / inverse.diagonal())
    np.testing.assert_allclose(list(points.diagnostics["noise_in_posterior_sds"].values()), expected, rtol=1e-2)


def test_a_beta_that_distorts_the_posterior_is_not_calibrated() -> None:
    """W16: beta 1 makes the posterior of the points much narrower than their beta-posterior."""
    slots = 2000
    plan = _plan(
        declared=facts(slots),
        mechanism=Mechanism(1.0, 0.5, 300),
        parameters={"posterior_draws": 40, "beta": 1.0},
    )
    points = _run(table(slots), replace(plan, size=20), facts(slots))
    assert points.reliability is not None
    assert points.diagnostics["fit_kl"] > 0.1
    assert points.reliability.is_calibrated is False or points.diagnostics["fit_kl"] <= 1
