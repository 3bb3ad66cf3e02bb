"""The method ``dp-groups``: plans, refusals, weights by a second derivation, and statements of a release."""

import json
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy import stats
from scipy.optimize import nnls

from app.errors import InvalidRequest
from app.inference import dry_run
from app.inference.core import plan_json, reasons
from app.inference.core.facts import Column, DeclaredFacts
from app.inference.core.model import Array64
from app.inference.core.plan import Mechanism, MechanismPlan, ModelSpec, PlanRequest
from app.inference.core.priors import NormalPrior
from app.inference.core.query import Query
from app.inference.core.release import Grade, GroupWeights
from app.inference.methods.dp_groups.laws import Normal, read_law
from app.inference.methods.dp_groups.method import MOST_VALUES, DpGroups
from app.inference.methods.dp_groups.weighing import compute_longest, weigh_groups
from app.inference.private_zone.mechanisms import GRID, DiscreteGaussian, NoiseSource
from app.inference.registry import find_method, make_plan
from app.inference.runner import run
from app.privacy.events import GaussianEvent
from tests.inference.support import MODEL, SPEC, NullNoise, facts, oracle, table

NAMES = list(MODEL.parameter_names(["age", "hours", "colour=green", "colour=blue", "smoker", "intercept"]))
SLOTS = 3000
BELIEF = {"parameters": NAMES, "mean": [1.0, -0.5, 0.5, 0.0, 0.4, -0.3], "variance": [0.01] * 6}


def plan(parameters: dict[str, Any] | None = None, **fields: Any) -> MechanismPlan:
    declared = fields.pop("declared", facts(SLOTS))
    spec, size = fields.pop("spec", SPEC), fields.pop("size", 3)
    fields.setdefault("noise_multiplier", 2.0)
    return make_plan(PlanRequest("dp-groups", size, spec, parameters or {}, **fields), declared)


def carry_out(
    planned: MechanismPlan, noise: NoiseSource | None = None, rows: int = SLOTS, seed: int = 0
) -> GroupWeights:
    asked = oracle(table(rows, slots=SLOTS), planned, noise or NullNoise())
    found = run(planned, facts(SLOTS), asked, np.random.default_rng(seed), lambda _: None)
    assert isinstance(found, GroupWeights)
    assert asked.executed == planned.events
    return found


def test_a_plan_has_one_query_of_all_rows_whatever_the_number_of_groups() -> None:
    for names, groups in ((["smoker"], 2), (["colour", "smoker", "ill"], 12)):
        planned = plan({"groups": names, "posterior_draws": 7})
        assert [(query.kind, query.length, query.count) for query in planned.queries] == [
            ("group_potential_sum", groups * 7, 1)
        ]
        assert planned.events == (GaussianEvent(2.0),)
        assert (planned.steps, planned.mechanism) == (1, Mechanism(2.0, 1.0, 1))


def test_defaults_are_the_discrete_features_a_hundred_draws_and_the_prior() -> None:
    planned = plan()
    assert planned.parameters == {"groups": ["colour", "smoker"], "posterior_draws": 100, "beta": 0.6}
    assert plan_json.from_json(json.loads(json.dumps(plan_json.to_json(planned)))) == planned
    assert planned.columns == ("age", "hours", "colour", "smoker", "ill")


@pytest.mark.parametrize(
    ("spec", "beta"),
    [
        (ModelSpec("poisson-regression", ("smoker",), "visits"), 0.0),
        (ModelSpec("gaussian-mean", ("age", "hours", "visits"), None), 0.2),
        (ModelSpec("linear-regression", ("smoker",), "hours"), 0.6),
    ],
)
def test_the_default_beta_is_one_that_the_model_has(spec: ModelSpec, beta: float) -> None:
    declared = replace(facts(SLOTS), columns=(*facts(SLOTS).columns, Column("visits", "integer", 0, 9)))
    planned = plan({"groups": ["smoker"]}, spec=spec, declared=declared)
    assert planned.parameters["beta"] == pytest.approx(beta)
    dry_run.carry_out(planned, declared, to_the_end=True)


