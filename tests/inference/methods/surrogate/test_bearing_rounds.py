"""Rounds that follow a bearing: when they do, when they turn back, and what they win."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from app.inference.core.model import Array64
from app.inference.core.plan import MechanismPlan, PriorSpec
from app.inference.core.priors import NormalPrior
from app.inference.core.query import Oracle, Query
from app.inference.methods.surrogate.bearing_rounds import TESTS, follows
from app.inference.methods.surrogate.first_bearing import conceivable
from app.inference.methods.surrogate.method import DpPsviSurrogate
from app.inference.methods.surrogate.state import State
from app.inference.private_zone.oracle import ClippedGaussianOracle
from app.inference.private_zone.queries import BoundedScoreSum
from app.inference.private_zone.rng import make_sampling_generator
from support.surrogate_tables import Case, Drawn

pytestmark = pytest.mark.slow

SIGMA = 95.0
NORMAL = Case(design="normal", features=20, rows=100_000, slots=100_000, seed=3)


class Listening:
    """The real oracle, and the queries that it was asked; ``garbled`` may replace answers to scores."""

    def __init__(self, oracle: Oracle, garbled: Callable[[Array64], Array64] | None) -> None:
        self._oracle, self._garbled, self.asked = oracle, garbled, list[Query]()

    def ask(self, query: Query) -> Array64:
        self.asked.append(query)
        answer = self._oracle.ask(query)
        return answer if self._garbled is None or not isinstance(query, BoundedScoreSum) else self._garbled(answer)


def _asked(
    case: Case,
    seed: int = 2,
    garbled: Callable[[Array64], Array64] | None = None,
    plan: MechanismPlan | None = None,
) -> tuple[State, list[BoundedScoreSum]]:
    """The last state, and the rounds' scores."""
    chosen, plan, rng = DpPsviSurrogate(), plan or case.plan(SIGMA), np.random.default_rng(seed)
    oracle = Listening(
        ClippedGaussianOracle(
            case.problem.model, plan, case.facts, case.table(), noise=Drawn(seed), sampling=make_sampling_generator()
        ),
        garbled,
    )
    state = chosen.init(plan, case.facts, rng)
    for _ in range(plan.steps):
        state = chosen.step(rng, state, oracle)
    return state, [query for query in oracle.asked if isinstance(query, BoundedScoreSum)]


def _run(case: Case, garbled: Callable[[Array64], Array64] | None = None) -> tuple[State, list[bool]]:
    """The last state, and which scores were asked at a parameter without slopes."""
    state, scores = _asked(case, garbled=garbled)
    return state, [not np.any(query.theta[:-1]) for query in scores]


def test_the_plan_states_the_bound_of_scores_at_zero() -> None:
    """What a certificate says of clipping is what was asked; a plan that asks none there says nothing of it."""
    _, scores = _asked(NORMAL)
    at_zero = {f"C = {query.clip:.4g}" for query in scores if not np.any(query.theta[:-1])}
    assert len(at_zero) == 1
    assert f"without slopes, by the same kind of weights, with {at_zero.pop()}" in NORMAL.plan(SIGMA).clipping
    assert "without slopes" not in NORMAL.plan(30.0).clipping


@pytest.mark.parametrize("scale", [0.1, 0.01])
def test_where_the_prior_pulls_rows_are_asked_where_the_mode_is_believed(scale: float) -> None:
    """The sum points along the likelihood's mode, which is far from the posterior's there."""
    state, at_zero = _run(replace(NORMAL, prior=PriorSpec(scale=scale)))
    assert state.bearing is None
    assert not any(at_zero[1:])


def test_what_a_weak_prior_pulls_is_made_up_for() -> None:
    """The mode of likelihood and prior, which a Newton step from that of the likelihood reaches."""
    state, _ = _run(NORMAL)
    assert state.bearing is not None
    said = state.bearing.found(state.setup.schedule.effective_sigma, 1.0)
    prior = NormalPrior(np.full(21, 0.5))
    moved = said.pulled(prior, state.information + prior.precision(said.theta)).theta
    gradient = state.information @ (said.theta - moved) + prior.gradient(moved)
    assert np.linalg.norm(gradient) < 1e-6 * np.linalg.norm(prior.gradient(moved))


def test_a_plan_of_few_rounds_leaves_no_room_for_tests() -> None:
    few, more = NORMAL.plan(SIGMA, rounds=max(TESTS)), NORMAL.plan(SIGMA, rounds=max(TESTS) + 1)
    assert "without slopes" not in few.clipping
    assert "without slopes" in more.clipping


def test_the_last_round_says_how_far_it_moved() -> None:
    """Beside the noise of what it knows: what was asked without slopes is no reason to be silent."""
    state, _ = _run(NORMAL)
    assert state.mode is not None
    assert 0 < state.surprise < 3
    assert np.linalg.norm(state.step) > 0


def test_isotropic_rows_are_asked_at_zero_but_for_the_tests() -> None:
    state, at_zero = _run(NORMAL)
    assert state.bearing is not None
    assert not state.bearing.doubted
    rounds = state.setup.schedule.rounds
    assert at_zero == [rounds - turn not in TESTS for turn in range(rounds)]
    assert len(state.scores) == 2


@pytest.mark.parametrize("design", ["correlated", "rare", "heavy tails", "duplicated", "zero", "constant"])
def test_other_rows_are_asked_where_the_mode_is_believed(design: str) -> None:
    """By noised answers: from the second round on, slopes are there."""
    state, at_zero = _run(replace(NORMAL, design=design))
    assert state.bearing is None
    assert not any(at_zero[1:])


@pytest.mark.parametrize("factor", [0.0, np.nan, np.inf, 1e300, -1e300, 30.0, -1.0])
def test_whatever_scores_say_a_run_ends_with_a_parameter(factor: float) -> None:
    state, at_zero = _run(NORMAL, garbled=lambda answer: factor * answer)
    assert at_zero[1]  # by a bearing: the first round's score always is
    assert np.all(np.isfinite(state.theta))
    assert state.fitted is not None


def test_declared_facts_and_noise_decide_whether_it_is_conceivable() -> None:
    def setup(case: Case, sigma: float = SIGMA) -> bool:
        return conceivable(DpPsviSurrogate().init(case.plan(sigma), case.facts, np.random.default_rng(0)).setup)

    assert setup(NORMAL)
    assert setup(replace(NORMAL, family="probit-regression"))
    assert not setup(NORMAL, sigma=30.0)
    assert not setup(replace(NORMAL, family="poisson-regression"))
    assert not setup(replace(NORMAL, family="multinomial-logistic"))
    assert not setup(replace(NORMAL, features=5))


def test_what_scores_contradict_is_asked_for_no_longer() -> None:
    state, _ = _run(NORMAL)
    assert state.bearing is not None
    doubted = replace(state, bearing=replace(state.bearing, doubted=True))
    rounds = state.setup.schedule.rounds
    assert any(follows(state, turn) for turn in range(rounds))
    assert not any(follows(doubted, turn) for turn in range(rounds))
    assert not any(follows(replace(state, bearing=None), turn) for turn in range(rounds))
