"""The metric of scores where the prior pulls against labels that are nearly certain."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.special import expit

from app.inference.methods.surrogate import rounds, score_metric
from app.inference.methods.surrogate.directions import Kept
from app.inference.methods.surrogate.disputed import Places
from app.inference.methods.surrogate.efficiency import efficiency
from app.inference.methods.surrogate.matrices import Metric, metric
from app.inference.methods.surrogate.population import Population
from app.inference.methods.surrogate.score_metric import _cheapest, roomy_for_scores
from app.inference.methods.surrogate.state import State
from app.inference.methods.surrogate.tails import Tails
from support.surrogate_tables import Case, compute_after, run_all_steps

SHARE, COUNT, BOUND = 0.05, 50_000.0, 0.01
DISTANCE = np.sqrt(1 / SHARE - 1)
TAILS = Tails(np.array([1.0, 0.0]), np.array([DISTANCE, 5.0]), np.array([1.0, 0.0]), np.zeros((1, 2)), clear=True)
MEAN, COVARIANCE = np.array([SHARE, 0.2, 1.0]), np.diag([SHARE * (1 - SHARE), 0.3, 0.0])
FLAG = np.array([1.0, 0.2, 1.0])
THETA = np.array([-5.0, 0.0, 0.0])


@pytest.fixture(scope="module")
def state() -> State:
    """A flag whose labels are nearly all zero: what its rows tell is about what the prior says against it."""
    found = run_all_steps(Case(features=2), 20.0)
    population = Population(COUNT, MEAN, COVARIANCE, TAILS, least=np.array([0.0, -1.0]))
    p = expit(FLAG @ THETA)
    information = 0.25 * COUNT * (population.second_moments - SHARE * np.outer(FLAG, FLAG))
    information += COUNT * SHARE * p * (1 - p) * np.outer(FLAG, FLAG) + np.eye(3)
    return replace(found, population=population, theta=THETA, information=information)


def _at_noise(state: State, sigma: float) -> State:
    return replace(state, setup=replace(state.setup, schedule=replace(state.setup.schedule, sigma=sigma)))


def _length(state: State, within: Metric) -> float:
    """Of the longest score of a row of the flag."""
    return float((1 - expit(FLAG @ state.theta)) * np.linalg.norm(within.whitening @ FLAG))


@pytest.mark.parametrize("known", [True, False])
@pytest.mark.parametrize("sigma", [0.1, 1.0, 20.0])
def test_it_is_as_wide_as_costs_least(state: State, known: bool, sigma: float) -> None:
    """Of all widths: their noise, and the pull that what is restored is wrong by, of rows half as long again."""
    if not known:
        tails = replace(TAILS, share=np.array([0.4, 0.0]), perhaps=np.array([DISTANCE, 0.0]))
        state = replace(state, population=replace(state.population, tails=tails))
    within, widths = metric(state.information), np.geomspace(1, 100, 20_001)
    along = within.whitening @ FLAG
    pull = float(along @ within.whitening @ -state.theta) / np.linalg.norm(along)  # the prior is standard normal
    wrong = ((0.2 if known else 1.0) * pull) ** 2
    lost = np.maximum(1 - widths / (1.5 * _length(state, within) / BOUND), 0)
    best = widths[np.argmin(widths**2 * (sigma * BOUND) ** 2 + wrong * lost**2)]
    found = roomy_for_scores(_at_noise(state, sigma), within, BOUND)
    assert _length(state, within) / _length(state, found) == pytest.approx(best, rel=2e-3)
    assert best > 1 or sigma == 20.0


def test_no_other_direction_is_wider(state: State) -> None:
    within = metric(state.information)
    found = roomy_for_scores(_at_noise(state, 0.1), within, BOUND)
    widths = np.linalg.svd(within.whitening @ found.factor, compute_uv=False)
    assert widths[0] > 2
    np.testing.assert_allclose(widths[1:], 1, atol=1e-9)
    np.testing.assert_allclose(found.whitening @ found.factor, np.eye(3), atol=1e-9)


def test_it_is_at_most_a_thousand_times_as_wide_however_little_noise_there_is(state: State) -> None:
    within = metric(state.information)
    found = roomy_for_scores(_at_noise(state, 1e-9), within, 1e-9)
    widths = np.linalg.svd(within.whitening @ found.factor, compute_uv=False)
    assert widths[0] == pytest.approx(1000, rel=1e-3)


def test_where_nothing_pulls_nothing_changes(state: State) -> None:
    within = metric(state.information)
    found = roomy_for_scores(_at_noise(replace(state, theta=np.zeros(3)), 0.1), within, BOUND)
    np.testing.assert_allclose(found.factor, within.factor, rtol=1e-12)


def test_rows_without_rarer_values_have_the_metric_of_the_belief(state: State, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(score_metric, "disputed", _none)
    within = metric(state.information)
    without = replace(state, population=replace(state.population, tails=None))
    assert roomy_for_scores(without, within, BOUND) is within


@pytest.mark.parametrize("theta", [0.0, 1e-300, 1e9, -1e9])
@pytest.mark.parametrize("deviation", [0.0, 1e-160, 1e154])
@pytest.mark.parametrize("bound", [1e-9, 1e9])
@pytest.mark.parametrize("mean", [0.2, np.nan, np.inf, 1e154, 1e200])
def test_w14_whatever_is_believed_there_is_a_metric(
    state: State, theta: float, deviation: float, bound: float, mean: float
) -> None:
    means = np.array([SHARE, mean, 1.0])
    population = replace(state.population, mean=means, covariance=np.diag([deviation**2, 0.3, 0.0]))
    hostile = replace(state, population=population, theta=np.full(3, theta))
    with np.errstate(all="ignore"):
        found = roomy_for_scores(hostile, metric(state.information), bound)
    assert np.all(np.isfinite(found.factor))
    assert np.all(np.isfinite(found.whitening))


def test_what_is_kept_and_what_noise_costs_are_judged_in_the_metric_of_the_query(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """One that is four times as wide in every direction keeps all of every row, and has sixteen times the noise."""
    case = Case(design="rare", features=4, rows=50_000, slots=50_000)
    plan, kept = case.plan(0.01), list[Metric]()

    def seen(rng: np.random.Generator, state: State, turn: int, asked: Metric, apart: float) -> Kept:
        kept.append(asked)
        return efficiency(rng, state, turn, asked, apart)

    def wider(state: State, within: Metric, bound: float) -> Metric:
        return Metric(4 * within.factor, within.whitening / 4)

    monkeypatch.setattr(rounds, "efficiency", seen)
    first = 1 + [query.kind for query in plan.queries].index("bounded_score_sum")
    plain = compute_after(case, plan, first)
    monkeypatch.setattr(rounds, "roomy_for_scores", wider)
    wide, size = compute_after(case, plan, first), case.problem.model.dimension
    np.testing.assert_allclose(kept[1].factor, 4 * kept[0].factor)
    assert wide.population.tails is not None
    x, y, _ = case.problem.design.encode(case.table().gather(np.arange(case.slots)))
    score = wide.scores[-1]
    np.testing.assert_allclose(score.gradient, x.astype(float).T @ (y - 0.5), rtol=1e-3, atol=0.1)
    assert score.variance >= 16 * plain.scores[-1].variance * 0.6**2
    assert score.shape is not None
    assert np.trace(np.linalg.solve(score.information, score.shape)) == pytest.approx(size)
    np.testing.assert_allclose(score.shape, score.information, rtol=1e-6, atol=1e-6 * np.max(score.information))


def test_noise_is_known_to_be_larger_along_what_is_wider_where_no_column_has_a_tail(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Four times as wide along one of the metric's directions: sixteen times the noise there."""
    case = Case(features=4, rows=50_000, slots=50_000)
    plan, scale = case.plan(0.01), np.array([4.0, 1, 1, 1, 1])
    first = 1 + [query.kind for query in plan.queries].index("bounded_score_sum")
    plain = compute_after(case, plan, first)
    assert plain.population.tails is None
    assert plain.scores[-1].shape is None

    def wider(state: State, within: Metric, bound: float) -> Metric:
        return Metric(within.factor * scale, within.whitening / scale[:, None])

    monkeypatch.setattr(rounds, "roomy_for_scores", wider)
    score = compute_after(case, plan, first).scores[-1]
    assert score.shape is not None
    ratios = np.sort(np.linalg.eigvals(np.linalg.solve(score.information, score.shape)).real)
    np.testing.assert_allclose(ratios / ratios[0], [1, 1, 1, 1, 16], rtol=1e-6)


