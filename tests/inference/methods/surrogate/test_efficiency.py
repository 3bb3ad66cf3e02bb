"""What bounded scores keep: against a table of rows, and where beliefs about rows are wrong."""

from dataclasses import replace

import numpy as np
import pytest
import scipy
from scipy.special import expit

from app.inference.core.model import Array64
from app.inference.methods.surrogate.contribution_bounds import score_bound
from app.inference.methods.surrogate.efficiency import efficiency, steepness
from app.inference.methods.surrogate.matrices import Metric, metric
from app.inference.methods.surrogate.matrix_metric import widened
from app.inference.methods.surrogate.method import DpPsviSurrogate
from app.inference.methods.surrogate.population import Population
from app.inference.methods.surrogate.state import State
from app.inference.methods.surrogate.winsorised import Winsorised
from support.surrogate_tables import Case, compute_tail_sums, run_all_steps

CASE = Case(features=5, rows=20_000, slots=20_000)
LAST = 12
SIGMA = 20.0
COVARIANCE = np.pad(np.diag([0.05, 0.1, 0.2, 0.4, 0.1]), (0, 1))
RIGHT = Population(20_000.0, np.array([0.2, -0.1, 0.0, 0.3, 0.1, 1.0]), COVARIANCE)
THETA = np.array([2.0, -1.5, 1.0, 1.0, -2.0, 0.3])


def _state(believed: Population, sigma: float = SIGMA, case: Case = CASE) -> State:
    """The right information at :data:`THETA`, beside a belief about rows."""
    start = DpPsviSurrogate().init(case.plan(sigma), case.facts, np.random.default_rng(0))
    assert start.setup.curvature is not None
    information = start.setup.curvature.information(RIGHT, THETA) + np.eye(6)
    return replace(start, population=believed, theta=THETA, information=information)


def _wider(factor: float) -> Population:
    return replace(RIGHT, covariance=factor * COVARIANCE)


def _of_rows(state: State) -> float:
    """A second derivation: weights and informations of single rows, in the right metric."""
    x = RIGHT.rows(np.random.default_rng(5), 100_000)
    p = expit(x @ THETA)
    lengths = np.linalg.norm(x @ metric(state.information).whitening.T, axis=1)
    weight = np.minimum(1, score_bound(state.setup.schedule) / (np.maximum(p, 1 - p) * lengths))
    each = p * (1 - p) * lengths**2
    return float(weight @ each / each.sum())


def test_it_is_that_of_rows_where_beliefs_are_right() -> None:
    state = _state(RIGHT)
    assert steepness(state, LAST) == 1.0
    expected = _of_rows(state)
    assert 0.6 < expected < 0.97
    assert efficiency(np.random.default_rng(1), state, LAST, metric(state.information)).share == pytest.approx(
        expected, rel=0.05
    )


