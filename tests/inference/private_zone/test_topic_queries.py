"""Sums of words by topic: sensitivity (W5), totality (W14), and the same bits in every partition."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.special import digamma

from app.inference.conjugate import documents, make_conjugate_problem
from app.inference.conjugate.topics import LatentDirichlet
from app.inference.core.model import Array32, Array64
from app.inference.private_zone import partition
from app.inference.private_zone.mechanisms import GRID, BadQuery
from app.inference.private_zone.partition import compute_partial_sum, cut_units
from app.inference.private_zone.queries import TopicSum
from app.inference.private_zone.queries.arrays import from_arrays, to_arrays
from app.inference.private_zone.queries.topics import LEAST_LIKELIHOOD
from app.inference.private_zone.rng import make_sampling_generator
from app.inference.private_zone.rows import HeldRows
from tests.inference.conjugate.corpora import (
    FACTS,
    LENGTH,
    SPEC,
    TOPICS,
    WORDS,
    draw_documents,
    make_facts,
    make_table,
    sum_topics,
)
from tests.inference.private_zone.test_work_on_rows import MAKERS, SHARES, Steps, Strict, _strict

PROBLEM = make_conjugate_problem(SPEC, FACTS)
HOSTILE = (np.nan, np.inf, -np.inf, 3e38, -3e38, -1.0, WORDS, 1e-45, 0.5, WORDS - 0.5)


def model() -> LatentDirichlet:
    assert isinstance(PROBLEM.model, LatentDirichlet)
    return PROBLEM.model


def draw_belief(rng: np.random.Generator, spread: float = 3.0) -> Array64:
    belief = np.exp(-spread * rng.random((TOPICS, WORDS)) * rng.integers(0, 8, (TOPICS, WORDS)))
    return np.clip(belief, LEAST_LIKELIHOOD, 1.0)


def fold(codes: NDArray[np.int64]) -> Array32:
    return np.ascontiguousarray(codes.reshape(-1, 1), dtype=np.float32)


def square(values: NDArray[np.int64]) -> int:
    return sum(int(value) ** 2 for value in values.astype(object))


@settings(max_examples=150, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    clip=st.sampled_from([1e-6, 0.3, 2.0, float(LENGTH), 1e4]),
    shape=st.sampled_from(["drawn", "one word", "different words", "hostile"]),
)
def test_w5_one_document_moves_the_sum_by_at_most_the_grids_radius(seed: int, clip: float, shape: str) -> None:
    """For drawn and crafted documents, any belief and clipping norm, in exact integers."""
    rng = np.random.default_rng(seed)
    codes, present = draw_documents(rng, 5)
    if shape == "one word":
        codes[2] = rng.integers(WORDS)
    if shape == "different words":
        codes[2] = rng.permutation(WORDS)[:LENGTH]
    present[2] = True
    rows = fold(codes)
    if shape == "hostile":
        rows[2 * LENGTH : 3 * LENGTH, 0] = rng.choice(HOSTILE, LENGTH).astype(np.float32)
    query = TopicSum(draw_belief(rng), clip)
    query.check(model(), PROBLEM.design)
    whole = query.sum(model(), rows, present.ravel(), LENGTH)
    present[2] = False
    gap = whole - query.sum(model(), rows, present.ravel(), LENGTH)
    assert square(gap) <= GRID**2
    if shape == "one word" and clip <= 2:
        assert square(gap) > 0.9 * GRID**2  # the bound is reached, so the test can fail


def test_a_document_of_one_repeated_word_has_the_largest_norm() -> None:
    """``phi`` of norm 1 times n: the proven bound without a clip is n, and it is exact."""
    belief = np.full((TOPICS, WORDS), LEAST_LIKELIHOOD)
    belief[1, 7] = 1.0
    query = TopicSum(np.where(np.arange(WORDS) == 7, belief, 1.0), float(LENGTH))
    rows, present = fold(np.full((1, LENGTH), 7)), np.ones(LENGTH, dtype=bool)
    answer = query.answer(query.sum(model(), rows, present, LENGTH)).reshape(TOPICS, WORDS)
    assert answer[1, 7] == pytest.approx(LENGTH, rel=1e-3)
    assert np.linalg.norm(answer) <= LENGTH


@pytest.mark.parametrize("value", HOSTILE)
def test_w14_any_value_of_a_row_is_summed_without_a_warning(value: float) -> None:
    """A value that is no code counts as no word."""
    rng = np.random.default_rng(3)
    codes, present = draw_documents(rng, 4)
    present[1, 0] = True
    rows = fold(codes)
    rows[LENGTH, 0] = value
    query = TopicSum(draw_belief(rng), float(LENGTH))
    found = query.sum(model(), rows, present.ravel(), LENGTH)
    if not 0 <= value < WORDS:
        present[1, 0] = False
        np.testing.assert_array_equal(found, query.sum(model(), rows, present.ravel(), LENGTH))
    assert not np.any(query.sum(model(), rows, np.zeros_like(present.ravel()), LENGTH))


def test_sums_equal_a_plain_implementation() -> None:
    """Word by word in double precision; without a clip, single precision and the grid leave about 1e-4."""
    rng = np.random.default_rng(5)
    codes, present = draw_documents(rng)
    belief = draw_belief(rng)
    query = TopicSum(belief, float(LENGTH))
    found = query.answer(query.sum(model(), fold(codes), present.ravel(), LENGTH)).reshape(TOPICS, WORDS)
    expected = sum_topics(codes, present, np.log(belief), model().document_concentration)
    np.testing.assert_allclose(found, expected, rtol=2e-3, atol=2e-3)
    assert found.sum() == pytest.approx(present.sum(), rel=1e-4)


def test_a_clipped_document_keeps_its_direction() -> None:
    rng = np.random.default_rng(6)
    codes, present = draw_documents(rng, 1)
    present[:] = True
    belief = draw_belief(rng)
    wide, narrow = (
        query.answer(query.sum(model(), fold(codes), present.ravel(), LENGTH))
        for query in (TopicSum(belief, float(LENGTH)), TopicSum(belief, 0.5))
    )
    assert np.linalg.norm(narrow) == pytest.approx(0.5, rel=1e-3)
    np.testing.assert_allclose(narrow / np.linalg.norm(narrow), wide / np.linalg.norm(wide), atol=1e-5)


def test_w5_held_streamed_and_split_rows_give_the_same_bits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Over several chunks with a remainder, and in parts of every number."""
    monkeypatch.setattr(partition, "CHUNK_ROWS", 2048)
    count = 2000
    facts = make_facts(count)
    codes, present = draw_documents(np.random.default_rng(1), count)
    problem, source = make_conjugate_problem(SPEC, facts), make_table(codes, present)
    query = TopicSum(draw_belief(np.random.default_rng(2)), 0.8)
    held = HeldRows(problem.model, problem.design, source, make_sampling_generator(), [(1.0, 1)]).sum(query)
    for parts in (1, 2, 3, 7):
        places = cut_units(count, LENGTH, parts)
        assert len(places) - 1 == parts
        sums = [
            compute_partial_sum(query, problem.model, problem.design, source, range(start, end))
            for start, end in pairwise(places)
        ]
        np.testing.assert_array_equal(np.sum(sums, axis=0), held)
    sent = from_arrays(to_arrays(query))
    np.testing.assert_array_equal(compute_partial_sum(sent, problem.model, problem.design, source, range(count)), held)


