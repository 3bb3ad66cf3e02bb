"""The method: its plans, and what a run achieves."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from randomgen import ChaCha

from app.errors import InvalidRequest
from app.inference.core.bounds import project
from app.inference.core.plan import Mechanism, PlanRequest, PriorSpec
from app.inference.core.problems import make_problem
from app.inference.core.release import Pseudocoreset
from app.inference.methods.surrogate import schedule as schedule_of
from app.inference.methods.surrogate.method import DpPsviSurrogate
from app.inference.methods.surrogate.planning import OtherVersion
from app.inference.private_zone.oracle import ClippedGaussianOracle
from app.inference.registry import find_method
from app.inference.runner import run
from app.privacy.events import GaussianEvent, PoissonSampledEvent, flatten
from support.divergence import compute_divergence
from support.surrogate_tables import FAMILIES, METHOD, Case, Drawn, build, compute_losses
from support.table import Table
from tests.inference.populations import DECLARED, SLOTS, SPECS, population, posterior
from tests.inference.support import SPEC, facts

RARE = replace(DECLARED, slots=50 * SLOTS)
WIDE = ("age", "hours", "colour", "smoker")


def _plan(**fields: Any) -> Any:
    request = PlanRequest(METHOD, fields.pop("size", 20), fields.pop("spec", SPEC), **fields)
    return find_method(METHOD).plan(request, facts(1000))


def test_a_quote_and_a_mechanism_make_the_same_plan() -> None:
    """W13: from declared facts alone."""
    quoted = _plan(noise_multiplier=3.0, parameters={"sampling_rate": 0.5})
    assert quoted.mechanism.iterations == quoted.steps == sum(count for _, count in flatten(quoted.events))
    assert _plan(mechanism=quoted.mechanism) == quoted
    assert _plan(mechanism=Mechanism(3.0, 0.5, 5 + 2 * 7)).parameters["rounds"] == 7


@pytest.mark.parametrize(
    ("default", "sigma"),
    [
        ("QUIET_INFORMATION_SHARE", 1.0),
        ("SEARCHING_MOMENTS_SHARE", 20.0),
        ("MEANS_SHARE", 20.0),
        ("TAILS_SHARE", 20.0),
        ("LENGTHS_SHARE", 1.0),
        ("GROWTH", 20.0),
    ],
)
def test_w4_a_plan_of_other_shares_is_not_carried_out(
    default: str, sigma: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Beliefs would count with another noise than the answers have."""
    case = Case(features=3)
    with monkeypatch.context() as then:
        then.setattr(schedule_of, default, 1.1 * getattr(schedule_of, default))
        plan = case.plan(sigma)
    DpPsviSurrogate().init(case.plan(sigma), case.facts, np.random.default_rng(0))
    with pytest.raises(OtherVersion):
        DpPsviSurrogate().init(plan, case.facts, np.random.default_rng(0))


@pytest.mark.parametrize(("words", "others"), [("C = 1.", "C = 2."), (" and where noise may hide one", "")])
def test_w4_a_plan_that_states_other_bounds_is_not_carried_out(words: str, others: str) -> None:
    """Its certificate would state what was not done."""
    case = Case(features=3)
    plan = case.plan(20.0)
    assert words in plan.clipping
    with pytest.raises(OtherVersion):
        DpPsviSurrogate().init(
            replace(plan, clipping=plan.clipping.replace(words, others)), case.facts, np.random.default_rng(0)
        )


def test_w4_a_plan_with_another_query_is_not_carried_out() -> None:
    plan = Case(features=3).plan(20.0)
    longer = replace(plan.queries[-1], length=plan.queries[-1].length + 1)
    for queries in (plan.queries[:-1], (*plan.queries, plan.queries[-1]), (*plan.queries[:-1], longer)):
        with pytest.raises(OtherVersion):
            DpPsviSurrogate().init(replace(plan, queries=queries), Case(features=3).facts, np.random.default_rng(0))


def test_noise_that_another_machine_rounded_otherwise_is_the_same() -> None:
    """A share is a power, which processors round apart."""
    case = Case(features=3)
    plan = case.plan(20.0)
    event = GaussianEvent(np.nextafter(plan.queries[-1].event.noise_multiplier, np.inf))
    nearly = (*plan.queries[:-1], replace(plan.queries[-1], event=event))
    DpPsviSurrogate().init(replace(plan, queries=nearly), case.facts, np.random.default_rng(0))


