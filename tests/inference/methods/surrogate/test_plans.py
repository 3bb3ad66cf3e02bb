"""Plans of the default method, their price, and stored plans."""

import json
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from app.errors import InvalidRequest
from app.inference.core import plan_json
from app.inference.core.designs import Interaction, Polynomial, Spline
from app.inference.core.plan import Mechanism, MechanismPlan, PlanRequest
from app.inference.methods.surrogate.planning import OtherVersion
from app.inference.registry import find_method, find_private_method
from app.privacy.events import GaussianEvent, flatten
from support.surrogate_tables import FAMILIES, METHOD, Case

EVERY_FAMILY = pytest.mark.parametrize("family", FAMILIES)
EVERY_NOISE = pytest.mark.parametrize("sigma", [0.2, 3.0, 30.0, 1000.0])


def _init(plan: MechanismPlan, case: Case) -> None:
    find_private_method(METHOD).init(plan, case.facts, np.random.default_rng(0))


@EVERY_FAMILY
@EVERY_NOISE
def test_composed_price_equals_that_of_one_gaussian(family: str, sigma: float) -> None:
    """W4: precisions of Gaussians add up to that of one with ``sigma``."""
    for features in (1, 4):
        plan = Case(family, features=features).plan(sigma)
        events = flatten(plan.events)
        precision = 0.0
        for event, count in events:
            assert isinstance(event, GaussianEvent)
            precision += count / event.noise_multiplier**2
        assert precision == pytest.approx(sigma**-2, rel=1e-9)
        assert plan.mechanism is not None
        assert plan.mechanism.noise_multiplier == sigma


@EVERY_FAMILY
@EVERY_NOISE
def test_plan_states_its_version_and_is_the_same_again(family: str, sigma: float) -> None:
    """W13: from the request and declared facts alone; also after storage."""
    case = Case(family, features=3)
    plan = case.plan(sigma)
    assert plan == case.plan(sigma)
    assert plan.parameters["version"] == 2
    assert plan.clipping.startswith("Version 2.")
    stored = plan_json.from_json(json.loads(json.dumps(plan_json.to_json(plan))))
    assert stored == plan
    _init(stored, case)
    quoted = find_method(METHOD).plan(PlanRequest(METHOD, 12, case.spec, {}, plan.mechanism), case.facts)
    assert quoted == plan


@pytest.mark.parametrize(
    ("case", "far"),
    [
        (Case("poisson-regression", features=3), True),
        (Case("linear-regression", features=3, noise_scale=0.05), True),
        (Case("linear-regression", features=3, noise_scale=1.0), False),
        (Case("negative-binomial-regression", features=3), False),
        (Case("student-t-regression", features=3, noise_scale=0.05), False),
    ],
)
def test_plan_warns_of_targets_far_from_any_prediction(case: Case, far: bool) -> None:
    warned = [warning for warning in case.plan(3.0).warnings if "student-t-regression" in warning]
    assert len(warned) == int(far)


def test_version_may_be_stated() -> None:
    case = Case(features=3)
    assert case.plan(3.0) == case.plan(3.0, version=2)


@pytest.mark.parametrize("version", [0, 1, 3, 1.5, "2", True])
def test_other_versions_are_refused(version: object) -> None:
    with pytest.raises(InvalidRequest) as caught:
        Case(features=3).plan(3.0, version=version)
    assert caught.value.faults[0].pointer == "/parameters/version"


@pytest.mark.parametrize("family", ["logistic-regression", "linear-regression", "gaussian-mean"])
def test_w4_stored_plan_of_other_words_or_noise_is_refused(family: str) -> None:
    """Otherwise its certificate or its price would be wrong."""
    case = Case(family, features=3)
    plan = case.plan(20.0)
    last = plan.queries[-1]
    quiet = replace(last, event=GaussianEvent(0.9 * last.event.noise_multiplier))
    for other in (
        replace(plan, clipping=plan.clipping.replace("C = 1.", "C = 2.")),
        replace(plan, queries=plan.queries[:-1]),
        replace(plan, queries=(*plan.queries, last)),
        replace(plan, queries=(*plan.queries[:-1], replace(last, length=last.length + 1))),
        replace(plan, queries=(*plan.queries[:-1], quiet)),
        replace(plan, queries=plan.queries[::-1]),
    ):
        assert other != plan
        with pytest.raises(OtherVersion):
            _init(other, case)
    _init(plan, case)


def test_clipping_names_a_bound_for_each_kind_of_query() -> None:
    words = Case("linear-regression", features=3).plan(3.0).clipping
    for part in ("Tails: C", "Information matrices and scores: metric and C", "cut at 3 deviations", "excess"):
        assert part in words
    assert "Tails" not in Case("linear-regression", features=3).plan(300.0).clipping
    assert "Residuals" not in Case("logistic-regression", features=3).plan(3.0).clipping


def test_clipping_says_whether_a_row_has_a_weight_in_the_count() -> None:
    """The rows of a unit of several have none."""
    case = Case(features=3)
    plan = case.plan(3.0)
    several = replace(case.facts, unit={"kind": "column", "column": "person", "max_rows": 3})
    other = find_method(METHOD).plan(PlanRequest(METHOD, 12, case.spec, {}, plan.mechanism), several)
    assert "weight of a row in the count" in plan.clipping
    assert "weight" not in other.clipping.split("Information")[0]


