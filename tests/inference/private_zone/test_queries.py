"""Every kind of query: its sensitivity is at most the grid's radius, and its sums are integers."""

from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.special import expit

from app.inference.core.model import Array32, Array64
from app.inference.core.query import Integers, Query
from app.inference.private_zone.mechanisms import CLIP_FLOOR, GRID, BadQuery
from app.inference.private_zone.queries import (
    BoundedScoreSum,
    ClippedScoreSum,
    InformationSum,
    LengthHistogram,
    MeanSum,
    MomentSum,
    PotentialSum,
    RobustInformationSum,
    RobustPotentialSum,
    RobustScoreSum,
    TailSum,
    find_kind,
)
from app.inference.private_zone.queries.blocks import MOST_ROWS, compute_power_of_two
from app.inference.private_zone.queries.lengths import BINS
from app.inference.private_zone.queries.moments import CENTRE_GRID
from support.surrogate_tables import Case
from tests.inference.support import DESIGN, MODEL, WIDTH

Make = Callable[[np.random.Generator, float, float], Query]
KINDS: dict[str, Make] = {
    "potential_sum": lambda rng, clip, spread: PotentialSum(spread * rng.standard_normal((5, WIDTH)), clip),
    "potential_sum, pairs": lambda rng, clip, spread: PotentialSum(_pairs(rng, spread), clip, antithetic=True),
    "robust_potential_sum": lambda rng, clip, spread: RobustPotentialSum(
        spread * rng.standard_normal((5, WIDTH)), clip, beta=0.3
    ),
    "robust_potential_sum, pairs": lambda rng, clip, spread: RobustPotentialSum(
        _pairs(rng, spread), clip, antithetic=True, beta=0.3
    ),
    "robust_score_sum": lambda rng, clip, spread: RobustScoreSum(*_at(rng, spread), clip, beta=0.3),
    "robust_information_sum": lambda rng, clip, spread: RobustInformationSum(*_at(rng, spread), clip, beta=0.3),
    "bounded_score_sum": lambda rng, clip, spread: BoundedScoreSum(*_at(rng, spread), clip),
    "clipped_score_sum": lambda rng, clip, spread: ClippedScoreSum(*_at(rng, spread), clip),
    "information_sum": lambda rng, clip, spread: InformationSum(*_at(rng, spread), clip),
    "moment_sum": lambda rng, clip, spread: MomentSum(2.0, WIDTH, intercept=True, clip=clip),
    "moment_sum, centred": lambda rng, clip, spread: MomentSum(
        2.0, WIDTH, intercept=True, clip=clip, centre=_centre(rng)
    ),
    "moment_sum, weighted": lambda rng, clip, spread: MomentSum(2.0, WIDTH, intercept=True, clip=clip, weight=0.8),
    "mean_sum": lambda rng, clip, spread: MeanSum(0.5, WIDTH, intercept=True, clip=clip),
    "mean_sum, weighted": lambda rng, clip, spread: MeanSum(0.5, WIDTH, intercept=True, clip=clip, weight=0.8),
    "tail_sum": lambda rng, clip, spread: TailSum(
        1.0, WIDTH, intercept=True, centre=_centre(rng), deviation=rng.uniform(0.05, 0.5, WIDTH - 1), clip=clip
    ),
    "length_histogram": lambda rng, clip, spread: LengthHistogram(0.5, WIDTH, intercept=True, largest=9, squares=True),
    "length_histogram, centred": lambda rng, clip, spread: LengthHistogram(
        0.5, WIDTH, intercept=True, largest=9, squares=False, centre=_centre(rng)
    ),
}
EVERY = pytest.mark.parametrize("name", KINDS)
HOSTILE = (np.nan, np.inf, -np.inf, 3e38, -3e38, 1e30, 1e-45, 0.0)


def _at(rng: np.random.Generator, spread: float) -> tuple[Array64, Array64]:
    return spread * rng.standard_normal(WIDTH), np.tril(rng.standard_normal((WIDTH, WIDTH)))


