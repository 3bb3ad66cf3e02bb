"""The mode by scores, on beliefs that are exact."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import root

from app.inference.core.model import Array32, Array64
from app.inference.methods.surrogate.regression import Score, find_mode, shrink
from app.inference.methods.surrogate.rows import Rows, draw_noise
from app.inference.methods.surrogate.scores import make_query
from app.inference.methods.surrogate.tuning import TUNING
from support.beliefs import COUNT, draw_rows, make_case_frame
from support.surrogate_tables import Case


def _population_score(case: Case, rows: Rows, theta: Array64, truth: Array64) -> Array64:
    """The mean score of rows whose labels follow the model at ``truth``."""
    x = rows.draws
    if case.family == "linear-regression":
        return np.asarray(rows.information(theta) @ (truth - theta))
    means = [1 / (1 + np.exp(-x @ at)) for at in (truth, theta)]
    return np.asarray(COUNT / len(x) * x.T @ (means[0] - means[1]))


@pytest.mark.parametrize("family", ["logistic-regression", "linear-regression"])
def test_noiseless_scores_lead_to_the_mode(family: str) -> None:
    """The limit is the root of the score less the prior's pull."""
    case = Case(family, features=3, noise_scale=2.0)
    rows, prior = draw_rows(case), case.problem.prior
    truth = np.array([0.4, -0.6, 0.3, 0.2])

    def slope(theta: Array64) -> Array64:
        return _population_score(case, rows, theta, truth) - prior.precision(theta) @ theta

    exact = root(slope, truth, tol=1e-12).x
    theta, scores = np.zeros(4), tuple[Score, ...]()
    for _ in range(6):
        frame = make_case_frame(case, rows, theta)
        noise = 1e-8 * frame.back @ frame.back.T
        score = Score(theta, _population_score(case, rows, theta, truth), noise, np.ones(len(rows.draws)))
        scores = (*scores, score)
        mode = find_mode(rows, frame, theta, prior, scores)
        theta = mode.mean
    error = theta - exact
    assert error @ rows.information(exact) @ error < 1e-2
    assert np.linalg.eigvalsh(mode.covariance)[0] >= -1e-12


@pytest.mark.parametrize("family", ["linear-regression", "student-t-regression"])
def test_unknown_scale_is_found_although_coefficients_are_far(family: str) -> None:
    """Squares of residuals contain the distance of the coefficients."""
    case = Case(family, features=3)
    model, prior = case.problem.model, case.problem.prior
    rows = replace(draw_rows(case), noise=draw_noise(np.random.default_rng(1), case.problem.model, 600))
    truth = np.array([0.5, -0.8, 0.4, 0.2, -1.0])
    metric, cut = np.diag([1.0, 1, 1, 1, 0.5]), 2.0 if family == "linear-regression" else None
    theta, scores = np.zeros(5), tuple[Score, ...]()
    for _ in range(8):
        asked, frame = theta, make_case_frame(case, rows, theta)

        def apply_bound(folded: Array32, asked: Array64 = asked) -> Array64:
            bounded = make_query(asked, metric, 15.0, cut).bound_rows(model, folded)
            return np.asarray(bounded @ np.linalg.inv(metric).T)

        gradient = COUNT * apply_bound(rows.simulate(truth)).mean(axis=0)
        noise = 1e-4 * frame.back @ frame.back.T
        scores = (*scores, Score(asked, gradient, noise, np.full(600, 0.7), bound=apply_bound))
        theta = find_mode(rows, frame, asked, prior, scores).mean
    assert abs(theta[-1] - truth[-1]) < 0.02


@pytest.mark.parametrize(
    ("at", "distance", "reached"), [(0.0, 0.5, True), (0.0, 30.0, False), (100.0, 30.0, True), (100.0, 200.0, False)]
)
def test_mode_beyond_the_longest_steps_is_not_reached(at: float, distance: float, *, reached: bool) -> None:
    """Steps are longer where linear predictors are large."""
    case, axis = Case("linear-regression", features=3, noise_scale=1.0), np.array([0.5, -0.5, 0.5, 0.5])
    rows, prior, start = draw_rows(case), case.problem.prior, at * axis
    frame, truth = make_case_frame(case, rows, start), (at + distance) * axis
    gradient = _population_score(case, rows, start, truth)
    score = Score(start, gradient, 1e-8 * frame.back @ frame.back.T, np.ones(len(rows.draws)))
    assert find_mode(rows, frame, start, prior, (score,)).reached is reached