@pytest.mark.parametrize("factor", [0.3, 4.0, 8.0])
def test_where_columns_seem_wider_or_narrower_the_intercepts_information_tells(
    factor: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    state = _state(_wider(factor))
    expected, rng = _of_rows(state), np.random.default_rng(1)
    assert (steepness(state, LAST) < 1) == (factor > 1)
    told = efficiency(rng, state, LAST, metric(state.information)).share
    monkeypatch.setattr("app.inference.methods.surrogate.efficiency.steepness", lambda state, turn: 1.0)
    assert abs(told - expected) < 0.6 * abs(efficiency(rng, state, LAST, metric(state.information)).share - expected)


def test_what_is_mostly_noise_tells_nothing() -> None:
    assert steepness(_state(_wider(4.0), sigma=3000.0), LAST) > 0.8 > steepness(_state(_wider(4.0)), LAST)


@pytest.mark.parametrize("level", [-1.0, 0.0, 1e-300, 1e300])
def test_whatever_the_information_is_there_is_a_scale(level: float) -> None:
    state = _state(RIGHT)
    information = state.information.copy()
    information[-1, -1] = level
    assert 0.05 <= steepness(replace(state, information=information), LAST) <= 2.0


@pytest.mark.parametrize("family", ["linear-regression", "multinomial-logistic", "gaussian-mean"])
def test_where_information_does_not_follow_a_predictor_nothing_is_scaled(family: str) -> None:
    assert steepness(run_all_steps(Case(family, features=3), 30.0), 2) == 1.0


def _with_rare_level(sigma: float) -> tuple[State, Array64]:
    """A level of one row in a hundred whose label is nearly certain, as believed rightly; and the rows."""
    rng, n = np.random.default_rng(3), 100_000
    level = (rng.random(n) < 0.01) * 1.0
    rows = np.column_stack([level, 0.3 * rng.standard_normal((n, 4)), np.ones(n)])
    standardised = (rows[:, :5] - rows[:, :5].mean(axis=0)) / rows[:, :5].std(axis=0)
    tails = Winsorised(compute_tail_sums(standardised), n, 0.0, np.zeros(5)).tails(rng)
    population = Population(n, rows.mean(axis=0), np.cov(rows.T), tails)
    theta = np.array([-4.0, 1.5, -1.0, 0.5, 1.0, -0.3])
    p = expit(rows @ theta)
    case = replace(CASE, rows=n, slots=n)
    start = DpPsviSurrogate().init(case.plan(sigma), case.facts, rng)
    information = (rows * (p * (1 - p))[:, None]).T @ rows + np.eye(6)
    return replace(start, population=population, theta=theta, information=information), rows


def _least_kept(rows: Array64, state: State, asked: Metric) -> float:
    """Of all directions, by the rows themselves."""
    p = expit(rows @ state.theta)
    lengths = np.linalg.norm(rows @ asked.whitening.T, axis=1)
    weight = np.minimum(1, score_bound(state.setup.schedule) / (np.maximum(p, 1 - p) * lengths))
    full, left = ((rows * (p * (1 - p) * each)[:, None]).T @ rows for each in (np.ones(len(p)), weight))
    return float(scipy.linalg.eigh(left, full, eigvals_only=True)[0])


def test_a_rare_level_keeps_less_than_all_others_do() -> None:
    state, rows = _with_rare_level(2.0)
    asked = metric(state.information)
    expected, kept = _least_kept(rows, state, asked), efficiency(np.random.default_rng(1), state, LAST, asked)
    grown = np.sort(np.linalg.eigvals(kept.back).real)
    assert 0.1 < expected < 0.3
    assert 1 / grown[-1] == pytest.approx(expected, rel=0.3)
    assert grown[-2] < 1.1
    assert kept.share == pytest.approx((5 + expected) / 6, abs=0.05)


@pytest.mark.parametrize("factor", [0.7, 2.5])
def test_rows_of_a_level_are_as_long_as_what_is_believed_says(factor: float) -> None:
    """Whatever drawn rows have of its information: the belief is what the query's metric is made of."""
    state, rows = _with_rare_level(0.5)
    scale = np.diag([np.sqrt(factor), *np.ones(5)])
    state = replace(state, information=scale @ state.information @ scale)
    asked = metric(state.information)
    expected, kept = _least_kept(rows, state, asked), efficiency(np.random.default_rng(1), state, LAST, asked)
    assert 0.05 < expected < 0.6
    assert 1 / np.linalg.eigvals(kept.back).real.max() == pytest.approx(expected, rel=0.15)


@pytest.mark.parametrize("times", [3, 15, 40])
def test_what_a_wider_metric_keeps_is_not_restored(times: float) -> None:
    """Along a level whose rows are so many times shorter in it."""
    state, rows = _with_rare_level(2.0)
    believed = metric(state.information)
    level = np.array([[1.0, 0.0, 0.0, 0.0, 0.0, 1.0]]) @ believed.whitening.T
    asked = widened(believed, level, np.vecdot(level, level) / times**2).metric
    expected, kept = _least_kept(rows, state, asked), efficiency(np.random.default_rng(1), state, LAST, asked)
    assert expected > 2 * _least_kept(rows, state, believed)
    assert 1 / np.linalg.eigvals(kept.back).real.max() == pytest.approx(expected, rel=0.3 if times == 3 else 0.05)


def test_noise_is_not_grown_beyond_what_it_may_cost() -> None:
    """Little early, where a score is mostly noise, and nothing more than ever where all of them are."""
    early, late = (_most_grown(15.0, turn) for turn in (0, LAST))
    assert late > 2 * early
    assert _most_grown(200.0, LAST) == pytest.approx(1 / 0.6)


def _most_grown(sigma: float, turn: int) -> float:
    state, _ = _with_rare_level(sigma)
    back = efficiency(np.random.default_rng(1), state, turn, metric(state.information)).back
    return float(np.max(np.linalg.eigvals(back).real))
