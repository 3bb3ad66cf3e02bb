"""A belief that does not cover the rows gives a reason against intervals."""

import itertools
from dataclasses import asdict, replace
from functools import cache
from typing import Any

import numpy as np
import pytest
from randomgen import ChaCha

from app.inference.core import reasons
from app.inference.core.designs import Polynomial
from app.inference.core.linear_algebra import invert
from app.inference.core.plan import ModelSpec, PriorSpec
from app.inference.core.reasons import Reason
from app.inference.core.release import Grade
from app.inference.methods.surrogate import rounds
from app.inference.methods.surrogate.excess import Excess
from app.inference.methods.surrogate.information import Answers
from app.inference.methods.surrogate.method import OneBelief
from app.inference.methods.surrogate.regression import Score
from app.inference.methods.surrogate.release import assess, fit_final_points, release
from app.inference.methods.surrogate.rows import Rows
from app.inference.methods.surrogate.schedule import Regime
from app.inference.methods.surrogate.state import Result, Search, State
from app.inference.methods.surrogate.tuning import TUNING
from app.inference.private_zone.oracle import ClippedGaussianOracle
from app.inference.private_zone.queries.residuals import ResidualHistogram
from support.surrogate_tables import CURVED, Case, Drawn

_LINEAR = Case("linear-regression", "normal", features=1, rows=2000, slots=2000, noise_scale=1.0)
CERTAIN, DOUBTFUL = 0.0, 0.06


@cache
def _run(family: str, noise_scale: float | None, sigma: float = 0.02, features: int = 1) -> Result:
    """Run a small case with little, seeded noise."""
    return _run_case(Case(family, "normal", features=features, rows=2000, slots=2000, noise_scale=noise_scale), sigma)


def _run_case(case: Case, sigma: float) -> Result:
    plan, rng = case.plan(sigma), np.random.default_rng(case.seed)
    sampling = np.random.Generator(ChaCha(key=case.seed))
    oracle = ClippedGaussianOracle(
        case.problem.model, plan, case.facts, case.table(), noise=Drawn(case.seed), sampling=sampling
    )
    method = OneBelief()
    state: State = method.init(plan, case.facts, rng)
    while not isinstance(state, Result):
        state = method.step(rng, state, oracle)
    return state


def _judge(result: Result, **changes: object) -> tuple[Grade, tuple[Reason, ...]]:
    search: Search = replace(result.search, **changes)  # type: ignore[arg-type]
    with np.errstate(all="ignore"):
        found = release(replace(result, search=search)).reliability
    assert found is not None
    return found.grade, found.reasons


@pytest.mark.slow
def _forget(search: Search, **changes: Any) -> Search:
    """Leave out the last step and the answered matrices."""
    nothing = 0 * search.information
    return replace(search, step=None, answers=Answers(0, nothing, nothing), **changes)


def test_unchanged_run_is_calibrated() -> None:
    assert _judge(_run("linear-regression", None)) == (Grade.CALIBRATED, ())


@pytest.mark.parametrize(("far", "found"), [(1.0, ()), (300.0, (reasons.NOISE_NOT_KNOWN,))])
def test_a_mode_where_a_heavy_tailed_prior_hardly_pulls_is_not_known(far: float, found: tuple[Reason, ...]) -> None:
    result = _run_case(replace(_LINEAR, prior=PriorSpec(scale=0.3 / far, degrees_of_freedom=4.0)), 0.02)
    assert _judge(result) == (Grade.NOT_USABLE if found else Grade.CALIBRATED, found)


@pytest.mark.parametrize(("cut", "restored"), [(TUNING.first_cut, False), (8.0, True)])
def test_only_another_cut_restores_the_excess_of_earlier_scores(
    monkeypatch: pytest.MonkeyPatch, cut: float, *, restored: bool
) -> None:
    """The excess beyond the present cut is added later, from answers. It must not count twice."""
    seen = list[int]()

    def restore(_rows: Rows, scores: tuple[Score, ...], _early: Excess) -> tuple[Score, ...]:
        seen.append(len(scores))
        return scores

    monkeypatch.setattr(rounds, "choose_cut", lambda *_, **__: cut)
    monkeypatch.setattr(rounds, "restore", restore)
    result = _run_case(_LINEAR, 0.02)
    assert bool(seen) == restored
    assert len(result.search.scores) == result.search.setup.schedule.rounds


