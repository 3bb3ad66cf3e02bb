"""Topics of whole runs equal a plain implementation without noise; wrong requests are refused."""

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import digamma

from app.errors import InvalidRequest
from app.inference import dry_run
from app.inference.conjugate import make_conjugate_problem, make_run_problem
from app.inference.conjugate.topics import LEAST_SIGNAL, compute_noise_share, compute_signal, remove_noise
from app.inference.core import reasons
from app.inference.core.belief import has_fitting_shapes
from app.inference.core.facts import Column, DeclaredFacts
from app.inference.core.plan import Mechanism, MechanismPlan, ModelSpec, PlanRequest, PriorSpec
from app.inference.core.plan_json import from_json, to_json
from app.inference.core.release import BeliefRelease, Grade
from app.inference.core.statistics import Averages
from app.inference.private_zone.mechanisms import DiscreteGaussian, NoiseSource
from app.inference.private_zone.oracle import ClippedGaussianOracle
from app.inference.private_zone.rng import make_sampling_generator
from app.inference.registry import make_plan
from app.inference.runner import run
from tests.inference.conjugate.corpora import (
    FACTS,
    SPEC,
    TOPICS,
    WORDS,
    Codes,
    Presence,
    draw_documents,
    make_table,
    sum_topics,
)
from tests.inference.support import NullNoise


def plan(sigma: float = 1.0, rate: float = 1.0, iterations: int = 5, **parameters: Any) -> MechanismPlan:
    mechanism = Mechanism(sigma, rate, iterations)
    return make_plan(PlanRequest("vips", 1, SPEC, parameters, mechanism), FACTS)


def release(
    planned: MechanismPlan, codes: Codes, present: Presence, noise: NoiseSource, seed: int = 0
) -> BeliefRelease:
    oracle = ClippedGaussianOracle(
        make_run_problem(planned, FACTS).model,
        planned,
        FACTS,
        make_table(codes, present),
        noise=noise,
        sampling=make_sampling_generator(),
    )
    found = run(planned, FACTS, oracle, np.random.default_rng(seed), lambda _: None)
    assert isinstance(found, BeliefRelease)
    return found


def test_a_run_without_noise_equals_plain_variational_inference() -> None:
    """Batch inference from the same start, without clip and averages, in double precision."""
    codes, present = draw_documents(np.random.default_rng(1))
    found = release(plan(0.05, forgetting=0.0, clipping_share=1.0), codes, present, NullNoise(), seed=7)
    concentration = np.random.default_rng(7).gamma(100.0, 0.01, (TOPICS, WORDS))
    for _ in range(5):
        log_beta = digamma(concentration) - digamma(concentration.sum(axis=1, keepdims=True))
        concentration = 0.1 + sum_topics(codes, present, log_beta, 0.1)
    np.testing.assert_allclose(found.blocks[0].arrays["concentration"], concentration, rtol=5e-3, atol=5e-3)


def test_the_belief_names_topics_and_words() -> None:
    codes, present = draw_documents(np.random.default_rng(1))
    found = release(plan(0.2), codes, present, DiscreteGaussian())
    topics, document = found.blocks
    assert (topics.name, document.name) == ("topics", "document")
    assert all(has_fitting_shapes(block) for block in found.blocks)
    assert topics.arrays["names"].tolist() == document.arrays["values"].tolist() == ["topic 1", "topic 2", "topic 3"]
    assert topics.arrays["values"].tolist() == list(FACTS.columns[1].categories)
    np.testing.assert_array_equal(document.arrays["concentration"], np.full((1, TOPICS), 0.1))
    assert (found.reliability.grade, found.reliability.reasons) == (Grade.CENTRE_ONLY, (reasons.VARIATIONAL,))