def test_queries_are_planned_in_the_order_of_the_steps() -> None:
    plan = _plan(noise_multiplier=3.0, parameters={"rounds": 2})
    kinds = [query.kind for query in plan.queries]
    assert kinds == [
        "length_histogram",
        "mean_sum",
        "length_histogram",
        "moment_sum",
        "tail_sum",
        "information_sum",
        "bounded_score_sum",
        "information_sum",
        "bounded_score_sum",
    ]
    assert all(isinstance(query.event, GaussianEvent) for query in plan.queries)
    sampled = _plan(noise_multiplier=3.0, parameters={"rounds": 2, "sampling_rate": 0.5})
    assert all(
        isinstance(query.event, PoissonSampledEvent) and query.event.sampling_rate == 0.5 for query in sampled.queries
    )


@pytest.mark.parametrize(
    ("family", "iterations", "openings", "kind"),
    [
        ("logistic-regression", 9, 5, "tail_sum"),
        ("logistic-regression", 10, 4, "mean_sum"),
        ("logistic-regression", 11, 5, "tail_sum"),
        ("poisson-regression", 9, 3, "moment_sum"),
        ("poisson-regression", 10, 4, "mean_sum"),
    ],
)
def test_a_number_of_queries_decides_which_are_left_out(family: str, iterations: int, openings: int, kind: str) -> None:
    """Rounds have two queries each, so that of tails and means the last is left out where they would not be whole."""
    case = Case(family)
    plan = find_method(METHOD).plan(PlanRequest(METHOD, 20, case.spec, {}, Mechanism(3.0, 1.0, iterations)), case.facts)
    assert plan.steps == iterations
    assert plan.parameters["rounds"] == (iterations - openings) // 2
    first = [query.kind for query in plan.queries[:openings]]
    assert kind in first
    assert not {"information_sum", "bounded_score_sum"} & set(first)
    assert build(case, plan, Drawn(0)).diagnostics["rounds"] == plan.parameters["rounds"]


def test_means_are_not_asked_where_nothing_follows_from_them() -> None:
    """Of people with many rows, without an intercept, or where columns are all that is ever asked for."""
    people = replace(Case().facts, unit={"kind": "column", "column": "person", "max_rows": 3})
    of_people = find_method(METHOD).plan(PlanRequest(METHOD, 20, Case().spec, {}, None, 3.0), people)
    others = (of_people, Case("gaussian-mean").plan(3.0), Case().plan(200.0))
    assert all(not {"mean_sum", "tail_sum"} & {query.kind for query in plan.queries} for plan in others)
    with pytest.raises(InvalidRequest):
        find_method(METHOD).plan(PlanRequest(METHOD, 20, Case().spec, {}, Mechanism(3.0, 1.0, 10)), people)


@pytest.mark.parametrize(
    ("fields", "pointer"),
    [
        ({}, "/privacy"),
        ({"noise_multiplier": float("nan")}, "/privacy"),
        ({"mechanism": Mechanism(0.0, 1.0, 9)}, "/privacy/noise_multiplier"),
        ({"mechanism": Mechanism(1.0, 0.0, 9)}, "/privacy/sampling_rate"),
        ({"mechanism": Mechanism(1.0, 1.0, 6)}, "/privacy/iterations"),
        ({"mechanism": Mechanism(1.0, 1.0, 5)}, "/privacy/iterations"),
        ({"mechanism": Mechanism(1.0, 1.0, 87)}, "/privacy/iterations"),
        ({"mechanism": Mechanism(1.0, 1.0, 9), "parameters": {"rounds": 3}}, "/parameters/rounds"),
        ({"mechanism": Mechanism(1.0, 1.0, 9), "parameters": {"sampling_rate": 1.0}}, "/parameters/sampling_rate"),
        ({"noise_multiplier": 1.0, "parameters": {"rounds": 1}}, "/parameters/rounds"),
        ({"noise_multiplier": 1.0, "parameters": {"within_bounds": 1}}, "/parameters/within_bounds"),
    ],
)
def test_a_faulty_request_is_pointed_at(fields: dict[str, Any], pointer: str) -> None:
    with pytest.raises(InvalidRequest) as caught:
        _plan(**fields)
    assert caught.value.faults[0].pointer == pointer


def test_too_small_a_size_and_too_much_noise_are_warned_of() -> None:
    exact = make_problem(SPEC, facts(1000)).model.smallest_exact
    assert not _plan(noise_multiplier=3.0, size=exact).warnings
    (warning,) = _plan(noise_multiplier=3.0, size=exact - 1).warnings
    assert "fewer" in warning
    assert "roughly" in _plan(noise_multiplier=60.0).warnings[0]


def _run(spec: Any, declared: Any, table: Table, sigma: float, **parameters: Any) -> Pseudocoreset:
    plan = find_method(METHOD).plan(PlanRequest(METHOD, 20, spec, parameters, None, sigma), declared)
    sampling = np.random.Generator(ChaCha(key=1))
    asked = ClippedGaussianOracle(
        make_problem(spec, declared).model, plan, declared, table, noise=Drawn(1), sampling=sampling
    )
    points = run(plan, declared, asked, np.random.default_rng(1), lambda _: None)
    assert asked.executed == plan.events
    return points


