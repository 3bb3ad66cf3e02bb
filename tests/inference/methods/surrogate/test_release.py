"""Diagnostics and reliability of a surrogate's release."""

from collections.abc import Callable
from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from app.inference.core import reasons
from app.inference.core.release import CALIBRATED, Grade
from app.inference.fitting.fit import Fitted
from app.inference.methods.surrogate.release import MOST_FIT, MOST_SURPRISE, released
from app.inference.methods.surrogate.state import State
from support.surrogate_tables import Case, run_all_steps

CASE = Case(features=3)


@cache
def _ended() -> State:
    return run_all_steps(Case(features=3), 2.0)


def _points() -> Fitted:
    points = _ended().fitted
    assert points is not None
    return points


def _certain(state: State) -> State:
    """Where the population says of the information what is believed, and the last rounds went nowhere."""
    scores = tuple(replace(score, theta=state.theta) for score in state.scores)
    return replace(state, scores=scores, population_information=state.information)


def test_an_ordinary_build_is_trusted_and_names_its_parameters() -> None:
    diagnostics = released(_ended()).diagnostics
    assert diagnostics["trusted"] is True
    assert list(diagnostics["noise_in_posterior_sds"]) == ["x0", "x1", "x2", "intercept"]
    assert diagnostics["represents_every_direction"] is True
    assert diagnostics["total_weight"] == pytest.approx(_points().weight.sum(), rel=1e-3)
    assert diagnostics["estimated_units"] == pytest.approx(CASE.rows, rel=0.05)
    assert 1 <= diagnostics["effective_size"] <= 12
    assert diagnostics["rounds"] == _ended().setup.schedule.rounds


@pytest.mark.parametrize("surprise", [1.01 * MOST_SURPRISE, np.inf, np.nan])
def test_a_search_that_has_not_arrived_is_not_trusted(surprise: float) -> None:
    diagnostics = released(replace(_ended(), surprise=surprise)).diagnostics
    assert diagnostics["trusted"] is False
    assert diagnostics["last_move"] == (float(f"{surprise:.4g}") if np.isfinite(surprise) else -1)


@pytest.mark.parametrize("kl", [1.01 * MOST_FIT, np.inf])
def test_points_that_do_not_represent_are_not_trusted(kl: float) -> None:
    diagnostics = released(replace(_ended(), fitted=replace(_points(), kl=kl))).diagnostics
    assert diagnostics["trusted"] is False
    assert diagnostics["fit_kl"] == (float(f"{kl:.4g}") if np.isfinite(kl) else -1)


def test_what_is_mostly_noise_is_not_trusted() -> None:
    state = _ended()
    assert state.mode is not None
    noisy = replace(state, mode=replace(state.mode, variance=1e5))
    diagnostics = released(noisy).diagnostics
    assert diagnostics["trusted"] is False
    assert diagnostics["noise_kl"] > 1e4


def test_a_mode_at_zero_is_trusted_for_the_information_that_was_learned() -> None:
    """Where that stands out of its noise: balanced targets are no reason to doubt."""
    state = _ended()
    assert state.mode is not None
    still = _certain(replace(state, theta=0 * state.theta, mode=replace(state.mode, variance=2.0)))
    assert released(still).diagnostics["trusted"] is True
    schedule = replace(state.setup.schedule, sigma=100 * state.setup.schedule.sigma)
    drowned = replace(still, setup=replace(state.setup, schedule=schedule))
    assert released(drowned).diagnostics["trusted"] is False


def test_noise_is_stated_in_posterior_standard_deviations() -> None:
    """Noise of variance v in every direction of the metric, none shrunk: ``sqrt(v)`` each, ``D v / 2`` nats.

    Where the population tells a quarter of the information that is believed, twice that.
    """
    state = _ended()
    assert state.mode is not None
    certain = _certain(replace(state, mode=replace(state.mode, variance=0.25, kept=np.eye(4), shape=None)))
    diagnostics = released(certain).diagnostics
    assert diagnostics["noise_kl"] == pytest.approx(4 * 0.25 / 2)
    np.testing.assert_allclose(list(diagnostics["noise_in_posterior_sds"].values()), 0.5, rtol=1e-9)
    doubted = released(replace(certain, population_information=0.25 * state.information)).diagnostics
    assert doubted["noise_kl"] == pytest.approx(4 * 4 * 0.25 / 2)
    np.testing.assert_allclose(list(doubted["noise_in_posterior_sds"].values()), 1.0, rtol=1e-9)


