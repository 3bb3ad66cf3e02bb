"""What moments tell of columns where noise may hide a rare level."""

from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest
from scipy.special import expit

from app.inference.protocol import Array64
from app.inference.surrogate import release
from app.inference.surrogate.declared import Declared
from app.inference.surrogate.moments import Moments
from app.inference.surrogate.population import Population
from app.inference.surrogate.state import State
from app.inference.surrogate.told_by_moments import lacking, outweighing
from support.surrogate_tables import Case, ended, plain

ROWS, NOISE = 10_000.0, 20.0
MEAN, VARIANCE = np.array([0.01, 0.3]), np.array([0.01, 0.2])
THETA = np.array([0.5, -1.0, 0.2])
TWINS = [[0.01, 0.0447, 0.0], [0.0447, 0.2, 0.0], [0.0, 0.0, 0.0]]
"""The covariance of columns of which one says nearly all of the other."""


@cache
def _ended() -> State:
    return ended(Case(features=2), 2.0)


def _moments(noise: float = NOISE) -> Moments:
    return Moments(ROWS * np.concatenate(([1.0], MEAN, VARIANCE + MEAN**2)), 1.0, noise, plain(2))


def _state(**changes: Any) -> State:
    """Two columns of those means and variances, and noise; the first may hide a level, and is hardly known."""
    population = Population(ROWS, np.append(MEAN, 1.0), np.diag([*VARIANCE, 0.0]), hiding=np.array([True, False]))
    changed = {
        "rows": ROWS,
        "population": population,
        "theta": THETA,
        "moments": _moments(),
    }
    return replace(_ended(), **{**changed, **changes})


def _information(first: float) -> Array64:
    """As if columns were known by so much, the first one varying with the intercept."""
    return np.array([[first + 40.0, 0.0, 40.0], [0.0, 5.0, 0.0], [40.0, 0.0, 40.0]])


def _told(state: State) -> float:
    """Of the first column, prior included: in units of the way from the mean, rows at 1 tell v each, or at -1 if they
    may as well be there.
    """
    chances = expit(np.array([[1.0, MEAN[1], 1.0], [-1.0, MEAN[1], 1.0]]) @ THETA)
    each = chances * (1 - chances)
    assert state.moments is not None
    seen = VARIANCE[0] - state.moments.noise / ROWS
    either = state.population.mean[0] - np.broadcast_to(state.population.least, 2)[0] > 0.5
    of_row = float(np.mean(each) if either else each[0])
    return ROWS * of_row * float(seen) + float(state.setup.prior.precision(THETA)[0, 0])


@pytest.mark.parametrize(("mean", "least"), [(0.01, -1.0), (-0.9, -1.0), (0.01, 0.0)])
def test_what_is_lacking_is_added_to_what_is_left_to_be_known_of_the_column(mean: float, least: float) -> None:
    """Near a bound, a level's rows are at the other one."""
    state = _state()
    means, bounds = np.array([mean, MEAN[1], 1.0]), np.array([least, -1.0])
    state = replace(state, population=replace(state.population, mean=means, least=bounds))
    found = lacking(replace(state, information=_information(3.0)))
    assert 1 / np.linalg.inv(_information(3.0) + found)[0, 0] == pytest.approx(_told(state), rel=1e-3)
    np.testing.assert_array_equal(found, np.diag([found[0, 0], 0.0, 0.0]))


@pytest.mark.parametrize(
    "state",
    [
        _state(moments=None),
        _state(population=replace(_state().population, hiding=np.array([False, False]))),
        _state(population=replace(_state().population, hiding=False)),
        _state(moments=_moments(noise=ROWS)),
        _state(population=replace(_state().population, covariance=np.array(TWINS))),
    ],
    ids=["not asked", "not hiding", "nobody asked", "noise", "told by another"],
)
def test_nothing_is_added_where_moments_tell_nothing(state: State) -> None:
    np.testing.assert_array_equal(lacking(replace(state, information=_information(3.0))), np.zeros((3, 3)))


def test_nothing_is_added_to_what_is_known_as_well() -> None:
    known = _information(1.01 * _told(_state()))
    np.testing.assert_array_equal(lacking(_state(information=known)), np.zeros((3, 3)))