def test_stated_covariance_is_four_times_the_regressions() -> None:
    result = _run("linear-regression", None)
    mode, search = result.search.mode, _forget(result.search, vague=CERTAIN, count_noise=0.0)
    assert mode is not None
    for surprise, factor in ((0.5, 4), (1.0, 4), (1.5, 6)):
        stated = release(replace(result, search=replace(search, mode=replace(mode, surprise=surprise)))).doubt
        assert stated is not None
        np.testing.assert_allclose(stated[:2, :2], factor * mode.covariance[:2, :2], rtol=1e-9)


def test_doubt_about_information_makes_the_error_larger_than_its_loss() -> None:
    """W16: if information is a part of the belief's, an error is longer by the inverse, and weighs less."""
    search = _forget(_run("linear-regression", None).search, count_noise=0.0)
    certain, doubtful = (assess(replace(search, vague=each)) for each in (CERTAIN, DOUBTFUL))
    part = 1 - 1.5 * np.sqrt(0.12)
    np.testing.assert_allclose(doubtful.covariance, certain.covariance / part**2)
    assert doubtful.nats == pytest.approx(certain.nats / part)
    hopeless = assess(replace(search, vague=10.0))
    np.testing.assert_allclose(hopeless.covariance, certain.covariance / 0.05**2)


def test_doubt_about_the_number_of_rows_makes_the_error_larger() -> None:
    """W16: all information is in proportion to the number of rows."""
    search = _forget(_run("linear-regression", None).search, vague=CERTAIN)
    known, uncertain = (assess(replace(search, count_noise=part * search.counted)) for part in (0.0, 0.4))
    part = 1 - 1.5 * 0.4
    np.testing.assert_allclose(uncertain.covariance, known.covariance / part**2)
    assert uncertain.nats == pytest.approx(known.nats / part)


def test_an_axis_without_information_does_not_move_the_far_mode() -> None:
    """The stated error grows along that axis. The loss far away stays, because the rows have no information there."""
    search = _forget(_run("poisson-regression", None).search, vague=CERTAIN, count_noise=0.0)
    hidden = np.zeros_like(search.information)
    usual, doubtful = assess(search), assess(replace(search, answers=Answers(13, hidden, hidden)))
    assert doubtful.covariance[0, 0] > 10 * usual.covariance[0, 0]
    assert doubtful.far == pytest.approx(usual.far, rel=0.01)


def test_intervals_hold_where_noise_hides_that_information_is_less() -> None:
    """W16: columns are equal, or hardly vary, so real information is less than the belief's."""
    held = []
    for design, seed in itertools.product(("duplicated", "narrow"), range(8)):
        case = Case("linear-regression", design, features=6, rows=2000, slots=2000, seed=seed)
        search = _run_case(case, 8.0).search
        distance = (search.theta - case.exact().mean)[:6]
        held.append(np.mean(np.abs(distance) <= 1.96 * np.sqrt(assess(search).covariance.diagonal()[:6])))
    assert np.mean(held) > 0.95


@pytest.mark.long
def test_intervals_hold_the_best_line_of_a_curved_relation() -> None:
    """W16: bounds weight rows, and with other weights another line is best."""
    for seed in range(4):
        case = Case(design="heavy tails", signal=CURVED, features=3, rows=30_000, slots=30_000, seed=seed)
        search = _run_case(case, 4.0).search
        distance = np.abs(search.theta - case.exact().mean)
        assert np.all(distance <= 3 * np.sqrt(assess(search).covariance.diagonal()))


class _Cubic(Case):
    """A cubic of the first column."""

    @property
    def spec(self) -> ModelSpec:
        """The family's target, and powers of the first column."""
        return replace(super().spec, features=(Polynomial("x0", 3),))


@pytest.mark.parametrize("family", ["linear-regression", "student-t-regression"])
@pytest.mark.parametrize(("design", "hidden"), [("uniform", False), ("heavy tails", True)])
def test_curves_hide_rows_where_one_possible_row_would_decide(family: str, design: str, *, hidden: bool) -> None:
    """W16: few rows are near the far bounds, and a cubic is large there."""
    case = Case(family, design, features=1, rows=1000, slots=1000, noise_scale=1.0)
    grade, found = _judge(_run_case(_Cubic(**asdict(case) | {"prior": case.prior}), 0.02))
    assert (reasons.HIDDEN_ROWS in found) is hidden
    assert not hidden or grade is not Grade.CALIBRATED
    assert reasons.HIDDEN_ROWS not in _judge(_run_case(case, 0.02))[1]