def test_prior_of_no_precision_gives_a_mode(monkeypatch: pytest.MonkeyPatch) -> None:
    """W14: declared scales may make a prior's precision singular in double precision."""
    case = Case("logistic-regression", features=3)
    rows, theta, prior = draw_rows(case), np.zeros(4), case.problem.prior
    frame = make_case_frame(case, rows, theta)
    score = Score(theta, theta + 1e6, 1e12 * frame.back @ frame.back.T, np.ones(600))
    monkeypatch.setattr(type(prior), "precision", lambda _self, theta: np.zeros((len(theta), len(theta))))
    mode = find_mode(rows, frame, theta, prior, (score,))
    assert np.all(np.isfinite(mode.mean))
    assert np.all(np.isfinite(mode.covariance))


def test_stated_covariance_of_the_mode_is_that_of_repetitions() -> None:
    """Monte Carlo over the noise of one score at the true parameter."""
    case = Case("linear-regression", features=2, noise_scale=2.0)
    rows, prior, rng = draw_rows(case), case.problem.prior, np.random.default_rng(3)
    truth = np.array([0.4, -0.6, 0.3])
    frame = make_case_frame(case, rows, truth)
    factor = 2.0 * frame.back
    found, stated = [], []
    pull = prior.precision(truth) @ truth
    for _ in range(200):
        gradient = pull + factor @ rng.standard_normal(3)
        score = Score(truth, gradient, factor @ factor.T, np.ones(len(rows.draws)))
        mode = find_mode(rows, frame, truth, prior, (score,))
        found.append(frame.back.T @ (mode.mean - truth))
        stated.append(np.trace(frame.back.T @ mode.covariance @ frame.back))
    spread = float(np.square(found).sum(axis=1).mean())
    assert np.mean(stated) == pytest.approx(spread, rel=0.25)
    assert np.mean(stated) == pytest.approx(3 * 4, rel=0.1)


@pytest.mark.parametrize(("kept", "low", "high"), [([0.5], 0.95, 1.05), ([0.0, 1.0], 0.1, 0.8)])
def test_estimate_within_the_error_by_weights_is_shrunk(kept: list[float], low: float, high: float) -> None:
    """Both scores keep half of the information; only unequal weights leave an error."""
    case = Case("linear-regression", features=3, noise_scale=2.0)
    rows, theta, prior = draw_rows(case), np.zeros(4), case.problem.prior
    frame = make_case_frame(case, rows, theta)
    score = Score(theta, 0.5 * frame.back @ np.ones(4), 1e-6 * frame.back @ frame.back.T, np.resize(kept, 600))
    mode = find_mode(rows, frame, theta, prior, (score,))
    assert low < float(np.mean(frame.back.T @ mode.mean)) < high


@pytest.mark.parametrize("count", [5e3, 1e6])
def test_error_by_weights_contains_a_smooth_misfit(count: float) -> None:
    """Without misfit, half of the rows leave an error of one posterior variance. A misfit is divided among axes."""
    case = Case("linear-regression", features=3, noise_scale=2.0)
    rows, prior, truth = replace(draw_rows(case), count=count), case.problem.prior, np.array([0.4, -0.6, 0.3, 0.2])
    frame, pull = make_case_frame(case, rows, truth), prior.precision(truth) @ truth
    score = Score(truth, 0.5 * pull, 1e-6 * frame.back @ frame.back.T, np.resize([0.0, 1.0], 600))
    covariance = find_mode(rows, frame, truth, prior, (score,)).covariance
    error = float(np.mean((frame.back.T @ covariance @ frame.back).diagonal()))
    assert error == pytest.approx(1 + TUNING.misfit * count / 4, rel=0.1)


@pytest.mark.parametrize("noise", [0.1, 1.0, 100.0])
def test_shrunk_mode_of_the_prior_has_the_stated_error(noise: float) -> None:
    """Half of the information is the prior's, so modes have variance 1 under it; noise of variance 100 hides them."""
    rng, size = np.random.default_rng(4), 4
    errors, stated = np.empty((4000, size)), np.empty((4000, size))
    for each in range(len(errors)):
        truth = rng.standard_normal(size)
        seen = truth + np.sqrt(noise) * rng.standard_normal(size)
        mean, covariance = shrink(seen, np.full(size, noise), np.full(size, noise), 0.5 * np.eye(size), 0.0)
        errors[each], stated[each] = mean - truth, covariance.diagonal()
    squared = float(np.mean(errors**2))
    assert squared < 2.5 * noise / (1 + noise)
    # The stated error allows for signals beyond the prior, so it is larger than the error of modes from the prior.
    assert 0.15 < squared / float(stated.mean()) < 1.2


def test_mode_that_the_prior_excludes_is_kept_if_it_is_clear() -> None:
    mean, covariance = shrink(np.array([80.0, 0.0]), np.full(2, 4.0), np.full(2, 4.0), 0.5 * np.eye(2), 0.0)
    np.testing.assert_allclose(mean, [80.0, 0.0], rtol=1e-2)
    assert covariance[0, 0] == pytest.approx(4.0, rel=1e-2)