def _gained(spec: Any, points: Pseudocoreset) -> float:
    """KL to the full posterior, relative to the prior's."""
    problem = make_problem(spec, DECLARED)
    x, y, present = problem.design.encode(population().gather(np.arange(SLOTS)))
    exact = posterior(problem, x.astype(float), y.astype(float), present.astype(float))
    targets = np.zeros(20) if points.y is None else problem.design.encode_targets(points.y)
    found = posterior(problem, points.u, targets, points.weight)
    return compute_divergence(found, exact) / compute_divergence(
        posterior(problem, points.u, targets, np.zeros(20)), exact
    )


@pytest.mark.parametrize("rate", [1.0, 0.5])
@pytest.mark.parametrize("spec", SPECS, ids=lambda spec: f"{spec.family}-{spec.noise_scale}")
def test_every_model_comes_to_the_tables_posterior(spec: Any, rate: float) -> None:
    """W4: every event was consumed in order; at most a hundredth of the prior's divergence is left."""
    points = _run(spec, DECLARED, population(), 1.0, sampling_rate=rate)
    assert points.diagnostics["trusted"] is True
    assert _gained(spec, points) < 0.01


@pytest.mark.parametrize(
    "prior", [PriorSpec(2.0, {"age": 0.5, "colour": 5.0}), PriorSpec(1.0, {}, 4.0), PriorSpec(3.0, {"hours": 0.1}, 1.0)]
)
def test_priors_of_every_kind_are_followed(prior: PriorSpec) -> None:
    spec = replace(SPECS[0], features=WIDE, prior=prior)
    points = _run(spec, DECLARED, population(), 1.0)
    assert points.diagnostics["trusted"] is True
    assert _gained(spec, points) < 0.01


def test_points_stay_within_bounds_where_the_analyst_asks_for_it() -> None:
    spec = replace(SPECS[0], features=WIDE)
    design = make_problem(spec, DECLARED).design
    free, kept = (_run(spec, DECLARED, population(), 1.0, within_bounds=within).u for within in (False, True))
    np.testing.assert_allclose(project(design, kept), kept, atol=1e-12)
    assert np.abs(project(design, free) - free).max() > 0.1


def test_slots_far_above_the_units_are_seen_through() -> None:
    """4,000 units among 210,000 slots: counted, and found as well as among few."""
    columns = {name: np.resize(values, RARE.slots) for name, values in population().columns.items()}
    for values in columns.values():
        values[SLOTS:] = 0
    points = _run(SPECS[0], RARE, Table(columns), 1.0)
    assert points.diagnostics["estimated_units"] == pytest.approx(4000, rel=0.05)
    assert _gained(SPECS[0], points) < 0.02


def test_large_rates_are_followed() -> None:
    """Poisson counts of up to 2,000: the information at the mode is hundreds of times that at zero."""
    case = Case("poisson-regression", features=3, seed=0)
    y = case.table().columns["y"]
    assert y.mean() > 10
    points = build(case, case.plan(1.0), Drawn(0))
    found, prior = compute_losses(case, points)
    assert found < 0.01 * prior


@pytest.mark.parametrize("family", FAMILIES)
def test_people_of_several_rows_are_units(family: str) -> None:
    """1,000 people of four rows; bounds hold for a person's sum, and the posterior is that of all rows."""
    case = Case(family, "rare", features=3, rows=4000, slots=4000)
    people = replace(case.facts, slots=1000, unit={"kind": "column", "column": "person", "max_rows": 4})
    points = _run(case.spec, people, Table(case.table().columns, rows_per_slot=4), 0.3)
    found, prior = compute_losses(case, points)
    assert found < 0.02 * prior
    assert points.diagnostics["estimated_rows"] == pytest.approx(4000, rel=0.02)


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("design", ["uniform", "correlated", "rare"])
def test_at_an_epsilon_of_one_little_is_lost(design: str, seed: int) -> None:
    """20,000 rows, D = 10, delta 1e-6: sigma 4.2. Measured, in nats: uniform 0.5 and 0.9, correlated 0.5 and 0.8,
    rare 31 and 2; the prior's are 5,000 to 23,000.
    """
    case = Case(design=design, features=9, rows=20_000, slots=20_000, seed=seed)
    points = build(case, case.plan(4.2), Drawn(seed), seed)
    found, prior = compute_losses(case, points)
    assert found < 0.005 * prior
    assert points.diagnostics["trusted"] is True