def test_intervals_allow_for_correlations_that_were_not_measured() -> None:
    """W16: the correlations are 0.9, but no matrix is asked, so the belief has none."""
    held = []
    for seed in range(6):
        case = Case(design="correlated", features=20, rows=1000, slots=1000, seed=seed)
        result = _run_case(case, 8.0)
        assert result.search.setup.schedule.regime is Regime.COLUMNS
        stated, distance = release(result).doubt, result.search.theta - case.exact().mean
        assert stated is not None
        held.append(np.mean(np.abs(distance) <= 1.96 * np.sqrt(stated.diagonal())))
    assert np.mean(held) > 0.95


def test_information_of_a_mean_is_certain() -> None:
    assert _run("gaussian-mean", 1.0).search.vague == 0


def test_noise_scale_that_is_hardly_known_is_not_calibrated() -> None:
    """The information about coefficients is inverse to the square of the scale."""
    result = _run("linear-regression", None)
    mode = result.search.mode
    assert mode is not None
    for deviation, known in ((0.1, True), (1.0, False)):
        covariance = np.diag([0.1, 0.1, deviation**2])
        grade, found = _judge(result, mode=replace(mode, covariance=covariance))
        assert (reasons.NOISE_NOT_KNOWN not in found) is known
        assert known or grade is Grade.NOT_USABLE


def test_search_that_a_longest_step_ended_is_not_calibrated() -> None:
    result = _run("linear-regression", None)
    mode = result.search.mode
    assert mode is not None
    expected = (Grade.CENTRE_ONLY, (reasons.NOT_CONVERGED,))
    assert _judge(result, mode=replace(mode, reached=False)) == expected


@pytest.mark.parametrize(("part", "converged"), [(0.1, True), (0.3, False)])
def test_search_that_still_moves_is_not_calibrated(part: float, *, converged: bool) -> None:
    """W16: a last step that is a large part of the stated error shows that the next one would be large, too."""
    result = _run("linear-regression", None)
    mode, information = result.search.mode, result.search.information
    assert mode is not None
    by_noise = 2 * max(1.0, mode.surprise) * float(np.trace(information @ mode.covariance))
    step = np.zeros(len(information))
    step[0] = np.sqrt(2 * by_noise * part / (1 - part) / information[0, 0])
    _, found = _judge(result, step=step)
    assert (reasons.NOT_CONVERGED not in found) is converged


@pytest.mark.parametrize(("part", "usable"), [(0.9, True), (1.1, False)])
def test_noise_above_the_gain_is_not_usable(part: float, *, usable: bool) -> None:
    result = _run("linear-regression", None)
    mode, search = result.search.mode, replace(result.search, step=None)
    assert mode is not None
    covariance = part * assess(search).learned / (2 * len(search.theta)) * invert(search.information)
    grade, found = _judge(replace(result, search=search), mode=replace(mode, covariance=covariance, surprise=1.0))
    assert (reasons.NOISE_DOMINATES not in found) is usable
    assert usable or grade is Grade.NOT_USABLE


@pytest.mark.parametrize(("apart", "differ"), [(0.9, False), (1.1, True), (4.0, True)])
def test_points_far_from_the_belief_differ(apart: float, *, differ: bool) -> None:
    result = _run("linear-regression", None)
    _, found = _judge(replace(result, points=replace(result.points, kl=apart)))
    assert (reasons.POINTS_DIFFER in found) is differ


def test_points_may_differ_by_a_tenth_of_the_noise() -> None:
    result = _run("linear-regression", None)
    mode, search = result.search.mode, result.search
    assert mode is not None
    # Half the trace of information times four times this covariance: 90 nats.
    covariance = 15 * invert(search.information)
    for apart, differ in ((8.0, False), (10.0, True)):
        points = replace(result.points, kl=apart)
        noisy = replace(result, search=replace(search, step=None), points=points)
        _, found = _judge(noisy, mode=replace(mode, covariance=covariance, surprise=1.0))
        assert (reasons.POINTS_DIFFER in found) is differ


