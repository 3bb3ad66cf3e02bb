"""Rows far out that neither lengths nor squares would show."""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from app.inference.surrogate.hidden import MOST_HIDDEN, hidden_nats, shows_enough
from app.inference.surrogate.population import Lengths, Population
from app.inference.surrogate.release import released
from app.inference.surrogate.state import State
from tests.inference.surrogate.tables import Case, ended

ROWS, BLOCK = 10_000.0, 0.25
"""The last is what a label tells of its predictor at most."""


@cache
def _ended() -> State:
    return ended(Case(features=3), 2.0)


def _seeming(variance: float, noise: float, mean: float = 0.0) -> State:
    """Three columns of that mean and variance, and that noise in a bin of lengths; squares show all there is."""
    state = _ended()
    population = Population(ROWS, np.append(np.full(3, mean), 1.0), np.diag([variance] * 3 + [0.0]))
    lengths = Lengths(np.zeros(1), 1.0, noise)
    return replace(state, rows=ROWS, population=population, lengths=lengths, scale=1e-3, clip=1.0)


@pytest.mark.parametrize(("mean", "reach"), [(0.0, 1.0), (-0.9, 1.9), (0.5, 1.5)])
def test_rows_at_a_bound_tell_against_what_is_known_of_the_column(mean: float, reach: float) -> None:
    """Three deviations of a bin, each of the squared way to the further bound."""
    noise, variance = 40.0, 0.01
    prior = _ended().setup.prior.precision(_ended().theta)[0, 0]
    ratio = BLOCK * 3 * noise * reach**2 / (BLOCK * ROWS * variance + prior)
    assert hidden_nats(_seeming(variance, noise, mean)) == pytest.approx(0.5 * ratio)


def test_clear_lengths_and_columns_that_vary_hide_little() -> None:
    assert hidden_nats(_seeming(0.3, 500.0)) < 1
    assert hidden_nats(_seeming(1e-6, 0.1)) < 1
    assert hidden_nats(_seeming(1e-6, 500.0)) > MOST_HIDDEN


def test_squares_show_rows_as_well() -> None:
    """As many as ``clip`` for each would add three deviations to a column's sum, beyond what is seen of it."""
    state = _seeming(0.0, 1e6)
    schedule = state.setup.schedule
    noise = schedule.noise_of(schedule.moments_share, state.clip)
    prior = state.setup.prior.precision(state.theta)[0, 0]
    assert hidden_nats(state) == pytest.approx(0.5 * BLOCK * 3 * noise / prior)
    assert hidden_nats(replace(state, lengths=None)) == pytest.approx(hidden_nats(state))


def test_a_column_that_may_hide_more_than_noise_is_not_trusted() -> None:
    state = _seeming(1e-6, 500.0)
    said, hidden = released(state).diagnostics, hidden_nats(state)
    assert released(_ended()).diagnostics["trusted"] is True
    assert said["trusted"] is False
    assert shows_enough(state, hidden / 9)
    assert not shows_enough(state, hidden / 11)
    assert not shows_enough(state, np.nan)