def test_columns_of_groups_need_not_be_the_models() -> None:
    """A run opens them, too, and no further column."""
    planned = plan({"groups": ["colour"]}, spec=replace(SPEC, features=("age",)))
    assert planned.columns == ("age", "ill", "colour")
    assert carry_out(planned).labels == (("red",), ("green",), ("blue",))


FAULTS: dict[str, tuple[dict[str, Any], str]] = {
    "no column": ({"groups": []}, "/parameters/groups"),
    "no list": ({"groups": "colour"}, "/parameters/groups"),
    "no name": ({"groups": ["colour", 3]}, "/parameters/groups/1"),
    "twice": ({"groups": ["colour", "colour"]}, "/parameters/groups/1"),
    "not declared": ({"groups": ["colour", "nothing"]}, "/parameters/groups/1"),
    "a number": ({"groups": ["age"]}, "/parameters/groups/0"),
    "too many draws": ({"groups": ["many"], "posterior_draws": 1000}, "/parameters/posterior_draws"),
    "too many groups": ({"groups": ["many", "colour", "smoker"]}, "/parameters/groups"),
    "one draw": ({"posterior_draws": 1}, "/parameters/posterior_draws"),
    "small beta": ({"beta": 1e-4}, "/parameters/beta"),
    "unknown": ({"rounds": 3}, "/parameters"),
    "no belief": ({"belief": 1}, "/parameters/belief"),
    "no spread": ({"belief": {"parameters": NAMES, "mean": [0.0] * 6}}, "/parameters/belief"),
    "both spreads": ({"belief": BELIEF | {"covariance": np.eye(6).tolist()}}, "/parameters/belief"),
    "other names": ({"belief": BELIEF | {"parameters": ["a", *NAMES[1:]]}}, "/parameters/belief/parameters"),
    "repeated names": ({"belief": BELIEF | {"parameters": [NAMES[1], *NAMES[1:]]}}, "/parameters/belief/parameters"),
    "short mean": ({"belief": BELIEF | {"mean": [0.0]}}, "/parameters/belief/mean"),
    "mean of text": ({"belief": BELIEF | {"mean": ["0"] * 6}}, "/parameters/belief/mean/0"),
    "infinite mean": ({"belief": BELIEF | {"mean": [0.0, float("inf"), *[0.0] * 4]}}, "/parameters/belief/mean/1"),
    "not a number": ({"belief": BELIEF | {"mean": [float("nan")] * 6}}, "/parameters/belief/mean/0"),
    "no variance": ({"belief": BELIEF | {"variance": [0.0] * 6}}, "/parameters/belief/variance"),
    "few rows": (
        {"belief": {"parameters": NAMES, "mean": [0.0] * 6, "covariance": [[1.0] * 6]}},
        "/parameters/belief/covariance",
    ),
    "asymmetric": (
        {"belief": {"parameters": NAMES, "mean": [0.0] * 6, "covariance": (np.eye(6) + np.eye(6, k=1)).tolist()}},
        "/parameters/belief/covariance",
    ),
    "indefinite": (
        {"belief": {"parameters": NAMES, "mean": [0.0] * 6, "covariance": (-np.eye(6)).tolist()}},
        "/parameters/belief/covariance",
    ),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_of_the_request_has_a_pointer(fault: str) -> None:
    given, pointer = FAULTS[fault]
    many = Column("many", "categorical", categories=tuple(map(str, range(150))))
    declared = replace(facts(SLOTS), columns=(*facts(SLOTS).columns, many))
    with pytest.raises(InvalidRequest) as caught:
        plan(given, declared=declared)
    assert [each.pointer for each in caught.value.faults] == [pointer]


@pytest.mark.parametrize(
    ("mechanism", "pointer"),
    [
        (Mechanism(2.0, 0.5, 1), "/privacy/sampling_rate"),
        (Mechanism(2.0, 1.0, 2), "/privacy/iterations"),
        (Mechanism(0.0, 1.0, 1), "/privacy/noise_multiplier"),
        (None, "/privacy"),
    ],
)
def test_another_mechanism_is_refused(mechanism: Mechanism | None, pointer: str) -> None:
    with pytest.raises(InvalidRequest) as caught:
        plan(mechanism=mechanism, noise_multiplier=None)
    assert [each.pointer for each in caught.value.faults] == [pointer]


def test_a_model_without_discrete_features_needs_columns() -> None:
    with pytest.raises(InvalidRequest) as caught:
        plan(spec=replace(SPEC, features=("age",)))
    assert caught.value.faults[0].pointer == "/parameters/groups"


def test_the_unit_makes_no_groups() -> None:
    columns = (*facts(1).columns, Column("person", "categorical", categories=("a", "b")))
    people = DeclaredFacts(columns, SLOTS, {"kind": "column", "column": "person", "max_rows": 3}, "private", 1e-6)
    with pytest.raises(InvalidRequest) as caught:
        plan({"groups": ["person"]}, declared=people)
    assert caught.value.faults[0].pointer == "/parameters/groups/0"


def test_a_belief_is_read_by_name() -> None:
    rng = np.random.default_rng(0)
    root = rng.standard_normal((3, 3))
    covariance, mean, names = root @ root.T, rng.standard_normal(3), ["a", "b", "c"]
    order = [2, 0, 1]
    stated = {
        "parameters": [names[place] for place in order],
        "mean": mean[order].tolist(),
        "covariance": covariance[np.ix_(order, order)].tolist(),
    }
    prior = NormalPrior(np.ones(3))
    law = read_law({"belief": stated}, names, prior)
    assert isinstance(law, Normal)
    np.testing.assert_allclose(law.mean, mean)
    np.testing.assert_allclose(law.factor @ law.factor.T, covariance, atol=1e-12)
    draws = law.sample(rng, 200_000)
    np.testing.assert_allclose(np.cov(draws.T), covariance, atol=0.15 * np.abs(covariance).max())
    assert read_law({}, names, prior) is prior


def _answers(rng: np.random.Generator, groups: int, draws: int, dimension: int) -> Array64:
    """Sums of groups of very different sizes over a common few directions."""
    sizes = np.geomspace(1, 0.01, groups)[:, None]
    made = sizes * (rng.standard_normal((groups, dimension)) + 1) @ rng.standard_normal((dimension, draws))
    return np.asarray(made - made.mean(axis=1, keepdims=True))


def test_all_groups_without_noise_have_weight_one() -> None:
    """The sum over all groups is itself the best approximation."""
    answers = _answers(np.random.default_rng(1), 6, 40, 12)
    found = weigh_groups(answers, 1e-9, 6)
    np.testing.assert_allclose(found.weight, 1, rtol=1e-3)
    assert found.explained == pytest.approx(1, abs=1e-6)
    np.testing.assert_allclose(found.strength, np.sqrt(np.square(answers).mean(axis=1)), rtol=1e-6)


def test_weights_of_chosen_groups_solve_least_squares() -> None:
    """By SciPy's non-negative least squares on the chosen groups, from the answers themselves."""
    answers = _answers(np.random.default_rng(2), 12, 50, 6)
    found = weigh_groups(answers, 1e-9, 3)
    chosen = np.flatnonzero(found.weight)
    assert len(chosen) == 3
    expected, residual = nnls(answers[chosen].T, answers.sum(axis=0))
    np.testing.assert_allclose(found.weight[chosen], expected, rtol=1e-3)
    total = np.linalg.norm(answers.sum(axis=0))
    assert found.explained == pytest.approx(1 - (residual / total) ** 2, abs=1e-4)


def test_agreement_is_the_correlation_with_the_other_groups() -> None:
    answers = _answers(np.random.default_rng(3), 5, 60, 4)
    answers[4] = -2 * answers[:4].sum(axis=0)
    found = weigh_groups(answers, 1e-9, 5)
    for group in range(5):
        others = np.delete(answers, group, axis=0).sum(axis=0)
        assert found.agreement[group] == pytest.approx(np.corrcoef(answers[group], others)[0, 1], abs=1e-5)
    assert found.agreement[4] == pytest.approx(-1, abs=1e-6)


def test_noise_is_taken_out_of_strengths_and_products() -> None:
    """Averages over 400 noised answers: without the correction, strengths would be several times too large."""
    rng, noise = np.random.default_rng(4), 2.0
    answers = _answers(rng, 8, 60, 5)
    squares = []
    for _ in range(400):
        noised = answers + noise * rng.standard_normal(answers.shape)
        centred = noised - noised.mean(axis=1, keepdims=True)
        gram = centred @ centred.T - 59 * noise**2 * np.eye(8)
        found = weigh_groups(noised, noise, 4)
        np.testing.assert_allclose(found.strength, np.sqrt(np.maximum(gram.diagonal(), 0) / 60), rtol=1e-6)
        squares.append(gram)
    exact = answers @ answers.T
    errors = np.std(squares, axis=0) / np.sqrt(400)
    assert np.all(np.abs(np.mean(squares, axis=0) - exact) < 6 * errors)


def test_groups_below_noise_have_no_weight() -> None:
    """One group of three has all rows. The others would have a weight near 1: they explain their noise in the sum."""
    rng = np.random.default_rng(5)
    answers = np.zeros((3, 60))
    answers[0] = _answers(rng, 1, 60, 3)[0] * 3
    for _ in range(200):
        found = weigh_groups(answers + rng.standard_normal(answers.shape), 1.0, 3)
        assert found.above_noise.tolist() == [1, 0, 0]
        assert found.weight[1:].tolist() == [0, 0]
        assert 0.5 < found.weight[0] < 2


def test_noise_alone_is_not_above_noise() -> None:
    """In less than one of 20,000 groups, by the tail of the chi-square distribution."""
    for draws in (2, 5, 20, 100, 1000):
        assert stats.chi2.sf(compute_longest(draws - 1), draws - 1) < 5e-5
    assert not np.any(weigh_groups(np.random.default_rng(0).standard_normal((20, 50)), 1.0, 5).above_noise)


def test_a_release_without_noise_has_the_exact_sums() -> None:
    planned = plan({"belief": BELIEF, "posterior_draws": 30, "beta": 0})
    found = carry_out(planned)
    rows = table(SLOTS)
    problem = DpGroups().init(planned, facts(SLOTS), np.random.default_rng(0)).problem
    x, y, _ = problem.design.encode(rows.gather(np.arange(SLOTS)))
    potentials = problem.model.log_likelihood(problem.model.fold(x.astype(np.float64), y), found.draws)
    potentials -= potentials.mean(axis=1, keepdims=True)
    norms = np.linalg.norm(potentials, axis=1)
    clip = found.diagnostics["clipping_norm"]
    assert (norms > clip).mean() < 0.2
    potentials *= np.minimum(1, found.noise / 2.0 / norms)[:, None]
    codes = (2 * rows.columns["colour"] + rows.columns["smoker"]).astype(int)
    expected = np.array([potentials[codes == group].sum(axis=0) for group in range(6)])
    np.testing.assert_allclose(found.answers, expected, rtol=1e-3, atol=1e-3 * np.abs(expected).max())
    assert found.labels[3] == ("green", "true")
    assert found.parameters == tuple(NAMES)


def test_the_noise_of_answers_is_the_stated_one() -> None:
    """Of 6 * 1,000 answers: the sample variance is within six standard deviations."""
    planned = plan({"belief": BELIEF, "posterior_draws": 1000})
    noised, exact = carry_out(planned, DiscreteGaussian()), carry_out(planned)
    share = np.square((noised.answers - exact.answers) / noised.noise).mean()
    assert abs(share - 1) < 6 * np.sqrt(2 / 6000)
    assert noised.noise == pytest.approx(2.0 * noised.diagnostics["clipping_norm"], rel=1e-3)


def test_an_empty_table_is_not_usable() -> None:
    found = carry_out(plan(noise_multiplier=30.0), DiscreteGaussian(), rows=0)
    assert found.reliability.grade is Grade.NOT_USABLE
    assert set(found.reliability.reasons) == {reasons.GROUP_WEIGHTS, reasons.FEW_ROWS}
    assert found.diagnostics["groups_above_noise"] == 0


def test_weights_have_no_intervals_so_they_are_never_calibrated() -> None:
    found = carry_out(plan())
    assert (found.reliability.grade, found.reliability.reasons) == (Grade.CENTRE_ONLY, (reasons.GROUP_WEIGHTS,))
    assert found.diagnostics["trusted"] is False
    assert found.diagnostics["weighted_groups"] == np.count_nonzero(found.weight) <= 3


class _Wild:
    """Answers of any size, without a table."""

    def __init__(self, value: float) -> None:
        self._value = value

    def ask(self, query: Query) -> Array64:
        noised: Any = self._value * GRID * np.random.default_rng().standard_normal(query.length)
        return query.answer(noised)


@pytest.mark.parametrize("value", [0.0, 1.0, 1e6, 1e30])
def test_a_run_needs_no_rows_and_survives_any_answer(value: float) -> None:
    """W3, W14: a run over pure noise of any size ends with finite weights."""
    found = run(plan(), facts(SLOTS), _Wild(value), np.random.default_rng(), lambda _: None)
    assert isinstance(found, GroupWeights)
    for values in (found.weight, found.strength, found.agreement, found.answers):
        assert np.all(np.isfinite(values))
    assert np.all(found.weight >= 0)
    assert np.all(np.abs(found.agreement) <= 1)
    json.dumps(dict(found.diagnostics), allow_nan=False)


def test_wrong_labels_of_one_group_disagree() -> None:
    """Without noise, at the prior: the other groups agree with each other, and this one with none."""
    planned = plan({"groups": ["colour"]})
    source = table(SLOTS)
    wrong = source.columns["colour"] == 1
    source.columns["ill"] = np.where(wrong, 1 - source.columns["ill"], source.columns["ill"])
    asked = oracle(source, planned, NullNoise())
    found = run(planned, facts(SLOTS), asked, np.random.default_rng(0), lambda _: None)
    assert isinstance(found, GroupWeights)
    assert found.agreement[1] < 0 < min(found.agreement[0], found.agreement[2])


def test_beta_bounds_the_clipping_norm_and_is_stated() -> None:
    planned = plan({"beta": 0.5, "posterior_draws": 16, "belief": BELIEF | {"variance": [1e6] * 6}})
    state = DpGroups().init(planned, facts(SLOTS), np.random.default_rng(0))
    assert state.clip == pytest.approx(np.sqrt(16) / (2 * 0.5))
    assert "beta = 0.5" in planned.clipping
    assert "at most 4" in planned.clipping
    assert carry_out(planned).diagnostics["weighted_groups"] > 0


def test_the_clipping_rule_names_columns_and_groups() -> None:
    words = plan({"beta": 0}).clipping
    for part in ("colour, smoker", "6 declared groups", "100 log-likelihoods", "together to L2 norm C"):
        assert part in words


def test_an_answer_has_a_bounded_number_of_values() -> None:
    columns = (Column("many", "categorical", categories=tuple(map(str, range(500)))), Column("ill", "binary"))
    declared = DeclaredFacts((*columns, Column("age", "real", 0, 1)), SLOTS, {"kind": "row"}, "private", 1e-6)
    planned = plan(
        {"groups": ["many"], "posterior_draws": 200},
        spec=ModelSpec("logistic-regression", ("age",), "ill"),
        declared=declared,
    )
    assert planned.answer_length == MOST_VALUES
    assert dry_run.is_large(planned, declared)
    dry_run.carry_out(plan({"groups": ["colour", "ill"]}), facts(SLOTS), to_the_end=True)


def test_only_models_with_a_likelihood_are_taken() -> None:
    spec = ModelSpec("gaussian", ("age", "hours"), None)
    with pytest.raises(InvalidRequest) as caught:
        plan(spec=spec)
    assert caught.value.faults[0].pointer == "/method"
    assert find_method("dp-groups").leaves == "groups"