def test_w14_steps_and_shapes_do_not_depend_on_presence() -> None:
    taken = {}
    query, rng = TopicSum(draw_belief(np.random.default_rng(2)), 0.8), np.random.default_rng(3)
    codes, _ = draw_documents(rng)
    chances = rng.random(codes.shape)
    for name, share in [("warm", 0.5), *SHARES.items()]:
        present = chances < share
        source = make_table(codes * present, present)
        with Steps() as steps:
            compute_partial_sum(query, PROBLEM.model, PROBLEM.design, source, range(len(codes)))
        taken[name] = steps.taken
    assert any(name == "call assign_topics" for name, _ in taken["full"])
    assert taken["empty"] == taken["half"] == taken["full"]


def test_w14_no_word_is_selected_by_a_boolean_index(monkeypatch: pytest.MonkeyPatch) -> None:
    codes, present = draw_documents(np.random.default_rng(4), 50)
    query, source = TopicSum(draw_belief(np.random.default_rng(2)), 0.8), make_table(codes, present)
    expected = query.sum(model(), fold(codes), present.ravel(), LENGTH)
    for name in MAKERS:
        monkeypatch.setattr(np, name, _strict(getattr(np, name)))
    gathered = {name: values.view(Strict) for name, values in source.gather(np.arange(50)).items()}
    x, y, there = PROBLEM.design.encode(gathered)
    rows = np.ascontiguousarray(model().fold(x.view(Strict), y.view(Strict))).view(Strict)
    found = query.sum(model(), rows, there.view(Strict), LENGTH)
    np.testing.assert_array_equal(np.asarray(found), expected)


def test_w14_no_step_meets_a_subnormal_number() -> None:
    """The extremes of belief and of a document's topics: every factor and its square are normal numbers."""
    least = np.float32(LEAST_LIKELIHOOD) * documents.LEAST_SHARE
    assert least**2 / WORDS > np.finfo(np.float32).tiny


def test_digamma_of_single_precision_is_accurate() -> None:
    values = np.geomspace(0.01, 1e5, 5000).astype(np.float32)
    found = documents.compute_digamma(values)
    np.testing.assert_allclose(found, digamma(values.astype(np.float64)), rtol=3e-6, atol=2e-6)


@pytest.mark.parametrize("fault", ["shape", "not finite", "zero", "above one", "clip"])
def test_a_query_that_does_not_fit_is_refused(fault: str) -> None:
    query = TopicSum(draw_belief(np.random.default_rng(0)), 1.0)
    broken = {
        "shape": replace(query, belief=query.belief[:, 1:]),
        "not finite": replace(query, belief=np.full_like(query.belief, np.nan)),
        "zero": replace(query, belief=np.zeros_like(query.belief)),
        "above one": replace(query, belief=np.full_like(query.belief, 1.5)),
        "clip": replace(query, clip=np.nan),
    }
    with pytest.raises(BadQuery):
        broken[fault].check(model(), PROBLEM.design)
