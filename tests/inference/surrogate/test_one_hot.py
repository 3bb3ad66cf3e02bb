"""Columns of which every row has exactly one, though nobody declared them as a category."""

import itertools
from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray

from app.inference.protocol import Array64
from app.inference.surrogate.answer import Answer
from app.inference.surrogate.matrices import metric
from app.inference.surrogate.memory import begun
from app.inference.surrogate.moments import Indicators, Moments
from app.inference.surrogate.one_hot import Runs, believed, seen_as_one_hot, together
from app.inference.surrogate.population import Population
from app.inference.surrogate.state import State
from support import surrogate_tables as tables

RNG = np.random.default_rng(8)
N, SHARES = 20_000, np.array([0.4, 0.3, 0.2, 0.1])
LEVELS = np.eye(4)[RNG.choice(4, N, p=SHARES)]
OTHERS = np.column_stack((RNG.normal(0, 0.3, N), (RNG.random(N) < 0.25) * 1.0))
ROWS = np.column_stack((OTHERS, LEVELS))
ALONG = np.array([0, 0, 1, 1, 1, 1, -1.0])
GROUP = slice(2, 6)


def _state(x: Array64, noise: float = 0.0) -> State:
    """As it is before the first matrix: ``x`` ``(n, k)`` known by moments of single columns, said to be noised."""
    answer = np.concatenate(([len(x)], x.sum(axis=0), np.square(x).sum(axis=0)))
    moments = Moments(answer, 1.0, noise, tables.plain(x.shape[1]))
    population = moments.population(len(x), intercept=True)
    size = x.shape[1] + 1
    information = 0.25 * population.count * population.second_moments + np.eye(size)
    return replace(
        tables.ended(tables.Case(features=x.shape[1]), 20.0),
        population=population,
        theta=np.zeros(size),
        information=information,
        memory=begun(information),
        moments=moments,
        winsorised=None,
        rows=float(len(x)),
    )


def _answer(state: State, x: Array64, noise: float) -> Answer:
    """The information of ``x`` at zero, in the metric of the belief, in which noise is as large as that."""
    rows = np.column_stack((x, np.ones(len(x))))
    within = metric(state.information)
    said = within.whitening @ (0.25 * rows.T @ rows) @ within.whitening.T
    drawn = noise * RNG.standard_normal(said.shape)
    prior = state.setup.prior.precision(state.theta)
    return Answer(said + (drawn + drawn.T) / 2, within, max(noise, 1e-6), prior, np.zeros((len(prior), 1)), np.inf)


def _seen(x: Array64, noise: float = 0.05) -> State:
    state = _state(x)
    answer = _answer(state, x, noise)
    assert state.memory is not None
    return seen_as_one_hot(RNG, replace(state, memory=state.memory.with_answer(answer)), answer)


def test_all_ways_to_choose_runs_are_counted() -> None:
    """Beside adding up every choice of runs that do not overlap."""
    spans = [(low, high) for low in range(6) for high in range(low + 2, 7)]
    low, high = np.array(spans).T
    weight = RNG.normal(0, 2, len(spans))
    expected, whole = np.zeros((6, 6)), 0.0
    for count in range(4):
        for chosen in itertools.combinations(range(len(spans)), count):
            taken = [column for place in chosen for column in range(*spans[place])]
            if len(taken) == len(set(taken)):
                odds = float(np.exp(weight[list(chosen)].sum()))
                whole += odds
                for place in chosen:
                    expected[slice(*spans[place]), slice(*spans[place])] += odds
    np.testing.assert_allclose(together(Runs(low, high, weight), 6), expected / whole, rtol=1e-12)


def test_evidence_of_any_size_leaves_chances() -> None:
    sure = Runs(np.array([0, 2]), np.array([2, 4]), np.array([1e20, 900.0]))
    np.testing.assert_array_equal(together(sure, 5), np.kron(np.diag([1, 1, 0]), np.ones((2, 2)))[:5, :5])
    none = Runs(np.array([0]), np.array([3]), np.array([-1e20]))
    np.testing.assert_array_equal(together(none, 3), 0)


@pytest.mark.parametrize("coded", [lambda levels: levels, lambda levels: 2 * levels - 1], ids=["flags", "signs"])
def test_what_is_known_of_their_sum_is_what_the_prior_knows(coded: object) -> None:
    assert callable(coded)
    x = np.column_stack((OTHERS, coded(LEVELS)))
    found = _seen(x)
    prior = found.setup.prior.precision(found.theta)
    step = x[:, GROUP].max() - x[:, GROUP].min()
    along = np.append(ALONG[:-1] / step, -1.0 if step == 1 else 1.0)
    alone = _state(x).information - prior
    known = found.information - prior
    assert along @ known @ along < 1e-3 * (along @ alone @ along)
    np.testing.assert_allclose(found.population.covariance[GROUP, GROUP], np.cov(x[:, GROUP].T), atol=0.01 * step**2)
    np.testing.assert_allclose(known[:2, :2], alone[:2, :2], rtol=1e-6)


