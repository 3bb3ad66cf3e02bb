"""``beta`` of the default method: queries, refusals, the centre that it finds, and the grade that it states."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from app.errors import InvalidRequest
from app.inference import dry_run
from app.inference.core import plan_json
from app.inference.core.facts import DeclaredFacts
from app.inference.core.plan import MechanismPlan, ModelSpec, PlanRequest
from app.inference.core.problems import make_problem
from app.inference.core.release import Grade, Pseudocoreset
from app.inference.expected_accuracy import is_estimated
from app.inference.methods.surrogate.planning import OtherVersion
from app.inference.models.robust import LEAST_BETA, make_robust
from app.inference.private_zone.oracle import ClippedGaussianOracle
from app.inference.private_zone.rng import make_sampling_generator
from app.inference.registry import DEFAULT, find_method, find_private_method
from app.inference.runner import run_points
from support.divergence import compute_divergence
from support.table import Table
from tests.inference.populations import DECLARED, SPECS, population, posterior
from tests.inference.support import NullNoise

LOGISTIC, PROBIT = SPECS[0], SPECS[1]
ROBUST = {"robust_score_sum", "robust_information_sum"}
BETA = 0.5


def _plan(
    spec: ModelSpec = LOGISTIC, noise: float = 8.0, declared: DeclaredFacts = DECLARED, **chosen: Any
) -> MechanismPlan:
    parameters = {"beta": BETA, **chosen}
    return find_method(DEFAULT).plan(PlanRequest(DEFAULT, 12, spec, parameters, noise_multiplier=noise), declared)


def _run(plan: MechanismPlan, source: Table) -> Pseudocoreset:
    model = make_problem(plan.model, DECLARED).model
    asked = ClippedGaussianOracle(model, plan, DECLARED, source, noise=NullNoise(), sampling=make_sampling_generator())
    points = run_points(plan, DECLARED, asked, np.random.default_rng(4), lambda _: None)
    assert asked.executed == plan.events
    return points


def test_plan_asks_scores_and_information_of_the_beta_likelihood() -> None:
    plan, plain = _plan(), _plan(beta=0)
    kinds, before = ({query.kind for query in each.queries} for each in (plan, plain))
    assert kinds >= ROBUST
    assert not kinds & {"bounded_score_sum", "information_sum", "cut_score_sum"}
    assert kinds - ROBUST == before - {"bounded_score_sum", "information_sum"}
    assert plan.parameters["beta"] == BETA
    assert "beta = 0.5" in plan.clipping
    assert plan_json.from_json(plan_json.to_json(plan)) == plan


def test_price_does_not_depend_on_beta() -> None:
    assert _plan().events == _plan(beta=0).events


def test_plan_without_beta_is_that_of_earlier_versions() -> None:
    """Jobs in flight keep their plan."""
    request = PlanRequest(DEFAULT, 12, LOGISTIC, {}, noise_multiplier=8.0)
    assert _plan(beta=0) == find_method(DEFAULT).plan(request, DECLARED)
    assert "beta" not in _plan(beta=0).parameters
    assert "beta" not in _plan(beta=0).clipping


@pytest.mark.parametrize("beta", [-0.1, 1.5, LEAST_BETA / 2, float("nan"), "0.2", True])
def test_beta_out_of_range_is_refused_with_its_pointer(beta: Any) -> None:
    """W15: before anything is charged."""
    with pytest.raises(InvalidRequest) as caught:
        _plan(beta=beta)
    assert caught.value.faults[0].pointer == "/parameters/beta"


@pytest.mark.parametrize("spec", [spec for spec in SPECS if spec.target != "ill"], ids=lambda spec: spec.family)
def test_other_targets_refuse_beta_in_words(spec: ModelSpec) -> None:
    """W15: binary targets only; without beta, every family is planned as before."""
    with pytest.raises(InvalidRequest) as caught:
        _plan(spec)
    assert caught.value.faults[0].pointer == "/parameters/beta"
    assert _plan(spec, beta=0).queries


@pytest.mark.parametrize("spec", [LOGISTIC, PROBIT], ids=lambda spec: spec.family)
@pytest.mark.parametrize(
    "unit", [{"kind": "row"}, {"kind": "column", "column": "person", "max_rows": 3}], ids=["row", "people"]
)
def test_dry_run_reaches_the_end(spec: ModelSpec, unit: dict[str, Any]) -> None:
    """W15: the shortened plan asks the same kinds of queries."""
    declared = replace(DECLARED, unit=unit)
    plan = _plan(spec, declared=declared)
    short = find_private_method(DEFAULT).shorten(plan, declared)
    assert {query.kind for query in short.queries} == {query.kind for query in plan.queries}
    dry_run.carry_out(plan, declared, to_the_end=True)


def test_plan_with_another_beta_than_its_words_is_refused() -> None:
    """A stored plan is carried out as it was priced and certified."""
    plan = _plan()
    altered = replace(plan, parameters={**plan.parameters, "beta": 0.4})
    with pytest.raises(OtherVersion):
        find_private_method(DEFAULT).init(altered, DECLARED, np.random.default_rng(0))


@pytest.mark.parametrize("spec", [LOGISTIC, PROBIT], ids=lambda spec: spec.family)
@pytest.mark.long
def test_points_have_the_beta_posterior_of_the_rows(spec: ModelSpec) -> None:
    """Without noise, against the exact beta-posterior; the plain posterior is much further away."""
    problem = make_problem(spec, DECLARED)
    x, y, present = problem.design.encode(population().gather(np.arange(population().slots)))
    robust = problem._replace(model=make_robust(problem.model, BETA))
    exact, plain = (posterior(each, x.astype(np.float64), y, present.astype(np.float64)) for each in (robust, problem))
    points = _run(_plan(spec, noise=0.5), population())
    assert points.y is not None
    found = posterior(problem, points.u, points.y, points.weight)
    assert points.diagnostics["fit_kl"] < 1e-3
    assert compute_divergence(found, exact) < 0.2
    assert compute_divergence(found, plain) > 0.3


@pytest.mark.long
def test_release_is_at_most_centre_only() -> None:
    """W16: bounds on scores may add a bias that the stated error leaves out."""
    points, plain = _run(_plan(), population()), _run(_plan(beta=0), population())
    assert points.reliability is not None
    assert plain.reliability is not None
    assert plain.reliability.grade is Grade.CALIBRATED
    assert points.reliability.grade is Grade.CENTRE_ONLY
    assert [reason.code for reason in points.reliability.reasons] == ["beta-centre"]
    assert points.diagnostics["trusted"] is False


def test_expected_accuracy_is_not_stated_with_beta() -> None:
    """It is computed for the posterior, from which the beta-posterior differs."""
    assert is_estimated(_plan(beta=0), DECLARED)
    assert not is_estimated(_plan(), DECLARED)
