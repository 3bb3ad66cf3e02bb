"""The metric in which rows of rare levels fit a narrow bound."""

from dataclasses import replace

import numpy as np
import pytest

from app.inference.surrogate import rounds
from app.inference.surrogate.matrices import Metric, metric
from app.inference.surrogate.population import Population
from app.inference.surrogate.room import Roomy, roomy
from app.inference.surrogate.state import State
from app.inference.surrogate.tails import Tails
from tests.inference.surrogate.tables import DESIGNS, Case, ended

SHARE = 0.01
TAILS = Tails(np.array([1.0, 0.0]), np.array([9.95, 5.0]), np.array([1.0, 0.0]), np.zeros((1, 2)), clear=True)
MEAN, COVARIANCE = np.array([-1 + 2 * SHARE, 0.2, 1.0]), np.diag([4 * SHARE * (1 - SHARE), 0.3, 0.0])
KNOWN = Population(10_000.0, MEAN, COVARIANCE, TAILS, rare_levels=False)
LEVEL = np.array([1.0, 0.2, 1.0])


@pytest.fixture(scope="module")
def state() -> State:
    """At zero, where every row has the information 1/4, which is believed as it is."""
    found = ended(Case(features=2), 20.0)
    information = 0.25 * KNOWN.count * KNOWN.second_moments + np.eye(3)
    return replace(found, population=KNOWN, theta=np.zeros(3), information=information)


def _length(state: State, within: Metric) -> float:
    """The squared length of what a row of the level adds."""
    return 0.25 * float(np.square(within.whitening @ LEVEL).sum())


def test_rows_of_a_level_fit_the_bound_and_no_other_direction_is_wider(state: State) -> None:
    within = metric(state.information)
    bound = _length(state, within) / 5
    found = roomy(state, within, bound, 0.01)
    assert _length(state, found.metric) == pytest.approx(bound)
    np.testing.assert_allclose(found.metric.factor, within.factor @ found.wider, atol=1e-12)
    np.testing.assert_allclose(found.metric.whitening @ found.metric.factor, np.eye(3), atol=1e-9)
    np.testing.assert_allclose(np.linalg.eigvalsh(found.wider @ found.wider.T), [1, 1, 5], atol=1e-9)


def test_what_fits_already_leaves_the_metric_as_it_is(state: State) -> None:
    within = metric(state.information)
    np.testing.assert_array_equal(roomy(state, within, 1.01 * _length(state, within), 0.01).wider, np.eye(3))


def test_noise_limits_how_wide_it_becomes(state: State) -> None:
    """To half of what is known of the level."""
    within = metric(state.information)
    found = roomy(state, within, _length(state, within) / 50, 0.1)
    np.testing.assert_allclose(np.linalg.eigvalsh(found.wider @ found.wider.T), [1, 1, 5], atol=1e-9)


def test_levels_that_may_be_unseen_leave_it_as_it_is(state: State) -> None:
    """Then bounds are wide instead."""
    within = metric(state.information)
    for population in (replace(KNOWN, rare_levels=True), replace(KNOWN, tails=None)):
        found = roomy(replace(state, population=population), within, 1e-6, 0.01)
        np.testing.assert_array_equal(found.wider, np.eye(3))


@pytest.mark.parametrize("mean", [np.nan, np.inf, 1e200])
@pytest.mark.parametrize("noise", [0.0, 1e-300, 1e300])
def test_w14_whatever_is_believed_there_is_a_metric(state: State, mean: float, noise: float) -> None:
    hostile = replace(KNOWN, mean=np.array([0.0, mean, 1.0]))
    with np.errstate(all="ignore"):
        found = roomy(replace(state, population=hostile), metric(state.information), 1e-300, noise)
    assert np.all(np.isfinite(found.metric.whitening))
    assert np.all(np.isfinite(found.wider))


def test_without_room_levels_fade_from_matrices(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each of twelve columns is 1 in one row of fifty: of the direction that is believed least, most is kept."""
    monkeypatch.setitem(DESIGNS, "flags", lambda rng, n, k: np.where(rng.random((n, k)) < 0.02, 1.0, 0.0))
    case = Case(design="flags", features=12, rows=60_000, slots=60_000)
    assert _least(case) > 0.6

    def narrow(state: State, within: Metric, bound: float, noise: float) -> Roomy:
        return Roomy(within, np.eye(len(state.theta)))

    monkeypatch.setattr(rounds, "roomy", narrow)
    assert _least(case) < 0.3


def _least(case: Case) -> float:
    """The least share of the information in a direction that is believed in the end."""
    inverse = np.linalg.inv(case.exact().factor)
    return float(np.linalg.eigvalsh(inverse @ ended(case, 10.0).information @ inverse.T)[0])