def _centre(rng: np.random.Generator) -> Array64:
    return np.asarray(np.rint(rng.uniform(-0.5, 0.5, WIDTH - 1) * CENTRE_GRID) / CENTRE_GRID)


def _pairs(rng: np.random.Generator, spread: float) -> Array64:
    centre, deviations = spread * rng.standard_normal(WIDTH), spread * rng.standard_normal((3, WIDTH))
    return np.concatenate([centre + deviations, centre - deviations])


def _rows(rng: np.random.Generator, n: int) -> Array32:
    """Draw folded rows: features in [-1, 1] and an intercept, times the sign of a label."""
    x = np.column_stack([rng.uniform(-1, 1, (n, WIDTH - 1)), np.ones(n)])
    return np.asarray(x * rng.choice([-1, 1], (n, 1)), dtype=np.float32)


def _weighted(query: Query, difference: Integers) -> int:
    """The squared norm in which the noise is isotropic, in exact integers: off-diagonal values count twice."""
    exact = [float(s) ** -2 for s in np.broadcast_to(query.scales(1 / GRID), difference.shape)]
    weights = [round(weight) for weight in exact]
    np.testing.assert_allclose(exact, weights, rtol=1e-12)  # noise a tenth too small would be rounded away
    return sum(weight * int(k) ** 2 for weight, k in zip(weights, difference, strict=True))


@EVERY
def test_kinds_are_found_by_name(name: str) -> None:
    query = KINDS[name](np.random.default_rng(0), 1.0, 1.0)
    assert find_kind(query.kind) is type(query)
    assert name.startswith(query.kind)
    assert find_kind("nothing") is None


@EVERY
@settings(max_examples=30)
@given(
    seed=st.integers(0, 2**32),
    clip=st.floats(CLIP_FLOOR, 100.0),
    spread=st.floats(1e-6, 1e6),
    each=st.sampled_from([1, 1, 3]),
    faults=st.lists(st.tuples(st.integers(0, 2), st.integers(0, WIDTH - 1), st.sampled_from(HOSTILE)), max_size=4),
)
def test_one_unit_moves_the_sum_by_at_most_the_grids_radius(
    name: str, seed: int, clip: float, spread: float, each: int, faults: list[tuple[int, int, float]]
) -> None:
    """W5, W14: after rounding, in exact integers, for any rows; an absent unit contributes zero."""
    rng = np.random.default_rng(seed)
    query, rows, present = KINDS[name](rng, clip, spread), _rows(rng, 20 * each), np.ones(20 * each, dtype=bool)
    unit = slice(7 * each, 8 * each)
    for row, column, value in faults:
        rows[unit][row % each, column] = value
    full = query.sum(MODEL, rows, present, each)
    rows[unit], present[unit] = 0, False
    without = query.sum(MODEL, rows, present, each)
    assert full.dtype == without.dtype == np.int64
    assert _weighted(query, full - without) <= GRID**2
    assert not np.any(query.sum(MODEL, rows, np.zeros_like(present), each))


@EVERY
@pytest.mark.parametrize("each", [1, 3])
def test_a_sum_is_the_total_of_the_sums_of_single_units(name: str, each: int) -> None:
    """W5, W6: a unit's contribution follows from its rows and declared facts; no clip depends on others."""
    rng = np.random.default_rng(8)
    query, rows = KINDS[name](rng, 0.4, 2.0), _rows(rng, 12 * each)
    whole = query.sum(MODEL, rows, np.ones(12 * each, dtype=bool), each)
    total = np.zeros_like(whole)
    for unit in range(12):
        alone, place = np.zeros_like(rows), slice(unit * each, (unit + 1) * each)
        alone[place] = rows[place]
        total = total + query.sum(MODEL, alone, np.any(alone != 0, axis=1), each)
    np.testing.assert_array_equal(whole, total)
    wide = KINDS[name](np.random.default_rng(8), 1e6, 2.0).sum(MODEL, rows, np.ones(12 * each, dtype=bool), each)
    assert name.startswith("length") or not np.array_equal(whole, wide)  # the clip bites