def test_axes_of_noise_alone_are_shrunk_together() -> None:
    """Thirty axes of noise show that signals are small. A clear signal along one of them is kept."""
    noise, precision = np.full(30, 100.0), 1e-6 * np.eye(30)
    seen = 10 * np.random.default_rng(6).standard_normal(30)
    mean, covariance = shrink(seen, noise, noise, precision, 0.0)
    assert np.sum(mean**2) < 0.2 * np.sum(seen**2)
    assert np.trace(covariance) > np.sum(mean**2)
    seen[0] = 1e3
    clear, _ = shrink(seen, noise, noise, precision, 0.0)
    assert clear[0] == pytest.approx(1e3, rel=0.05)


def test_errors_of_secants_do_not_shrink_a_mode() -> None:
    """They are as large as the step, so the search would stay at zero."""
    seen = np.full(4, 1e3)
    mean, covariance = shrink(seen, seen**2, np.ones(4), 1e-8 * np.eye(4), 0.0)
    np.testing.assert_allclose(mean, seen, rtol=0.01)
    assert np.all(covariance.diagonal() > 0.5 * seen**2)


def test_signal_in_information_that_noise_hides_is_kept() -> None:
    """The belief sees no information beyond the prior's, but its noise may hide some."""
    seen, variance = np.array([30.0]), np.array([0.1])
    blind, _ = shrink(seen, variance, variance, np.eye(1), 0.0)
    open_minded, _ = shrink(seen, variance, variance, np.eye(1), 0.01)
    assert abs(blind[0]) < 0.1
    assert open_minded[0] == pytest.approx(30, rel=0.05)


@pytest.mark.parametrize("off", [0.0, 30.0])
def test_last_score_that_the_others_contradict_is_a_surprise(off: float) -> None:
    case = Case(features=3)
    rows, prior, rng = draw_rows(case), case.problem.prior, np.random.default_rng(3)
    truth = np.array([0.4, -0.6, 0.3, 0.2])
    frame = make_case_frame(case, rows, truth)
    noise = 0.01 * frame.back @ frame.back.T
    found = []
    for _ in range(20):
        errors = rng.standard_normal((4, 4)) * 0.1
        errors[-1, 0] += off * 0.1
        pull = prior.precision(truth) @ truth
        scores = tuple(Score(truth, pull + frame.back @ error, noise, np.ones(600)) for error in errors)
        found.append(find_mode(rows, frame, truth, prior, scores).surprise)
    assert np.median(found) < 1.2 if off == 0 else np.min(found) > TUNING.most_surprise


@pytest.mark.parametrize(("wrong", "off", "surprising"), [(0, 90.0, False), (-1, 3.0, True)])
def test_wrong_score_far_from_the_mode_is_no_surprise(wrong: int, off: float, *, surprising: bool) -> None:
    """The first score is 30 posterior deviations from the mode, the others 0.3. Noise is 0.1."""
    case = Case(features=3)
    rows, prior, rng = draw_rows(case), case.problem.prior, np.random.default_rng(3)
    truth = np.array([0.4, -0.6, 0.3, 0.2])
    frame = make_case_frame(case, rows, truth)
    noise, gradients, scores = 0.01 * frame.back @ frame.back.T, [], []
    for number, away in enumerate((30.0, 0.3, 0.3, 0.3, 0.3)):
        theta = truth + away * frame.forth[number % 4]
        mean = prior.precision(truth) @ truth + rows.gram(rows.path_factors(theta, truth)) @ (truth - theta)
        gradients.append(mean + 0.1 * frame.back @ rng.standard_normal(4))
        scores.append(Score(theta, gradients[-1], noise, np.ones(600)))
    scores[wrong] = replace(scores[wrong], gradient=gradients[wrong] + off * frame.back[:, 0])
    found = find_mode(rows, frame, truth, prior, scores)
    assert (found.surprise > TUNING.most_surprise) is surprising


def test_scores_with_different_bounds_do_not_cancel_each_others_errors() -> None:
    """Only a multiple of the whole score is information. The rest is an error."""
    case = Case(features=3)
    rows, prior = draw_rows(case), case.problem.prior
    truth, ones = np.array([0.4, -0.6, 0.3, 0.2]), np.ones(600)
    frame = make_case_frame(case, rows, truth)
    score = Score(truth, prior.precision(truth) @ truth, 1e-4 * frame.back @ frame.back.T, ones)
    parts = [replace(score, kept=part * ones, gradient=part * score.gradient) for part in (0.3, 0.6, 0.9)]
    alone = find_mode(rows, frame, truth, prior, parts).covariance
    also = find_mode(rows, frame, truth, prior, [replace(each, root=1.5 * ones) for each in parts]).covariance
    assert np.all(also.diagonal() > 3 * alone.diagonal())