def test_indicators_that_are_declared_have_the_variance_of_their_share() -> None:
    known = Declared(np.array([0, -1]), np.array([False, False]))
    state = _state()
    assert state.moments is not None
    variance, error = replace(state.moments, known=known).variances(ROWS)
    share = (MEAN[0] + VARIANCE[0] + MEAN[0] ** 2) / 2
    assert variance[0] == pytest.approx(share - share**2, rel=1e-2)
    assert error[0] < error[1] == NOISE / ROWS


@pytest.mark.parametrize("wrong", [np.nan, np.inf, -np.inf, 1e300, -1e300])
@pytest.mark.parametrize("where", ["moments", "rows", "theta"])
def test_hostile_answers_are_borne(where: str, wrong: float) -> None:
    state = _state()
    assert state.moments is not None
    said = np.full_like(state.moments.answer, wrong)
    changes: dict[str, Any] = {
        "moments": {"moments": replace(state.moments, answer=said)},
        "rows": {"rows": wrong},
        "theta": {"theta": np.full(3, wrong)},
    }
    with np.errstate(all="ignore"):
        found = lacking(replace(state, information=_information(3.0), **changes[where]))
    assert np.all(np.isfinite(found))
    assert np.all(np.linalg.eigvalsh(_information(3.0) + found) > 0)


def test_what_was_lacking_is_in_the_belief_and_in_what_it_is_doubted_by(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else noise would count by a population that knows nothing of the column."""
    before, more = replace(_ended(), population_information=None), np.diag([300.0, 0.0, 0.0])
    without = release.ended(np.random.default_rng(0), before)
    monkeypatch.setattr(release, "lacking", lambda _: more)
    found = release.ended(np.random.default_rng(0), before)
    assert found.population_information is not None
    assert without.population_information is not None
    np.testing.assert_allclose(found.information, before.information + more)
    np.testing.assert_allclose(found.population_information, without.population_information + more)
    assert found.fitted is not None
    assert found.fitted.kl < 0.1


def _pulled(theta: float, known: float, variance: float) -> State:
    """A mode there in the first column, where scores balance the prior, with that noise in the information's metric."""
    state = _state(theta=np.array([theta, -1.0, 0.2]), information=np.diag([known + 1.0, 5.0, 40.0]))
    assert state.mode is not None
    return replace(state, mode=replace(state.mode, variance=variance))


@pytest.mark.parametrize(("more", "times"), [(0.0, 1.0), (1.0, 1.5), (2.0, 2.0), (30.0, 2.0)])
def test_scores_that_weigh_more_bring_the_mode_away_from_the_prior(more: float, times: float) -> None:
    """Of a column known by 2 beside the prior's 1: by Newton's step, as if scores weighed up to twice as much."""
    state = _pulled(1.5, 2.0, 1e-9)
    found = outweighing(state, np.diag([more, 0.0, 0.0]))
    np.testing.assert_allclose(found[0], 1.5 + (times - 1) * 1.5 / (3.0 + more), rtol=1e-6)
    np.testing.assert_allclose(found[1:], state.theta[1:])


def test_a_pull_that_may_be_noise_moves_nothing() -> None:
    """Noise in a score is that in the metric, times the root of the information: here as large as the pull."""
    more = np.diag([2.0, 0.0, 0.0])
    np.testing.assert_array_equal(outweighing(_pulled(1.5, 2.0, 0.75), more), _pulled(1.5, 2.0, 0.75).theta)
    half = outweighing(_pulled(1.5, 2.0, 0.375), more)[0]
    assert half == pytest.approx(1.5 + 0.5 * 1.5 / 5.0)


@pytest.mark.parametrize("wrong", [np.nan, np.inf, 1e300, -1e300])
def test_w14_a_mode_is_finite_whatever_scores_said(wrong: float) -> None:
    state = _pulled(1.5, 2.0, 0.1)
    assert state.mode is not None
    hostile = (replace(state, theta=np.full(3, 1e9)), replace(state, mode=replace(state.mode, variance=abs(wrong))))
    with np.errstate(all="ignore"):
        for each in (*hostile, replace(state, mode=None)):
            assert np.all(np.isfinite(outweighing(each, np.diag([abs(wrong), 0.0, 0.0]))))