@pytest.mark.parametrize("version", [None, 1, 3])
def test_w4_plan_of_another_version_is_refused(version: int | None) -> None:
    """A stored plan without a version is of the first one."""
    case = Case(features=3)
    plan = case.plan(20.0)
    others = {name: value for name, value in plan.parameters.items() if name != "version"}
    stored = replace(plan, parameters=others if version is None else {**others, "version": version})
    with pytest.raises(OtherVersion):
        _init(stored, case)
    with pytest.raises(OtherVersion):
        find_private_method(METHOD).shorten(stored, case.facts)


@EVERY_FAMILY
@EVERY_NOISE
def test_shortened_plan_keeps_each_kind_of_query(family: str, sigma: float) -> None:
    """A dry run asks every kind that the run asks."""
    case = Case(family, features=3)
    plan = case.plan(sigma, 40)
    short = find_private_method(METHOD).shorten(plan, case.facts)
    assert {query.kind for query in short.queries} == {query.kind for query in plan.queries}
    assert short.parameters["version"] == 2
    assert short.parameters["rounds"] == 2
    assert short.size <= plan.size
    assert short.steps == len(short.queries) <= plan.steps
    _init(short, case)


@pytest.mark.parametrize(
    ("family", "kinds"),
    [
        ("logistic-regression", {"bounded_score_sum"}),
        ("linear-regression", {"cut_score_sum", "residual_histogram", "excess_sum"}),
        ("poisson-regression", {"cut_score_sum", "residual_histogram", "excess_sum"}),
        ("gaussian-mean", {"bounded_score_sum"}),
        ("student-t-regression", {"bounded_score_sum", "residual_histogram"}),
    ],
)
def test_residuals_are_asked_where_no_bound_is_natural(family: str, kinds: set[str]) -> None:
    planned = {query.kind for query in Case(family).plan(3.0).queries}
    every = {"bounded_score_sum", "cut_score_sum", "residual_histogram", "excess_sum"}
    assert planned & every == kinds


def test_scores_of_a_known_student_t_scale_are_widened() -> None:
    """The certificate states it."""
    plan = Case("student-t-regression", features=3, noise_scale=0.05).plan(3.0)
    assert {query.kind for query in plan.queries if "score" in query.kind} == {"cut_score_sum"}
    unknown, linear = (
        Case(f"{family}-regression", features=3).plan(3.0).clipping for family in ("student-t", "linear")
    )
    assert "wider scale" in plan.clipping
    assert "wider scale" not in unknown
    for clipping in (plan.clipping, unknown):
        assert "slopes of scores are clipped" in clipping
        assert "do not depend on targets" not in clipping
    assert "do not depend on targets" in linear


@EVERY_FAMILY
def test_squares_are_asked_around_means(family: str) -> None:
    """Around zero, noise would hide the small variance of a column far from zero."""
    for features in (1, 9):
        assert "mean_sum" in {query.kind for query in Case(family, features=features).plan(3.0).queries}


@pytest.mark.parametrize("family", ["logistic-regression", "linear-regression", "poisson-regression", "gaussian-mean"])
@pytest.mark.parametrize("sigma", [0.5, 30.0, 3000.0])
def test_stated_number_of_queries_is_planned_or_refused(family: str, sigma: float) -> None:
    """W4: the plan has the mechanism of the request."""
    case, planned = Case(family, features=3), 0
    for iterations in range(1, 32):
        request = PlanRequest(METHOD, 12, case.spec, {}, Mechanism(sigma, 1.0, iterations))
        try:
            plan = find_method(METHOD).plan(request, case.facts)
        except InvalidRequest:
            continue
        planned += 1
        assert plan.mechanism == request.mechanism
        assert plan.steps == len(plan.queries) == iterations
        _init(plan, case)
    assert planned >= 20


@pytest.mark.parametrize(("parameters", "warns"), [({}, False), ({"rounds": 5}, False), ({"rounds": 4}, True)])
def test_few_rounds_give_a_warning(parameters: dict[str, int], *, warns: bool) -> None:
    warned = Case(features=3).plan(3.0, **parameters).warnings
    assert any("rounds" in warning for warning in warned) is warns


@pytest.mark.parametrize(
    ("family", "features", "warns"),
    [
        ("linear-regression", (Polynomial("x0", 2),), True),
        ("student-t-regression", ("x0", Interaction((Spline("x1", 4), "x2"))), True),
        ("linear-regression", ("x0", Interaction(("x1", "x2"))), False),
        ("logistic-regression", (Polynomial("x0", 2),), False),
    ],
)
def test_curves_in_models_of_numbers_give_a_warning(family: str, features: tuple[Any, ...], *, warns: bool) -> None:
    case = Case(family, features=3)
    request = PlanRequest(METHOD, 50, replace(case.spec, features=features), {}, None, 3.0)
    warnings = find_private_method(METHOD).plan(request, case.facts).warnings
    assert any("polynomials and splines" in each for each in warnings) == warns


@pytest.mark.parametrize("rows", [1, 3])
def test_units_of_several_rows_give_a_warning(rows: int) -> None:
    """Rows of a person often have similar targets."""
    case = Case(features=3)
    unit = {"kind": "row"} if rows == 1 else {"kind": "column", "column": "person", "max_rows": rows}
    request = PlanRequest(METHOD, 50, case.spec, {}, None, 3.0)
    plan = find_private_method(METHOD).plan(request, replace(case.facts, unit=unit))
    assert any("one row for each unit" in each for each in plan.warnings) == (rows > 1)