def _overlapping() -> Array64:
    """The same shares of rows, to the row, whatever other columns have."""
    return np.column_stack([RNG.permutation(column) for column in LEVELS.T])


@pytest.mark.parametrize(
    "x",
    [
        np.column_stack((OTHERS, _overlapping())),
        np.column_stack((OTHERS, LEVELS[:, :3])),
        np.column_stack((OTHERS, LEVELS * RNG.uniform(0.2, 1, (N, 1)))),
        np.column_stack((LEVELS[:, :2], OTHERS, LEVELS[:, 2:])),
    ],
    ids=["of independent flags", "that leave rows without any", "of amounts", "that are no neighbours"],
)
def test_nothing_is_seen_in_columns(x: Array64) -> None:
    state = _state(x)
    answer = _answer(state, x, 0.05)
    assert state.memory is not None
    before = replace(state, memory=state.memory.with_answer(answer))
    assert seen_as_one_hot(RNG, before, answer) is before


def test_only_what_has_the_variance_of_an_indicator_may_be_one() -> None:
    """Not numbers that sum to one in every row; and what is declared is no candidate."""
    parts = RNG.dirichlet(10 * SHARES, N)
    x = np.column_stack((OTHERS, LEVELS, 2 * LEVELS[:, 0] - 1, parts))
    moments = _state(x).moments
    assert moments is not None
    expected = [False, True, *[True] * 4, True, *[False] * 4]
    np.testing.assert_array_equal(moments.indicators(N).possible, expected)
    group = np.where(np.arange(x.shape[1]) == 3, 0, -1)
    declared = replace(moments, known=replace(moments.known, group=group))
    assert not declared.indicators(N).possible[3]


def test_noise_in_a_matrix_leaves_it_open() -> None:
    """Independent flags whose shares sum to one, to the row, are hardly ever taken for a category."""
    x = np.column_stack((OTHERS, _overlapping()))
    state = _state(x)
    assert state.memory is not None
    mistaken = 0
    for noise in np.repeat([0.05, 0.1, 0.2], 50):
        answer = _answer(state, x, noise)
        before = replace(state, memory=state.memory.with_answer(answer))
        mistaken += seen_as_one_hot(RNG, before, answer) is not before
    assert mistaken <= 3


def test_levels_that_may_belong_to_either_side_are_shared() -> None:
    """Two rare columns of one share, before and after: each is a member as likely as not."""
    levels = np.eye(3)[RNG.choice(3, N, p=[0.59, 0.4, 0.01])]
    rare = RNG.permutation(levels[:, 2:])
    x = np.column_stack((rare, levels, OTHERS[:, :1]))
    state = _state(x, noise=40.0)
    answer = replace(_answer(state, x, 0.0), noise=0.15)
    assert state.memory is not None
    found = seen_as_one_hot(RNG, replace(state, memory=state.memory.with_answer(answer)), answer)
    mean, covariance = found.population.mean, found.population.covariance
    chances = -covariance[[0, 3], 1] / (mean[[0, 3]] * mean[1])
    assert -covariance[1, 2] / (mean[1] * mean[2]) > 0.9
    assert np.all((chances > 0.02) & (chances < 0.98))
    assert np.linalg.eigvalsh(covariance).min() > -1e-12


def test_a_mean_over_what_may_be_the_case_is_a_covariance() -> None:
    share = np.array([0.5, 0.3, 0.2, 0.4])
    found = Indicators(np.ones(4, dtype=bool), share, np.full(4, 1e-3), np.zeros(4), np.ones(4))
    before = Population(1e3, np.append(share, 1.0), np.pad(np.diag(share * (1 - share)), (0, 1)))
    weight = np.array([2.0, 1.0, 0.5])
    same = together(Runs(np.array([0, 1, 2]), np.array([3, 4, 4]), weight), 4)
    covariance = believed(before, found, same).covariance
    assert np.linalg.eigvalsh(covariance).min() > -1e-12
    np.testing.assert_allclose(covariance.diagonal(), before.covariance.diagonal(), atol=1e-12)
    np.testing.assert_allclose(covariance[0, 1], -share[0] * share[1] * same[0, 1])


@pytest.mark.parametrize("wrong", [np.nan, np.inf, -np.inf, 1e300, -1e300])
@pytest.mark.parametrize("where", ["moments", "matrix", "noise"])
def test_hostile_answers_are_borne(where: str, wrong: float) -> None:
    state = _state(ROWS)
    answer = _answer(state, ROWS, 0.05)
    assert state.moments is not None
    said: NDArray[np.float64] = state.moments.answer.copy()
    if where == "moments":
        said[3:6] = wrong
    elif where == "matrix":
        answer = replace(answer, matrix=np.full_like(answer.matrix, wrong))
    else:
        answer = replace(answer, noise=abs(wrong))
    with np.errstate(all="ignore"):
        found = seen_as_one_hot(RNG, replace(state, moments=replace(state.moments, answer=said)), answer)
    assert np.all(np.isfinite(found.information))