def _none(state: State) -> Places:
    """No column is disputed."""
    width = len(state.theta)
    return Places(np.zeros((0, width)), np.zeros(0), np.ones((0, 1)))


@pytest.mark.parametrize("noise", [1e-3, 0.1, 1.0, 30.0])
def test_of_several_lengths_the_mean_costs_least(noise: float) -> None:
    """By brute force over a grid of widths."""
    lengths = np.random.default_rng(3).uniform(0.2, 20, (50, 5))
    lost, widths = np.random.default_rng(4).uniform(0, 50, 50), np.geomspace(0.01, 100, 20_001)
    found = _cheapest(lost, noise, lengths)
    for each, row, pull in zip(found, lengths, lost, strict=True):
        missed = np.square(np.maximum(1 - widths / row[:, None], 0)).mean(axis=0)
        assert each == pytest.approx(widths[np.argmin(widths**2 * noise + pull * missed)], rel=2e-3)


def test_below_four_times_the_noise_no_length_is_worth_it() -> None:
    """So that all of it may be left out there; above, rows twice as long as the bound are."""
    lengths = np.geomspace(0.01, 1e4, 4001)[:, None]
    for pull, expected in ((3.99, False), (4.01, True)):
        assert bool(np.any(_cheapest(np.full(len(lengths), pull), 1.0, lengths) > 1)) is expected