@EVERY
def test_scales_are_proportional_to_the_multiplier(name: str) -> None:
    """W5: the scale of the noise is proportional to its multiplier."""
    query = KINDS[name](np.random.default_rng(1), 1.0, 1.0)
    for sigma in (0.3, 7.0, 1e4):
        expected = sigma * GRID * np.asarray(query.scales(1 / GRID))
        np.testing.assert_allclose(query.scales(sigma), expected, rtol=1e-12)


@EVERY
@pytest.mark.parametrize("each", [1, 3])
def test_padding_a_unit_with_absent_rows_changes_nothing(name: str, each: int) -> None:
    """W5: a unit of one present row contributes that row; absent ones have no effect."""
    rng = np.random.default_rng(3)
    query, rows = KINDS[name](rng, 0.5, 1.0), _rows(rng, 40)
    padded = _rows(rng, 40 * each).reshape(40, each, WIDTH)
    padded[:, each // 2] = rows
    present = np.zeros((40, each), dtype=bool)
    present[:, each // 2] = True
    alone = query.sum(MODEL, rows, np.ones(40, dtype=bool), 1)
    together = query.sum(MODEL, padded.reshape(-1, WIDTH), present.ravel(), each)
    np.testing.assert_allclose(together, alone, atol=40 * 6000 if name.endswith("information_sum") else 40)


@EVERY
@settings(max_examples=10)
@given(seed=st.integers(0, 2**32), cuts=st.lists(st.integers(0, 6), max_size=4))
def test_sums_do_not_depend_on_the_partition(name: str, seed: int, cuts: list[int]) -> None:
    """W5: sums of parts that are cut at blocks add up to the whole."""
    rng = np.random.default_rng(seed)
    each = int(rng.integers(1, 4))
    size = compute_power_of_two(MOST_ROWS // each) * each
    query, n = KINDS[name](rng, 0.3, 1.0), 5 * size + 7 * each
    rows, present = _rows(rng, n), rng.random(n) < 0.8
    whole = query.sum(MODEL, rows, present, each)
    edges = [0, *sorted(min(cut * size, n) for cut in cuts), n]
    parts = [query.sum(MODEL, rows[a:b], present[a:b], each) for a, b in pairwise(edges)]
    np.testing.assert_array_equal(np.sum(parts, axis=0), whole)


@EVERY
@pytest.mark.parametrize("each", [1, 3, 1001])
@pytest.mark.parametrize("units", [7, 1003, 2300])
def test_a_unit_contributes_the_same_at_every_place(name: str, each: int, units: int) -> None:
    """W5: a unit that leaves moves other rows to other places; their sum is the same, bit by bit."""
    rng = np.random.default_rng(units)
    units = min(units, 4000 // each + 3)
    rows, present = _rows(rng, units * each), rng.random(units * each) < 0.9
    orders = [np.roll(np.arange(units), -1), rng.permutation(units)]
    for query in (KINDS[name](rng, clip, 1.0) for clip in (0.3, 0.5, 1.0)):
        whole = query.sum(MODEL, rows, present, each)
        for order in orders:
            moved = rows.reshape(units, each, WIDTH)[order].reshape(-1, WIDTH)
            there = present.reshape(units, each)[order].ravel()
            np.testing.assert_array_equal(query.sum(MODEL, moved, there, each), whole)


def _by_hand(name: str, query: Any, z: Array64) -> Array64:
    """Compute each kind in double precision from its definition."""
    if name.startswith(("moment_sum", "mean_sum", "length_histogram")):
        x = (z[:, :-1] * z[:, -1:] - query.centre) / query.scale
        weights = np.full(len(z), getattr(query, "weight", 1.0))
        values = np.column_stack([weights, x, x**2][: 2 if name.startswith("mean_sum") else 3])
        if name.startswith("length_histogram"):
            values = values if query.squares else x
            places = np.floor(np.log2(query.largest / np.sum(values**2, axis=1)))
            return np.bincount(np.clip(places, 0, BINS - 1).astype(int), minlength=BINS).astype(float)
    elif name == "tail_sum":
        t = (z[:, :-1] * z[:, -1:] - query.centre) / query.deviation
        near, far = np.clip(t, -2.5, 2.5) / 2.5, np.clip(t, -5, 5) / 5
        values = np.column_stack([near**2, far**2, near / 2])
    elif name.startswith("potential_sum"):
        values = -np.log1p(np.exp(-z @ query.draws.T))
        values -= values.mean(axis=1, keepdims=True)
    elif name.startswith("robust_potential_sum"):
        p, beta = expit(z @ query.draws.T), query.beta
        values = p**beta / beta - (p ** (1 + beta) + (1 - p) ** (1 + beta)) / (1 + beta)
        values -= values.mean(axis=1, keepdims=True)
    else:
        failure, transformed = expit(-z @ query.theta), z @ query.transform.T
        damping = np.ones(len(z))
        if name.startswith("robust"):
            damping = (1 - failure) ** query.beta * failure + failure**query.beta * (1 - failure)
        if name.endswith("information_sum"):
            transformed *= np.sqrt(damping)[:, None]
            values = transformed * np.sqrt(failure * (1 - failure))[:, None]
            weights = np.minimum(1, query.bound / np.sum(values**2, axis=1))
            return np.asarray((values * weights[:, None]).T @ values)
        if name == "robust_score_sum":
            damping *= np.minimum(1, 0.25 / np.mean(z[:, :-1] ** 2, axis=1))
            most = np.maximum(failure, 1 - failure) * np.linalg.norm(transformed, axis=1)
            return np.asarray((np.minimum(1, query.clip / most) * failure * damping) @ transformed)
        values = transformed * failure[:, None]
        if name == "bounded_score_sum":
            return _bounded(failure, transformed, query.clip)
    norm = np.linalg.norm(values, axis=1)
    shape = (3, -1) if name == "tail_sum" else -1
    assert np.any(norm > query.clip)
    assert np.any(norm < query.clip)
    return np.asarray(np.minimum(1, query.clip / norm) @ values).reshape(shape)


def _bounded(failure: Array64, transformed: Array64, bound: float) -> Array64:
    """Bound rows' scores: the longer of the two possible scores is at most ``bound``."""
    most = np.maximum(failure, 1 - failure) * np.linalg.norm(transformed, axis=1)
    return np.asarray((np.minimum(1, bound / np.maximum(most, 1e-300)) * failure) @ transformed)


@EVERY
def test_answers_match_the_definition(name: str) -> None:
    """Without noise, to the shrinkage and rounding of the grid: 2**-10 of each unit's bound."""
    rng = np.random.default_rng(11)
    query, rows = KINDS[name](rng, 1.3, 1.0), _rows(rng, 700)
    answer = query.answer(query.sum(MODEL, rows, np.ones(700, dtype=bool), 1))
    expected = _by_hand(name, query, rows.astype(np.float64))
    expected[0] /= getattr(query, "weight", 1.0)
    np.testing.assert_allclose(answer, expected, atol=700 * 1.3 * 2.0**-10)
    assert answer.dtype == np.float64
    assert answer.base is None


def test_bounded_scores_are_unbiased_at_the_true_parameter() -> None:
    """Given the design, the mean over labels is zero; plain clipping has a bias."""
    rng = np.random.default_rng(2)
    theta, transform = 2 * rng.standard_normal(WIDTH), np.eye(WIDTH)
    x = np.abs(_rows(rng, 4000)[:, -1:]) * _rows(rng, 4000) * np.array([2.0] * (WIDTH - 1) + [1], np.float32)
    x *= np.sign(x[:, -1:])
    p, present = expit(x @ theta), np.ones(1, dtype=bool)
    answers = dict[str, Array64]()
    for name, query in (
        ("bounded", BoundedScoreSum(theta, transform, 0.2)),
        ("clipped", ClippedScoreSum(theta, transform, 0.2)),
    ):
        parts: list[NDArray[Any]] = []
        for sign, weight in ((1, p), (-1, 1 - p)):
            each = [query.answer(query.sum(MODEL, sign * row[None], present, 1)) for row in x[:200]]
            parts.append(weight[:200] @ np.array(each))
        answers[name] = parts[0] + parts[1]
    assert np.linalg.norm(answers["bounded"]) < 200 * 0.2 * 1e-3
    assert np.linalg.norm(answers["clipped"]) > 200 * 0.2 * 1e-2


def test_an_information_matrix_is_symmetric_with_one_draw_per_pair() -> None:
    query = InformationSum(np.zeros(3), np.eye(3), 2.0)
    scales, answer = query.scales(1.5), query.answer(np.arange(1, 7) * GRID)
    np.testing.assert_allclose(scales, 1.5 * GRID / np.sqrt([1, 2, 2, 1, 2, 1]))
    np.testing.assert_array_equal(answer, [[2, 4, 6], [4, 8, 10], [6, 10, 12]])
    assert query.length == 9


@pytest.mark.parametrize(
    "query",
    [
        PotentialSum(np.full((4, WIDTH), np.nan), 1.0),
        PotentialSum(np.zeros((4, WIDTH - 1)), 1.0),
        PotentialSum(np.zeros((4, WIDTH)), np.inf),
        PotentialSum(np.zeros((3, WIDTH)), 1.0, antithetic=True),
        RobustPotentialSum(np.full((4, WIDTH), np.nan), 1.0, beta=0.3),
        *(RobustPotentialSum(np.zeros((4, WIDTH)), 1.0, beta=beta) for beta in (0.0, -0.1, 1.1, np.nan, np.inf)),
        *(RobustScoreSum(np.zeros(WIDTH), np.eye(WIDTH), 1.0, beta=beta) for beta in (0.0, np.nan)),
        *(RobustInformationSum(np.zeros(WIDTH), np.eye(WIDTH), 1.0, beta=beta) for beta in (0.0, np.nan)),
        BoundedScoreSum(np.zeros(WIDTH - 1), np.eye(WIDTH - 1), 1.0),
        BoundedScoreSum(np.zeros(WIDTH), np.full((WIDTH, WIDTH), np.inf), 1.0),
        ClippedScoreSum(np.zeros(WIDTH), np.eye(WIDTH), np.nan),
        InformationSum(np.full(WIDTH, np.nan), np.eye(WIDTH), 1.0),
        InformationSum(np.zeros(WIDTH), np.zeros((WIDTH, 1)), 1.0),
        InformationSum(np.zeros(WIDTH), np.eye(WIDTH), np.inf),
        MomentSum(1.0, WIDTH + 1, intercept=True, clip=1.0),
        MomentSum(1.0, WIDTH, intercept=False, clip=1.0),
        MomentSum(1.0, WIDTH, intercept=True, clip=np.nan),
        MomentSum(np.nan, WIDTH, intercept=True, clip=1.0),
        MomentSum(1.0, WIDTH, intercept=True, clip=1.0, centre=np.full(WIDTH - 1, np.nan)),
        MomentSum(1.0, WIDTH, intercept=True, clip=1.0, centre=np.full(WIDTH - 1, 1.25)),
        MomentSum(1.0, WIDTH, intercept=True, clip=1.0, centre=np.full(WIDTH - 1, 1e-30)),
        MomentSum(1.0, WIDTH, intercept=True, clip=1.0, centre=0.5),
        *(MomentSum(1.0, WIDTH, intercept=True, clip=1.0, weight=each) for each in (0.0, -1.0, 1e-30, 1e30, np.nan)),
        MeanSum(1.0, WIDTH, intercept=True, clip=1.0, centre=np.zeros(WIDTH)),
        TailSum(1.0, WIDTH, intercept=False, deviation=np.ones(WIDTH - 1), clip=1.0),
        TailSum(1.0, WIDTH, intercept=True, deviation=np.ones(WIDTH), clip=1.0),
        TailSum(1.0, WIDTH, intercept=True, deviation=np.zeros(WIDTH - 1), clip=1.0),
        TailSum(1.0, WIDTH, intercept=True, deviation=np.full(WIDTH - 1, 1e3), clip=1.0),
        TailSum(1.0, WIDTH, intercept=True, deviation=np.ones(WIDTH - 1), clip=np.inf),
        TailSum(1.0, WIDTH, intercept=True, deviation=np.ones(WIDTH - 1), clip=1.0, centre=np.full(WIDTH - 1, 1e-30)),
        LengthHistogram(0.0, WIDTH, intercept=True, largest=1.0, squares=True),
        LengthHistogram(1.0, WIDTH, intercept=True, largest=np.inf, squares=True),
    ],
)
def test_a_query_with_non_finite_or_misshapen_arrays_is_refused(query: Query) -> None:
    with pytest.raises(BadQuery):
        query.check(MODEL, DESIGN)


def test_rows_without_a_target_have_coordinates_around_a_centre() -> None:
    """Labels fold into the signs of rows. Without an intercept, they leave no centre."""
    shape: dict[str, Any] = {"scale": 0.5, "width": 3, "intercept": False, "centre": np.array([0.25, -0.5, 0.0])}
    query, case = MomentSum(**shape, clip=30.0), Case("gaussian-mean", features=3)
    query.check(case.problem.model, case.problem.design)
    x = np.random.default_rng(0).uniform(-1, 1, (40, 3))
    rows = case.problem.model.fold(x, np.zeros(40)).astype(np.float32)
    found = query.answer(query.sum(case.problem.model, rows, np.arange(40) < 30, 1))
    z = 2 * (x[:30] - shape["centre"])
    np.testing.assert_allclose(found, [30, *z.sum(axis=0), *(z**2).sum(axis=0)], rtol=1e-5, atol=1e-3)
    with pytest.raises(BadQuery):
        query.check(MODEL, replace(DESIGN, columns=DESIGN.columns[:3]))


@EVERY
@pytest.mark.parametrize("clip", [1e-9, 1e155, 1e307])
def test_w14_every_checked_query_has_a_sum_for_any_bound(name: str, clip: float) -> None:
    """A fault after the check would freeze the account like a fault among rows."""
    rng = np.random.default_rng(0)
    query = KINDS[name](rng, clip, 1.0)
    query.check(MODEL, DESIGN)
    found = query.sum(MODEL, _rows(rng, 20), np.ones(20, dtype=bool), 1)
    assert np.all(np.abs(found) <= 20 * GRID)


@pytest.mark.parametrize("antithetic", [True, False])
def test_models_get_draws_in_one_memory_layout(antithetic: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """A query that was sent has its draws in C order; its sums must equal the sums of a single process."""
    seen: list[bool] = []
    name, place = ("paired_losses", 3) if antithetic else ("log_likelihood", 2)
    original = getattr(type(MODEL), name)

    def spied(*args: Any, **named: Any) -> Any:
        seen.append(args[place].flags.f_contiguous)
        return original(*args, **named)

    monkeypatch.setattr(type(MODEL), name, spied)
    rng = np.random.default_rng(3)
    draws, rows = _pairs(rng, 1.0), rng.standard_normal((70, WIDTH)).astype(np.float32)
    laid: list[Array64] = [np.ascontiguousarray(draws), np.asfortranarray(draws)]
    sums = [PotentialSum(each, 1.0, antithetic).sum(MODEL, rows, np.ones(70, dtype=bool), 1) for each in laid]
    assert np.array_equal(sums[0], sums[1])
    assert seen
    assert all(seen)
