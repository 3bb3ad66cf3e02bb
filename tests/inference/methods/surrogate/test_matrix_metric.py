"""The metric in which rows of rare levels fit a narrow bound."""

from dataclasses import replace

import numpy as np
import pytest

from app.inference.methods.surrogate import rounds
from app.inference.methods.surrogate.answer import Answer
from app.inference.methods.surrogate.matrices import Metric, metric
from app.inference.methods.surrogate.matrix_metric import Roomy, roomy
from app.inference.methods.surrogate.population import Population
from app.inference.methods.surrogate.state import State
from app.inference.methods.surrogate.tails import Tails
from support.surrogate_tables import DESIGNS, Case, compute_after, make_state_at_zero, run_all_steps

SHARE, PRIOR = 0.01, 0.1 * np.eye(3)
TAILS = Tails(np.array([1.0, 0.0]), np.array([9.95, 5.0]), np.array([1.0, 0.0]), np.zeros((1, 2)), clear=True)
MEAN, COVARIANCE = np.array([-1 + 2 * SHARE, 0.2, 1.0]), np.diag([4 * SHARE * (1 - SHARE), 0.3, 0.0])
KNOWN = Population(10_000.0, MEAN, COVARIANCE, TAILS, unknown_levels=False)
LEVEL = np.array([1.0, 0.2, 1.0])


@pytest.fixture(scope="module")
def state() -> State:
    return make_state_at_zero(KNOWN)


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
    for population in (replace(KNOWN, unknown_levels=True), replace(KNOWN, tails=None)):
        found = roomy(replace(state, population=population), within, 1e-6, 0.01)
        np.testing.assert_array_equal(found.wider, np.eye(3))


@pytest.mark.parametrize("known", [False, True])
def test_levels_that_noise_hides_have_as_much_room_as_costs_little(state: State, known: bool) -> None:
    """A fifth of what is known of each, beside known levels or alone: most columns that may be one are none."""
    within, unseen = metric(state.information), np.array([not known, known])
    population = replace(KNOWN, tails=TAILS if known else None, unknown_levels=True, unseen=unseen)
    found = roomy(replace(state, population=population), within, 1e-3 * _length(state, within), 0.1)
    before, after = (np.square(population.level_rows @ each.whitening.T).sum(axis=1) for each in (within, found.metric))
    assert len(before) == 1 + known
    assert after[-1] == pytest.approx(before[-1] / 2)
    assert np.all(after <= before / 2 * (1 + 1e-9))
    assert np.linalg.eigvalsh(found.wider @ found.wider.T)[0] == pytest.approx(1.0)


def test_labels_that_seem_certain_leave_some_room(state: State) -> None:
    """The parameter may be wrong; without, rows of a level that seems certain would be as short as they say."""
    within, certain = metric(state.information), replace(state, theta=np.array([60.0, 0.0, 0.0]))
    found = roomy(certain, within, 0.02 / 0.25 * _length(state, within) / 4, 0.01).wider
    np.testing.assert_allclose(np.linalg.eigvalsh(found @ found.T), [1, 1, 4], atol=1e-9)


@pytest.mark.parametrize("mean", [np.nan, np.inf, 1e4, 1e153, 1e154, 1e200])
@pytest.mark.parametrize("noise", [0.0, 1e-300, 1e300])
def test_w14_whatever_is_believed_there_is_a_metric(state: State, mean: float, noise: float) -> None:
    hostile = replace(KNOWN, mean=np.array([0.0, mean, 1.0]))
    with np.errstate(all="ignore"):
        found = roomy(replace(state, population=hostile), metric(state.information), 1e-300, noise)
    assert np.all(np.isfinite(found.metric.whitening))
    assert np.all(np.isfinite(found.wider))


def test_what_is_answered_in_a_wider_metric_is_believed_as_in_any_other() -> None:
    """A level whose information is a hundredth in it is no lower for that than a belief's floor lets it be."""
    rng, belief = np.random.default_rng(0), np.eye(3) + PRIOR
    wider = np.linalg.cholesky(np.eye(3) + 24 * np.outer([0.6, 0.8, 0.0], [0.6, 0.8, 0.0]))
    within = metric(belief)
    turned = Metric(within.factor @ wider, np.asarray(np.linalg.solve(wider, within.whitening)))
    truth = np.diag([1.5, 0.8, 3.0])
    upper = 1e-4 * rng.standard_normal((3, 3))
    said = turned.whitening @ truth @ turned.whitening.T + upper + upper.T
    answer = Answer(said, turned, 1e-4, PRIOR, np.zeros((3, 1)), 3.0, wider)
    np.testing.assert_allclose(answer.corrects(belief), truth + PRIOR, atol=0.05)
    np.testing.assert_allclose(answer.seen_in(within).corrects(belief), truth + PRIOR, atol=0.05)


def test_a_level_without_information_falls_to_the_floor_of_a_belief() -> None:
    """A tenth of what was believed, as in the belief's own metric, and likewise once it is seen in that."""
    belief, wider = np.eye(3) + PRIOR, np.diag([5.0, 1.0, 1.0])
    within = metric(belief)
    turned = Metric(within.factor @ wider, np.asarray(np.linalg.solve(wider, within.whitening)))
    truth = np.diag([0.0, 1.0, 1.0])
    answer = Answer(turned.whitening @ truth @ turned.whitening.T, turned, 1e-4, PRIOR, np.zeros((3, 1)), 10.0, wider)
    for found in (answer, answer.seen_in(within)):
        assert found.corrects(belief)[0, 0] == pytest.approx(0.1 * belief[0, 0] + PRIOR[0, 0], rel=0.01)


def test_only_where_noise_may_hide_much_is_there_room_for_what_it_hides(monkeypatch: pytest.MonkeyPatch) -> None:
    """By declared facts, whatever is hidden."""
    case = Case(design="rare", features=4, rows=3_000, slots=3_000)
    plan = case.plan(5.0)
    openings = len([query for query in plan.queries if query.kind not in {"information_sum", "bounded_score_sum"}])

    def unseen() -> bool:
        return bool(np.any(compute_after(case, plan, openings).population.unseen))

    assert unseen()
    monkeypatch.setattr("app.inference.methods.surrogate.schedule.HIDING", np.inf)
    assert not unseen()
    assert np.any(compute_after(case, plan, openings).population.hiding)


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
    return float(np.linalg.eigvalsh(inverse @ run_all_steps(case, 10.0).information @ inverse.T)[0])
