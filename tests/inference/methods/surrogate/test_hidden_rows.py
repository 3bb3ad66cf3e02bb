"""Rows far out that neither lengths nor squares would show."""

from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest

from app.inference.core.plan import PriorSpec
from app.inference.methods.surrogate.hidden_rows import MOST_HIDDEN, hidden_nats, shows_enough
from app.inference.methods.surrogate.population import Lengths, Population
from app.inference.methods.surrogate.release import released
from app.inference.methods.surrogate.state import State
from support.surrogate_tables import Case, Drawn, build, run_all_steps

ROWS, DEVIATIONS = 10_000.0, 1.64
OF_LABEL = {"logistic-regression": 0.25, "multinomial-logistic": 2 / 9}
"""What a label tells of its predictor at zero."""
PRIOR = PriorSpec(1.0, {"x1": 0.1})


@cache
def _ended(family: str = "logistic-regression") -> State:
    return run_all_steps(Case(family, features=3, prior=PRIOR), 2.0)


def _seeming(variance: float, noise: float, mean: float = 0.0, **changes: Any) -> State:
    """Three columns of that mean and variance, and empty bins of lengths with that noise; squares show all there is."""
    population = Population(ROWS, np.append(np.full(3, mean), 1.0), np.diag([variance] * 3 + [0.0]))
    lengths = Lengths(np.zeros(16), 12.0, noise)
    changed = {"rows": ROWS, "population": population, "lengths": lengths, "scale": 1e-4, "clip": 1.0, "centre": mean}
    return replace(_ended(), **{**changed, **changes})


def _ratio(rows: float, reach: float, variance: float, family: str = "logistic-regression") -> float:
    """What so many rows tell over what is known of a column whose prior has a deviation of 1."""
    state = _ended(family)
    prior = float(state.setup.prior.precision(state.theta)[0, 0])
    return rows * reach**2 / (ROWS * variance + prior / OF_LABEL[family])


@pytest.mark.parametrize(("mean", "reach"), [(0.0, 1.0), (-0.9, 1.9), (0.5, 1.5)])
def test_rows_at_a_bound_tell_against_what_is_known_of_the_column(mean: float, reach: float) -> None:
    """Each the squared way to the further bound; the column known least is the worst."""
    found = hidden_nats(_seeming(0.01, 40.0, mean))
    assert found == pytest.approx(0.5 * _ratio(DEVIATIONS * 40.0, reach, 0.01))


def test_each_of_several_predictors_is_as_unknown() -> None:
    state = _ended("multinomial-logistic")
    assert state.setup.model.predictors == 2
    seeming = _seeming(0.01, 40.0)
    state = replace(state, **{name: getattr(seeming, name) for name in ("rows", "population", "lengths", "scale")})
    state = replace(state, clip=1.0, centre=0.0)
    assert hidden_nats(state) == pytest.approx(_ratio(DEVIATIONS * 40.0, 1.0, 0.01, "multinomial-logistic"))


def test_indicators_reach_from_none_to_one() -> None:
    state = _seeming(0.01, 40.0, 0.05)
    known = replace(state.setup.known, group=np.array([0, 0, 1]))
    assert np.all(known.indicators)
    state = replace(state, setup=replace(state.setup, known=known), population=replace(state.population, least=0.0))
    assert hidden_nats(state) == pytest.approx(0.5 * _ratio(DEVIATIONS * 40.0, 0.95, 0.01))


def test_a_bin_that_holds_rows_leaves_room_for_them_and_an_empty_one_for_its_noise() -> None:
    """Rows at a bound have a squared length of 1 and what other columns have: of 12, in the fourth bin, or longer."""
    for place, more in ((3, 30.0), (2, 30.0), (1, 0.0), (5, 0.0)):
        state = _seeming(0.01, 40.0)
        assert state.lengths is not None
        state.lengths.counts[place] = 30.0
        expected = 0.5 * _ratio(DEVIATIONS * 40.0 + more, 1.0, 0.01)
        assert hidden_nats(state) == pytest.approx(expected)


def test_squares_show_rows_as_well() -> None:
    """As many as would be seen in a column's sum, to which each adds no more than the clip."""
    state = _seeming(0.001, 1e9, scale=0.1, clip=3.0)
    schedule = state.setup.schedule
    rows = (ROWS * 0.001 / 0.1**2 + DEVIATIONS * schedule.noise_of(schedule.moments_share, 3.0)) / 3.0
    assert hidden_nats(state) == pytest.approx(0.5 * _ratio(rows, 1.0, 0.001))
    assert hidden_nats(replace(state, lengths=None)) == pytest.approx(hidden_nats(state))


def test_all_rows_of_a_unit_may_be_hidden() -> None:
    state = _seeming(0.01, 40.0)
    people = replace(state, setup=replace(state.setup, rows_per_unit=4))
    assert hidden_nats(people) == pytest.approx(4 * hidden_nats(state))


def test_little_is_hidden_by_clear_answers_and_in_columns_that_vary() -> None:
    assert hidden_nats(_seeming(0.3, 500.0)) < 1
    assert hidden_nats(_seeming(1e-6, 0.1)) < 1
    assert hidden_nats(_seeming(-1e-6, 0.1)) < 1
    assert hidden_nats(_seeming(1e-6, 2000.0)) > 2 * MOST_HIDDEN


def test_what_may_be_hidden_is_held_against_noise() -> None:
    state = _seeming(1e-6, 2000.0)
    hidden = hidden_nats(state)
    assert shows_enough(state, hidden / 4.9)
    assert not shows_enough(state, hidden / 5.1)
    assert not shows_enough(state, np.nan)
    for times, enough in ((0.99, True), (1.01, False)):
        noise = MOST_HIDDEN / hidden_nats(_seeming(0.1, 40.0)) * 40.0 * times
        assert shows_enough(_seeming(0.1, noise, scale=1e-9), 0.0) is enough


def test_releases_are_doubted_for_it() -> None:
    state = _seeming(1e-6, 2000.0)
    assert released(_ended()).diagnostics["trusted"] is True
    assert released(state).diagnostics["trusted"] is False
    for family in ("logistic-regression", "poisson-regression"):
        case = Case(family, "constant", features=2, rows=20_000, slots=20_000)
        assert build(case, case.plan(20.0), Drawn(0)).diagnostics["trusted"] is False
        assert build(case, case.plan(0.3), Drawn(0)).diagnostics["trusted"] is True


def test_without_an_intercept_no_lengths_tell_of_levels() -> None:
    """The mean of numbers, of which every row tells as much."""
    mean = Case("gaussian-mean", features=3)
    assert build(mean, mean.plan(1.0), Drawn(0)).diagnostics["trusted"] is True