@pytest.mark.parametrize(
    ("counted", "noise", "few"), [(25.0, 1.0, False), (20.0, 1.0, True), (25.0, 12.0, False), (25.0, 12.5, True)]
)
def test_a_count_at_its_least_value_is_not_usable(counted: float, noise: float, *, few: bool) -> None:
    """The least count is two deviations of noise, or 1 % of 2,000 slots."""
    grade, found = _judge(_run("linear-regression", None), counted=counted, count_noise=noise)
    assert ((reasons.FEW_ROWS in found), grade is Grade.NOT_USABLE) == (few, few)


@pytest.mark.parametrize("features", [1, 12])
def test_many_columns_do_not_hide_the_count(features: int) -> None:
    """A row's weight in the count is as large as its other values together."""
    search = _run("gaussian-mean", 0.3, features=features).search
    assert search.count_noise == pytest.approx(10 * 0.02, rel=0.01)
    assert search.counted == pytest.approx(2000, rel=0.02)


def test_residuals_wider_than_the_models_are_not_calibrated() -> None:
    result = _run("linear-regression", None)
    residuals = result.search.residuals
    assert residuals is not None
    counts = residuals.counts.copy()
    counts[:, 6] += 50
    expected = (Grade.CENTRE_ONLY, (reasons.WIDE_RESIDUALS,))
    assert _judge(result, residuals=replace(residuals, counts=counts)) == expected


@pytest.mark.parametrize(("shift", "fits"), [(0.0, True), (0.5, False)])
def test_a_histogram_far_from_the_mode_is_no_misfit(shift: float, *, fits: bool) -> None:
    """Residuals at another parameter are long. They show a misfit only if the mode does not explain them."""
    search = _run_case(_LINEAR, 0.02).search
    far, problem = search.theta + np.array([0.0, 0.5]), _LINEAR.problem
    x, y, present = problem.design.encode(_LINEAR.table().gather(np.arange(2000)))
    query = ResidualHistogram(far)
    counts = query.answer(query.sum(problem.model, problem.model.fold(x, y).astype(np.float32), present > 0, 1))
    assert search.residuals is not None
    asked = replace(search.residuals, theta=far, counts=counts.reshape(2, -1))
    moved = replace(search, residuals=asked, theta=search.theta + np.array([0.0, shift]))
    found = release(fit_final_points(np.random.default_rng(0), moved)).reliability
    assert found is not None
    assert (reasons.WIDE_RESIDUALS not in found.reasons) is fits


@pytest.mark.parametrize(("degrees", "fits"), [(2.0, True), (4.0, True), (30.0, False), (100.0, False)])
def test_a_scale_that_bounds_make_small_is_not_calibrated(degrees: float, *, fits: bool) -> None:
    """W16: residuals have 4 degrees of freedom, and long scores of the scale if more are stated."""
    case = Case("student-t-regression", "normal", features=1, rows=10_000, slots=10_000, degrees=degrees)
    result = _run_case(case, 2.0)
    search, found = result.search, release(result).reliability
    error = abs(search.theta - case.exact().mean)[-1] / np.sqrt(assess(search).covariance[-1, -1])
    assert found is not None
    assert (error < 2, reasons.WIDE_RESIDUALS not in found.reasons) == (fits, fits)


@pytest.mark.parametrize(("noise_scale", "fits"), [(0.3, True), (0.1, False)])
def test_columns_wider_than_the_model_states_are_a_misfit(noise_scale: float, *, fits: bool) -> None:
    """The columns' standard deviation is 0.3."""
    grade, found = _judge(_run("gaussian-mean", noise_scale, sigma=0.5))
    assert (reasons.MISFIT not in found) is fits
    assert fits or grade is not Grade.CALIBRATED


@pytest.mark.parametrize(("width", "fits"), [(1.0, True), (2.0, False)])
def test_narrow_columns_do_not_hide_a_wider_one(width: float, *, fits: bool) -> None:
    result = _run("gaussian-mean", 0.3, sigma=0.5, features=4)
    rows = result.search.rows
    narrow = replace(rows, draws=rows.draws * np.array([width, 0.1, 0.1, 0.1]))
    assert (reasons.MISFIT not in _judge(result, rows=narrow)[1]) is fits