def test_doubt_is_the_covariance_of_the_stated_noise() -> None:
    """Its nats are ``noise_kl``, and its variances match ``noise_in_posterior_sds``."""
    state, found = _ended(), released(_ended())
    assert found.doubt is not None
    assert 0.5 * np.trace(state.information @ found.doubt) == pytest.approx(found.diagnostics["noise_kl"], rel=1e-3)
    sds = np.sqrt(found.doubt.diagonal() / np.linalg.inv(state.information).diagonal())
    np.testing.assert_allclose(sds, list(found.diagnostics["noise_in_posterior_sds"].values()), rtol=1e-3)


def _uncounted(state: State) -> State:
    assert state.moments is not None
    answer = state.moments.answer.copy()
    answer[0] *= 1e-3
    return replace(state, moments=replace(state.moments, answer=answer))


@pytest.mark.parametrize(
    ("spoil", "reason", "grade"),
    [
        (lambda state: replace(state, surprise=7.0), reasons.NOT_CONVERGED, Grade.CENTRE_ONLY),
        (lambda state: replace(state, surprise=np.nan), reasons.NOT_FINITE, Grade.NOT_USABLE),
        (lambda state: replace(state, fitted=replace(_points(), kl=1.5)), reasons.POINTS_DIFFER, Grade.CENTRE_ONLY),
        (_uncounted, reasons.FEW_ROWS, Grade.CENTRE_ONLY),
        (lambda state: replace(state, population_information=None), reasons.NOISE_NOT_KNOWN, Grade.NOT_USABLE),
        (
            lambda state: replace(state, mode=replace(state.mode, variance=1e5)),
            reasons.NOISE_DOMINATES,
            Grade.NOT_USABLE,
        ),
        (
            lambda state: replace(state, mode=replace(state.mode, variance=np.inf)),
            reasons.DOUBT_NOT_STATED,
            Grade.NOT_USABLE,
        ),
    ],
)
def test_each_fault_has_its_reason_and_grade(
    spoil: Callable[[State], State], reason: reasons.Reason, grade: Grade
) -> None:
    assert released(_ended()).reliability == CALIBRATED
    found = released(spoil(_ended()))
    assert found.reliability is not None
    assert reason in found.reliability.reasons
    assert found.reliability.grade is grade
    assert (found.doubt is None) is (reasons.DOUBT_NOT_STATED in found.reliability.reasons)


def test_a_number_that_has_not_converged_is_not_usable() -> None:
    """The information of a number has no bound."""
    state = replace(run_all_steps(Case("linear-regression", features=2), 1.0), surprise=7.0)
    found = released(state).reliability
    assert found is not None
    assert reasons.NOT_CONVERGED in found.reasons
    assert found.grade is Grade.NOT_USABLE


def test_nothing_leaves_before_the_end() -> None:
    with pytest.raises(ValueError, match="last query"):
        released(replace(_ended(), fitted=None))


def test_noise_in_one_direction_is_said_of_its_parameter() -> None:
    """Where bounds left a direction more noise than others; by the covariance of the mode itself."""
    state = _ended()
    assert state.mode is not None
    only = np.zeros((4, 4))
    only[0, 0] = 1e-4
    shape = state.information @ only @ state.information
    found = released(_certain(replace(state, mode=replace(state.mode, shape=shape, variance=2.0)))).diagnostics
    sds = found["noise_in_posterior_sds"]
    expected = np.sqrt(2.0 * 1e-4 / np.linalg.inv(state.information)[0, 0])
    assert sds["x0"] == pytest.approx(expected, rel=0.05)
    assert max(sds["x1"], sds["x2"], sds["intercept"]) < 0.05 * sds["x0"]