@pytest.mark.parametrize("present", ["none", "one document"])
def test_w16_a_nearly_empty_table_is_not_usable(present: str) -> None:
    """Ninety sums of noise have no signal."""
    codes, there = draw_documents(np.random.default_rng(1))
    there &= (np.arange(len(codes)) < (present != "none"))[:, None]
    found = release(plan(4.0), codes * there, there, DiscreteGaussian())
    assert (found.reliability.grade, reasons.NOISE_DOMINATES in found.reliability.reasons) == (Grade.NOT_USABLE, True)
    assert found.diagnostics["trusted"] is False


@pytest.mark.parametrize("size", [1e-30, 1.0, 1e30])
def test_w14_any_answers_give_a_finite_belief(size: float) -> None:
    problem, rng = make_conjugate_problem(SPEC, FACTS), np.random.default_rng(3)
    for shift in (-1, 0, 1):
        sums = {"words": size * (rng.standard_normal(TOPICS * WORDS) + shift)}
        averages = Averages(sums, {"words": size}, 1.0)
        belief = problem.model.update(averages, problem.model.start(rng))
        assert np.all((belief >= 1e-8) & (belief <= 1))
        for block in problem.model.conclude(averages, ["word"]).blocks:
            assert np.all(np.isfinite(block.arrays["concentration"]))
            assert np.all(block.arrays["concentration"] > 0)


@given(st.integers(0, 2**32 - 1))
def test_noise_is_removed_by_a_projection(seed: int) -> None:
    """Non-negative, of the same sums, and no other such matrix is nearer: by the condition of Karush, Kuhn, Tucker."""
    sums = np.random.default_rng(seed).standard_normal((4, 9)) + 0.4
    found = remove_noise(sums)
    assert np.all(found >= 0)
    np.testing.assert_allclose(found.sum(axis=1), np.maximum(sums.sum(axis=1), 0), atol=1e-12)
    for row, projected in zip(sums, found, strict=True):
        if row.sum() > 0:
            level = (row - projected)[projected > 0]
            np.testing.assert_allclose(level, level[0], atol=1e-12)
            assert np.all(row[projected == 0] <= level[0] + 1e-12)


def test_sums_without_noise_are_kept() -> None:
    sums = np.random.default_rng(0).random((3, 5))
    np.testing.assert_allclose(remove_noise(sums), sums, rtol=1e-14)
    assert compute_noise_share(sums) == pytest.approx(0, abs=1e-14)
    assert compute_noise_share(-sums) == np.inf
    assert compute_noise_share(np.array([3.0, -1.0])) == pytest.approx(0.5)


def test_signal_is_that_of_topics_that_differ() -> None:
    """Against the root mean square of exact sums; noise is not a signal, and neither are equal topics."""
    rng = np.random.default_rng(4)
    shares = rng.dirichlet(np.ones(200), size=5)
    equal = 2e5 * np.outer(np.full(5, 0.2), shares.mean(axis=0))
    differ = 4e4 * shares
    noise = 10.0
    beyond = differ - np.outer(differ.sum(axis=1), differ.sum(axis=0)) / differ.sum()
    expected = float(np.sqrt(np.mean(beyond**2))) / noise
    found = compute_signal(differ + noise * rng.standard_normal(differ.shape), noise)
    assert found == pytest.approx(expected, rel=0.05)
    assert expected > 2 * LEAST_SIGNAL
    assert compute_signal(equal + noise * rng.standard_normal(equal.shape), noise) < 0.5
    assert compute_signal(differ * 1e3, noise) == pytest.approx(1e3 * expected, rel=1e-3)


@given(st.integers(0, 2**32 - 1), st.floats(-1, 1))
def test_w16_sums_of_noise_alone_have_no_signal(seed: int, shift: float) -> None:
    """Also if their total is near zero, where shares of words mean nothing."""
    sums = np.random.default_rng(seed).standard_normal((3, 30)) + shift / math.sqrt(90)
    assert compute_signal(sums, 1.0) < LEAST_SIGNAL


