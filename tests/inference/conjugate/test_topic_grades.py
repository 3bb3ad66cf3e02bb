"""W16: topics of a usable release predict new documents better than one topic of all words does."""

import math
from dataclasses import replace

import numpy as np
import pytest
from corevault import Topics

from app.inference.conjugate import make_run_problem
from app.inference.core.facts import Column
from app.inference.core.plan import Mechanism, PlanRequest
from app.inference.core.release import BeliefRelease, Grade
from app.inference.private_zone.mechanisms import DiscreteGaussian
from app.inference.private_zone.oracle import ClippedGaussianOracle
from app.inference.private_zone.rng import make_sampling_generator
from app.inference.registry import make_plan
from app.inference.runner import run
from tests.inference.conjugate.corpora import SPEC, Codes, make_facts, make_table

WORDS, TOPICS, LENGTH, DOCUMENTS, FRESH = 200, 5, 40, 600, 200
NAMES = tuple(f"w{index}" for index in range(WORDS))


def draw_corpus(concentration: float) -> tuple[Codes, Codes]:
    """Draw documents and fresh ones; topics of a large concentration resemble one another."""
    rng = np.random.default_rng(1)
    topics = rng.dirichlet(np.full(WORDS, concentration), size=TOPICS)

    def draw(count: int) -> Codes:
        mixes = rng.dirichlet(np.full(TOPICS, 0.1), size=count) @ topics
        return np.array([rng.choice(WORDS, LENGTH, p=mix / mix.sum()) for mix in mixes])

    return draw(DOCUMENTS), draw(FRESH)


def release(codes: Codes, sigma: float) -> BeliefRelease:
    word = Column("word", "categorical", categories=NAMES)
    facts = make_facts(DOCUMENTS, LENGTH)
    facts = replace(facts, columns=tuple(word if each.name == "word" else each for each in facts.columns))
    plan = make_plan(PlanRequest("vips", 1, replace(SPEC, topics=TOPICS), {}, Mechanism(sigma, 1.0, 8)), facts)
    oracle = ClippedGaussianOracle(
        make_run_problem(plan, facts).model,
        plan,
        facts,
        make_table(codes, np.ones(codes.shape, dtype=bool)),
        noise=DiscreteGaussian(),
        sampling=make_sampling_generator(),
    )
    found = run(plan, facts, oracle, np.random.default_rng(0), lambda _: None)
    assert isinstance(found, BeliefRelease)
    return found


def compute_gain(found: BeliefRelease, codes: Codes, fresh: Codes) -> float:
    """Compute the gain of topics over one topic, in nats a word."""
    topics, document = (block.arrays for block in found.blocks)
    released = Topics(NAMES, topics["concentration"], document["concentration"][0])
    counts = np.bincount(codes.ravel(), minlength=WORDS) + 0.1
    alone = -float(np.log(counts / counts.sum())[fresh].mean())
    return alone - math.log(released.perplexity([[NAMES[code] for code in codes] for codes in fresh]))


@pytest.mark.slow
@pytest.mark.parametrize("concentration", [0.05, 0.3])
def test_w16_usable_topics_are_better_than_one_topic(concentration: float) -> None:
    codes, fresh = draw_corpus(concentration)
    usable = []
    for sigma in (0.1, 1.0, 2.0, 9.0):
        found = release(codes, sigma)
        usable.append(found.reliability.grade is not Grade.NOT_USABLE)
        if usable[-1]:
            assert compute_gain(found, codes, fresh) > 0
    assert usable == [True, True, True, False]


@pytest.mark.slow
def test_w16_a_small_share_of_noise_can_hide_the_topics() -> None:
    """Similar topics: less than half of the counts is noise, and still one topic predicts better."""
    codes, fresh = draw_corpus(0.3)
    found = release(codes, 9.0)
    assert found.diagnostics["noise_share"] < 0.5
    assert compute_gain(found, codes, fresh) < 0
    assert found.reliability.grade is Grade.NOT_USABLE
