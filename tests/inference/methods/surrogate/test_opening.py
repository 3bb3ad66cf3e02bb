"""What the first queries find out, by the real oracle."""

from dataclasses import replace

import numpy as np
import pytest

from app.inference.core.model import Array64
from app.inference.core.plan import Mechanism, PlanRequest
from app.inference.methods.surrogate.declared import Declared
from app.inference.methods.surrogate.population import Population
from app.inference.registry import find_method
from support.surrogate_tables import DESIGNS, METHOD, Case, compute_after

SIGMA, ROUNDS = 5.0, 8


def opened(case: Case, openings: int) -> Population:
    """What is believed of the rows after that many queries, by a plan that has so many before its rounds."""
    mechanism = Mechanism(SIGMA, 1.0, openings + 2 * ROUNDS)
    plan = find_method(METHOD).plan(PlanRequest(METHOD, 12, case.spec, {}, mechanism), case.facts)
    return compute_after(case, plan, openings, seed=1).population


def variances(population: Population) -> Array64:
    """Of the columns, the intercept left out."""
    return population.covariance.diagonal()[:-1]


def test_columns_far_from_zero_are_seen_around_their_means() -> None:
    """At 0.7, varying by a thousandth: what is believed is the noise, a hundredth of that around zero."""
    case = Case(design="narrow", features=5, rows=20_000, slots=20_000)
    plainly, around = opened(replace(case, family="poisson-regression"), 3), opened(case, 4)
    assert np.all(variances(around) < 0.01 * variances(plainly))
    np.testing.assert_allclose(around.mean[:-1], 0.7, atol=0.01)
    assert np.all(np.abs(around.mean[:-1] - 0.7) < 5 * np.sqrt(variances(around)))


def test_columns_around_zero_are_seen_as_well_as_ever() -> None:
    case = Case(design="uniform", features=5, rows=20_000, slots=20_000)
    for family, openings in (("poisson-regression", 3), ("logistic-regression", 4), ("logistic-regression", 5)):
        found = opened(replace(case, family=family), openings)
        np.testing.assert_allclose(variances(found), 1 / 3, rtol=0.1)
        assert found.tails is None


def test_columns_of_few_rows_are_found() -> None:
    """One in fifty is at the other bound: seven deviations above, which is all that varies."""
    case = Case(design="rare", features=4, rows=100_000, slots=100_000)
    found = opened(case, 5).tails
    assert found is not None
    assert np.all(found.share > 0.7)
    np.testing.assert_allclose(found.distance, 7, rtol=0.3)
    assert np.all(found.side > 0.5)
    assert opened(case, 4).tails is None
    assert [opened(case, asked).unknown_levels for asked in (4, 5)] == [True, False]
    few = replace(case, rows=10_000, slots=10_000)
    assert [opened(few, asked).unknown_levels for asked in (4, 5)] == [True, True], "noise may hide more of them"


def test_no_rare_level_is_expected_once_columns_were_asked_and_have_none() -> None:
    """Until then any column may be one."""
    case = Case(design="normal", features=4, rows=20_000, slots=20_000)
    assert [opened(case, asked).unknown_levels for asked in (4, 5)] == [True, False]


def test_flags_of_many_rows_are_found_among_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Columns of 0 and 1 in three of ten rows, and of -1 and 1, beside uniform ones, which have no tail."""

    def mixed(rng: np.random.Generator, n: int, k: int) -> Array64:
        rare = rng.random((n, 2)) < 0.3
        return np.column_stack([rare[:, 0] * 1.0, np.where(rare[:, 1], 1.0, -1.0), rng.uniform(-1, 1, (n, k - 2))])

    monkeypatch.setitem(DESIGNS, "mixed", mixed)
    tails = opened(Case(design="mixed", features=5, rows=20_000, slots=20_000), 5).tails
    assert tails is not None
    np.testing.assert_array_equal(tails.share, [1, 1, 0, 0, 0])
    np.testing.assert_allclose(tails.distance[:2], np.sqrt(0.7 / 0.3), rtol=0.1)
    assert not tails.levels.any()


def test_indicators_reach_from_none_to_one_and_numbers_from_bound_to_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    indicators = Declared(np.array([0, 0, -1]), np.zeros(3, dtype=np.bool_))
    monkeypatch.setattr("app.inference.methods.surrogate.setting.declared", lambda design: indicators)
    found = opened(Case(design="uniform", features=3, rows=5_000, slots=5_000), 5)
    np.testing.assert_array_equal(found.least, [0, 0, -1])