@pytest.mark.parametrize(("length", "share"), [(1, 0.5), (4, 0.25), (100, 0.05), (400, 0.025)])
def test_the_usual_clipping_norm_is_half_the_root_of_the_length(length: int, share: float) -> None:
    facts = replace(FACTS, unit=dict(FACTS.unit) | {"max_rows": length})
    planned = make_plan(PlanRequest("vips", 1, SPEC, noise_multiplier=2.0), facts)
    assert planned.parameters["clipping_share"] == share
    assert planned.queries[0].kind == "topic_sum"


def test_usual_runs_sample_a_twentieth_of_the_documents() -> None:
    planned = make_plan(PlanRequest("vips", 1, SPEC, noise_multiplier=2.0), replace(FACTS, slots=200_000))
    assert planned.mechanism == Mechanism(2.0, 0.05, 20)


def test_settings_survive_the_plans_json() -> None:
    planned = plan()
    assert from_json(to_json(planned)) == planned
    assert to_json(planned)["model"]["topics"] == TOPICS
    other = replace(planned, model=ModelSpec("gaussian-mean", ("a",), None))
    later = {"topics", "document_concentration", "topic_concentration", "hidden_units"}
    assert not later & to_json(other)["model"].keys()  # so plans of earlier versions keep their digests


def test_w15_a_dry_run_takes_every_step() -> None:
    dry_run.carry_out(plan(iterations=20), FACTS, to_the_end=True)


MANY = Column("many", "categorical", categories=tuple(str(index) for index in range(10_000)))
FAULTS: dict[str, tuple[dict[str, Any], dict[str, Any], str]] = {
    "rows as units": ({}, {"unit": {"kind": "row"}}, "/model/family"),
    "long documents": ({}, {"unit": {"kind": "column", "column": "document", "max_rows": 2001}}, "/model/family"),
    "no words": ({"features": ()}, {}, "/model/features"),
    "two columns": ({"features": ("word", "length")}, {}, "/model/features"),
    "unknown column": ({"features": ("text",)}, {}, "/model/features/0"),
    "numbers": ({"features": ("length",)}, {}, "/model/features/0"),
    "the document": ({"features": ("document",)}, {}, "/model/features/0"),
    "target": ({"target": "length"}, {}, "/model/target"),
    "prior": ({"prior": PriorSpec(2.0)}, {}, "/model/prior"),
    "one topic": ({"topics": 1}, {}, "/model/topics"),
    "topics": ({"topics": 201}, {}, "/model/topics"),
    "too many sums": ({"features": ("many",), "topics": 101}, {"columns": (*FACTS.columns, MANY)}, "/model/topics"),
    "concentration": ({"document_concentration": 0.0}, {}, "/model/document_concentration"),
    "other concentration": ({"topic_concentration": 101.0}, {}, "/model/topic_concentration"),
    "other setting": ({"hidden_units": 3}, {}, "/model/hidden_units"),
    "noise scale": ({"noise_scale": 1.0}, {}, "/model/noise_scale"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_w15_a_request_that_does_not_fit_is_refused(fault: str) -> None:
    """Before anything is charged, with a pointer into the request."""
    of_model, of_facts, pointer = FAULTS[fault]
    facts: DeclaredFacts = replace(FACTS, **of_facts)
    with pytest.raises(InvalidRequest) as caught:
        make_plan(PlanRequest("vips", 1, replace(SPEC, **of_model), noise_multiplier=2.0), facts)
    assert [each.pointer for each in caught.value.faults] == [pointer]


def test_other_models_take_neither_topics_nor_a_clipping_share() -> None:
    spec = ModelSpec("gaussian", ("length",), None)
    with pytest.raises(InvalidRequest) as caught:
        make_plan(PlanRequest("vips", 1, replace(spec, topics=3), noise_multiplier=2.0), FACTS)
    assert caught.value.faults[0].pointer == "/model/topics"
    with pytest.raises(InvalidRequest) as caught:
        make_plan(PlanRequest("vips", 1, spec, {"clipping_share": 0.5}, noise_multiplier=2.0), FACTS)
    assert caught.value.faults[0].pointer == "/parameters/clipping_share"
