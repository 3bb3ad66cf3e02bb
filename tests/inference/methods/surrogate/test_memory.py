"""What many noised information matrices say together."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from app.inference.core.model import Array64
from app.inference.methods.surrogate.answer import Answer
from app.inference.methods.surrogate.carrying import carried
from app.inference.methods.surrogate.matrices import metric
from app.inference.methods.surrogate.memory import Memory, begun
from app.inference.methods.surrogate.mending import steadied
from app.inference.methods.surrogate.method import DpPsviSurrogate
from app.inference.methods.surrogate.schedule import Schedule
from app.inference.methods.surrogate.state import State
from support.surrogate_tables import Case, Drawn, build, compute_losses

SIZE, ROUNDS, NOISE = 30, 9, 0.4
PRIOR = 0.01 * np.eye(SIZE)
NOWHERE = np.zeros((SIZE, 1))


def _noise(rng: np.random.Generator) -> Array64:
    upper = np.triu(rng.normal(0, NOISE / np.sqrt(2), (SIZE, SIZE)), 1)
    return upper + upper.T + np.diag(rng.normal(0, NOISE, SIZE))


def _matrix(seed: int, low: float, high: float) -> Array64:
    basis = np.linalg.qr(np.random.default_rng(seed).normal(size=(SIZE, SIZE)))[0]
    return np.asarray((basis * np.geomspace(low, high, SIZE)) @ basis.T)


def _told(memory: Memory, truth: Array64, rng: np.random.Generator | None) -> Memory:
    """One more answer in the metric of the belief, as the method asks; without ``rng``, hardly any noise."""
    within = metric(memory.information)
    said = within.whitening @ (truth - PRIOR) @ within.whitening.T
    noised, noise = (said, 1e-9) if rng is None else (said + _noise(rng), NOISE)
    return memory.with_answer(Answer(noised, within, noise, PRIOR, NOWHERE, 1e3))


def _wrong(belief: Array64, truth: Array64) -> float:
    whitening = metric(truth).whitening
    return float(np.linalg.norm(whitening @ belief @ whitening.T - np.eye(SIZE)))


def test_a_first_belief_that_is_right_is_kept_by_the_average() -> None:
    """Noise moves eigenvalues by up to 3. What each shrinkage lets through adds up where one follows the other."""
    wrong, shares = [], []
    for seed in range(6):
        rng, truth = np.random.default_rng(seed), _matrix(seed, 1.0, 40.0)
        memory = begun(truth)
        for _ in range(ROUNDS):
            memory = _told(memory, truth, rng)
        shares.append(memory.share)
        wrong.append([_wrong(each, truth) for each in (memory.followed, memory.averaged, memory.information)])
    followed, averaged, both = np.mean(wrong, axis=0)
    assert averaged < 0.6 * followed
    assert both < 0.75 * followed
    assert np.mean(shares) < 0.35


def test_information_that_has_changed_is_followed() -> None:
    """Answers from elsewhere were carried along wrongly: they spoil the average for longer than what follows."""
    wrong = []
    for seed in range(6):
        rng, before, after = np.random.default_rng(seed), _matrix(seed, 5.0, 9.0), _matrix(seed + 50, 10.0, 400.0)
        memory = begun(before)
        for truth in (before, before, before, after, after, after, after):
            memory = _told(memory, truth, rng)
        wrong.append([_wrong(each, after) for each in (memory.followed, memory.averaged, memory.information)])
    followed, averaged, both = np.mean(wrong, axis=0)
    assert followed < 0.7 * averaged
    assert both < 0.8 * averaged


def test_without_noise_either_belief_is_the_answer() -> None:
    truth = _matrix(1, 0.5, 20.0)
    memory = _told(begun(_matrix(2, 1.0, 3.0)), truth, None)
    for belief in (memory.followed, memory.averaged, memory.information):
        np.testing.assert_allclose(belief, truth, rtol=1e-6, atol=1e-6)


def test_without_evidence_answers_are_followed_and_evidence_fades() -> None:
    truth = _matrix(3, 1.0, 9.0)
    memory = begun(truth)
    assert memory.share == 1.0
    lost = replace(memory, agreement=0.0, certainty=1e4)
    assert lost.share == 0.0
    for _ in range(80):
        lost = _told(replace(lost, followed=truth, averaged=truth), truth, np.random.default_rng(0))
    assert lost.share == pytest.approx(1.0, abs=1e-3)


def test_a_change_of_coordinates_changes_nothing() -> None:
    """Carried, and then told the same in the new coordinates."""
    rng, truth, change = np.random.default_rng(4), _matrix(4, 1.0, 9.0), np.eye(SIZE) + 0.1 * _matrix(5, 0.1, 1.0)
    memory = _told(begun(_matrix(6, 1.0, 9.0)), truth, rng)
    after = change @ PRIOR @ change.T
    carried = memory.carried(change, after, after, 0.0)
    for old, new in ((memory.first, carried.first), (memory.averaged, carried.averaged), (memory.total, carried.total)):
        np.testing.assert_allclose(new, change @ old @ change.T, rtol=1e-9, atol=1e-9)
    assert carried.share == memory.share


def test_answers_from_afar_fade_as_far_as_they_were_clear() -> None:
    memory = replace(begun(PRIOR), total=SIZE * PRIOR, weight=100.0, squared_noise=100.0)
    still, moved = (memory.carried(np.eye(SIZE), PRIOR, PRIOR, by) for by in (0.0, 1.0))
    assert still.weight == 100.0
    assert 1 / moved.weight == pytest.approx(1 / 100 + 1 / SIZE)
    np.testing.assert_allclose(moved.total / moved.weight, memory.total / memory.weight)
    np.testing.assert_allclose(moved.squared_noise / moved.weight**2, memory.squared_noise / memory.weight**2)
    noisy = replace(memory, weight=0.1).carried(np.eye(SIZE), PRIOR, PRIOR, 1.0)
    assert noisy.weight > 0.99 * 0.1


def test_beliefs_carry_at_least_the_priors_part() -> None:
    carried = begun(PRIOR).carried(0.1 * np.eye(SIZE), PRIOR, 7 * PRIOR)
    np.testing.assert_allclose(carried.followed, 7 * PRIOR, rtol=1e-12)


def test_the_plan_alone_says_whether_to_average() -> None:
    """W4, W13: shares and noises are those of declared slots, whatever the noised count of units turns out to be."""
    declared = Schedule(20.0, 1.0, 2000, 10, one_predictor=True, asked_rounds=8)
    assert declared.averages
    for units in (1.0, 300.0, 1e9):
        counted = replace(declared, units=units)
        assert counted.averages
        assert counted.information_share == declared.information_share
        np.testing.assert_array_equal(counted.score_shares, declared.score_shares)


@pytest.mark.parametrize(("sigma", "expected"), [(5.0, True), (20.0, True), (70.0, False)])
@pytest.mark.parametrize("one_predictor", [True, False])
def test_matrices_are_averaged_unless_they_are_useless(sigma: float, *, expected: bool, one_predictor: bool) -> None:
    schedule = Schedule(sigma, 1.0, 2000, 10, one_predictor=one_predictor)
    assert schedule.averages is (expected and one_predictor)


def test_matrices_of_a_search_that_arrives_early_are_averaged_too() -> None:
    """Where one score would lose few nats."""
    quiet = Schedule(0.5, 1.0, 2000, 10, one_predictor=True)
    assert quiet.averages
    assert not quiet.crowded
    assert not replace(quiet, one_predictor=False).averages


def _state() -> State:
    case = Case(features=2)
    state = DpPsviSurrogate().init(case.plan(3.0), case.facts, np.random.default_rng(0))
    return replace(state, memory=begun(state.information))


@pytest.mark.parametrize("fault", ["first", "followed", "averaged", "total", "agreement"])
def test_w14_a_memory_that_is_lost_begins_anew(fault: str) -> None:
    state = _state()
    assert state.memory is not None
    lost: Any = {fault: np.nan if fault == "agreement" else np.full((3, 3), np.nan)}
    moved = replace(state, memory=replace(state.memory, certainty=9.0, **lost))
    found = steadied(moved, state).memory
    assert found is not None
    np.testing.assert_array_equal(found.averaged, state.information)
    assert found.certainty == state.memory.certainty


@pytest.mark.parametrize(("sigma", "begins_anew"), [(5.0, True), (0.3, False), (40.0, False)])
def test_a_long_step_of_a_search_leaves_no_average(sigma: float, *, begins_anew: bool) -> None:
    """Rows that told much now tell little. Near the mode, or where matrices are noise, they are kept."""
    case = Case(features=9, rows=2000, slots=2000)
    state = DpPsviSurrogate().init(case.plan(sigma), case.facts, np.random.default_rng(0))
    assert state.setup.schedule.searching is begins_anew
    memory = replace(begun(state.information), total=state.information, weight=1.0, certainty=9.0)
    step, prior = np.eye(10)[-1], state.setup.prior.precision(state.theta)
    for length, anew in ((0.9, False), (1.1, begins_anew)):
        there = carried(replace(state, memory=memory), state.theta + length * step, prior)
        assert there.memory is not None
        assert (there.memory.weight == 0.0) is anew
        if anew:
            np.testing.assert_array_equal(there.memory.first, there.information)


@pytest.mark.slow
def test_the_average_is_worth_having(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of 20,000 normal rows, D = 20, sigma 18: resolution 0.36. Measured: a quarter fewer nats over eight runs.

    Of scores that are bounded as one, whose noise is smaller.
    """
    case = Case(design="normal", features=19, rows=20_000, slots=20_000)
    monkeypatch.setattr("app.inference.methods.surrogate.slope.STEEP", np.inf)

    def found() -> Array64:
        plan = case.plan(18.0, 24)
        return np.asarray(np.log([compute_losses(case, build(case, plan, Drawn(seed), seed))[0] for seed in range(8)]))

    averaged = found()
    monkeypatch.setattr(Schedule, "averages", False)
    assert np.mean(averaged - found()) < -0.2
