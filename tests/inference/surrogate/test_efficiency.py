"""What bounded scores keep: against a table of rows, and where beliefs about rows are wrong."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.special import expit

from app.inference.methods.dp_psvi_surrogate import DpPsviSurrogate
from app.inference.oracle import ClippedGaussianOracle
from app.inference.rng import sampling_generator
from app.inference.runner import run
from app.inference.surrogate.efficiency import efficiency, steepness
from app.inference.surrogate.matrices import metric
from app.inference.surrogate.population import Population
from app.inference.surrogate.state import State
from benchmarks.cases import logistic
from benchmarks.measures import divergence, posterior
from benchmarks.runs import Job, plan_of
from benchmarks.unseen import unseen
from tests.inference.surrogate.tables import Case, Drawn, ended

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
    weight = np.minimum(1, state.setup.schedule.score_bound / (np.maximum(p, 1 - p) * lengths))
    each = p * (1 - p) * lengths**2
    return float(weight @ each / each.sum())


def test_it_is_that_of_rows_where_beliefs_are_right() -> None:
    state = _state(RIGHT)
    assert steepness(state, LAST) == 1.0
    expected = _of_rows(state)
    assert 0.6 < expected < 0.97
    assert efficiency(np.random.default_rng(1), state, LAST) == pytest.approx(expected, rel=0.05)


@pytest.mark.parametrize("factor", [0.3, 4.0, 8.0])
def test_where_columns_seem_wider_or_narrower_the_intercepts_information_tells(
    factor: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    state = _state(_wider(factor))
    expected, rng = _of_rows(state), np.random.default_rng(1)
    assert (steepness(state, LAST) < 1) == (factor > 1)
    told = efficiency(rng, state, LAST)
    monkeypatch.setattr("app.inference.surrogate.efficiency.steepness", lambda state, turn: 1.0)
    assert abs(told - expected) < 0.6 * abs(efficiency(rng, state, LAST) - expected)


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
    assert steepness(ended(Case(family, features=3), 30.0), 2) == 1.0


def test_it_wins_what_it_is_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """A third of the nats at least where bounds are far wider than the data, over a few runs of the same noise."""
    case = logistic("wide", unseen("bounds far wider than data", seed=5), bound=1.0)
    plan = plan_of(Job(case, "dp-psvi-surrogate", 50, 0, epsilon=0.1))

    def nats(seed: int) -> float:
        rng = np.random.default_rng(seed)
        oracle = ClippedGaussianOracle(
            case.problem.model, plan, case.facts, case.source, noise=Drawn(seed), sampling=sampling_generator()
        )
        assert case.exact is not None
        return divergence(posterior(case, run(plan, case.facts, oracle, rng, lambda _: None)), case.exact)

    scaled = np.array([nats(seed) for seed in range(5)])
    monkeypatch.setattr("app.inference.surrogate.efficiency.steepness", lambda state, turn: 1.0)
    assert np.exp(np.log(scaled / [nats(seed) for seed in range(5)]).mean()) < 0.67
