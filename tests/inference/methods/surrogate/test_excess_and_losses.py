"""The excess beyond a cut, and the expected losses of a score, by simulation."""

import numpy as np
import pytest

from app.inference.core.linear_algebra import invert
from app.inference.core.model import Array64
from app.inference.methods.surrogate.excess import Excess, ResidualCounts, combine
from app.inference.methods.surrogate.information import make_frame
from app.inference.methods.surrogate.regression import Score, find_mode
from app.inference.methods.surrogate.rounds import restore
from app.inference.methods.surrogate.scores import design_score, respond
from app.inference.private_zone.queries import ExcessSum
from app.inference.private_zone.queries.residuals import EDGES
from support.beliefs import draw_rows
from support.surrogate_tables import Case, Drawn, build, compute_losses

ANYWHERE = np.zeros(1)


@pytest.mark.parametrize("family", ["linear-regression", "poisson-regression"])
def test_excess_is_put_back_into_the_score(family: str) -> None:
    """Cut scores and the excess add up to scores without a cut.

    The distribution of residuals is the same in every row, so the intercept and the predictor explain the excess.
    """
    case = Case(family, features=2, noise_scale=2.0)
    model, cut, theta = case.problem.model, 1.0, np.array([0.3, -0.2, 0.4])
    rows, rng = draw_rows(case, count=800.0, draws=800), np.random.default_rng(1)
    scale = 0.2 if family == "linear-regression" else np.sqrt(np.exp(rows.draws @ theta) + 0.5)
    fitted = rows.draws @ theta if family == "linear-regression" else np.exp(rows.draws @ theta)
    y = fitted + scale * rng.choice([0.3, 4.0], 800, p=[0.9, 0.1])
    folded = model.fold(rows.draws, y).astype(np.float32)
    identity = np.eye(3)
    whole = model.scores(folded, theta).astype(float).sum(axis=0)
    inside = model.cut_scores(folded, theta, identity, 1e9, cut).astype(float).sum(axis=0)  # type: ignore[attr-defined]
    predictor = rows.draws @ theta
    query = ExcessSum(theta, cut, 1.5, float(predictor.mean()), 2 * float(predictor.std()), squares=0.0, clip=1e6)
    sums = query.answer(query.sum(model, folded, np.ones(800, dtype=bool), 1))
    excess = Excess(query, sums, variance=np.full(2, 1e-6), squares=0.0, answers=(sums,))
    added, covariance = excess.gradient(rows, np.ones(800))
    assert np.linalg.norm(inside - whole) > 100
    assert np.linalg.norm(inside + added - whole) < 0.25 * np.linalg.norm(inside - whole)
    assert (inside + added)[-1] == pytest.approx(whole[-1], abs=0.05 * abs(whole - inside)[-1])
    assert np.linalg.eigvalsh(covariance)[0] >= -1e-9
    half, _ = excess.gradient(rows, np.full(800, 0.5))
    np.testing.assert_allclose(half, 0.5 * added, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize(("cut", "moved"), [(1.0, True), (3.0, False)])
def test_excess_is_added_only_to_scores_with_its_cut(cut: float, moved: bool) -> None:
    case, theta = Case("linear-regression", features=2, noise_scale=2.0), np.zeros(3)
    rows, prior = draw_rows(case, count=5000.0, draws=800), case.problem.prior
    frame = make_frame(rows, theta, rows.information(theta) + prior.precision(theta), prior)
    score = Score(theta, np.zeros(3), 1e-6 * rows.information(theta), np.ones(len(rows.draws)), cut=cut)
    query = ExcessSum(theta, 1.0, scale=5.0, centre=0.0, spread=1.0, squares=0.0, clip=1e3)
    sums = np.array([500.0, 0.0])
    excess = Excess(query, sums, variance=np.full(2, 1e-6), squares=0.0, answers=(sums,))
    mean = find_mode(rows, frame, theta, prior, (score,), excess=excess).mean
    assert (abs(mean[-1]) > 0.01) == moved


@pytest.mark.parametrize("many", [1, 4])
def test_early_excess_has_one_error_for_all_scores_with_its_cut(many: int) -> None:
    """An average of the scores does not lower it."""
    case, theta = Case("linear-regression", features=2, noise_scale=2.0), np.zeros(3)
    rows, prior = draw_rows(case, count=5000.0, draws=800), case.problem.prior
    information = rows.information(theta)
    frame = make_frame(rows, theta, information + prior.precision(theta), prior)
    query = ExcessSum(theta, 3.0, scale=5.0, centre=0.0, spread=1.0, squares=0.0, clip=1e3)
    early = Excess(query, np.array([500.0, 0.0]), np.array([1e4, 1.0]), squares=0.0, answers=())
    score = Score(theta, np.zeros(3), 1e-6 * information, np.ones(len(rows.draws)), cut=3.0)
    before = find_mode(rows, frame, theta, prior, (score,) * many)
    after = find_mode(rows, frame, theta, prior, restore(rows, (score,) * many, early))
    assert after.mean[-1] == pytest.approx(500.0 * 5.0 / information[-1, -1], rel=0.1)
    assert after.covariance[-1, -1] == pytest.approx(1e4 * 25 / information[-1, -1] ** 2, rel=0.3)
    assert after.covariance[-1, -1] > 100 * before.covariance[-1, -1]


@pytest.mark.parametrize(("share", "seen"), [(0.0, False), (0.05, True)])
def test_histogram_shows_the_excess_without_an_answer(share: float, seen: bool) -> None:
    """One row in twenty is 6 deviations away, on one side. Without such rows, the prediction by the model is left."""
    rng, count = np.random.default_rng(6), 20_000
    residuals = rng.standard_normal(count) + 6 * (rng.random(count) < share)
    sides = [np.histogram(np.abs(residuals[residuals * side > 0]), [*EDGES, np.inf])[0] for side in (-1, 1)]
    counts = np.array(sides) + 5 * rng.standard_normal((2, len(EDGES)))
    shown = ResidualCounts(ANYWHERE, counts, 5.0, 600.0, rng.standard_normal(100_000), count)
    query = ExcessSum(np.zeros(2), cut=2.0, scale=1.0, centre=0.0, spread=1.0, squares=0.5, clip=1e3)
    found = combine(query, (), 1.0, shown)
    inside = np.clip(residuals, -2, 2)
    truth = np.array([np.sum(residuals - inside), 0.5 * np.sum(residuals**2 - inside**2)])
    assert np.all(np.abs(found.sums[[0, 2]] - truth) < 4 * np.sqrt(found.variance[[0, 2]]) + 0.1 * np.abs(truth))
    usual = np.broadcast_to(found.usual, 3)[2]
    assert bool(abs(found.sums[2] - usual) > 0.3 * usual) == seen
    # The histogram does not show where along the predictor the excess is.
    assert found.sums[1] == 0
    assert np.sqrt(found.variance[1]) >= 0.9 * abs(truth[0])


def test_histogram_without_far_residuals_leaves_the_prediction() -> None:
    shown = ResidualCounts(
        ANYWHERE, np.zeros((2, len(EDGES))), 5.0, 600.0, np.random.default_rng(0).standard_normal(9999), 500.0
    )
    query = ExcessSum(np.zeros(2), cut=2.0, scale=1.0, centre=0.0, spread=1.0, squares=0.0, clip=1e3)
    found = combine(query, (), 1.0, shown)
    np.testing.assert_array_equal(found.sums, found.usual)
    assert np.all(np.isfinite(found.variance))


@pytest.mark.parametrize(("family", "cut"), [("linear-regression", 3.0), ("student-t-regression", 24.0)])
def test_doubt_about_the_mode_lowers_the_part_that_a_cut_leaves(family: str, cut: float) -> None:
    """It is the mean slope of a cut score over that of the score."""
    case = Case(family, features=2, noise_scale=0.1)
    rows, theta = draw_rows(case, count=800.0, draws=800), np.array([0.3, -0.2, 0.4])
    model, prior = case.problem.model, case.problem.prior
    frame = make_frame(rows, theta, rows.information(theta) + prior.precision(theta), prior)
    sigma = model.scale(theta)  # type: ignore[attr-defined]
    spread = np.full(len(rows.draws), 8 * sigma)
    parts = []
    for each in (None, spread):
        response = respond(np.random.default_rng(1), rows, theta, frame, labels=False, cut=cut, doubts=each)
        parts.append(response.interpolate(np.full(len(rows.draws), 1e9))[0].mean())
    rng, step = np.random.default_rng(2), 0.1 * sigma
    targets = np.concatenate([model.sample_targets(rng, rows.draws, theta) for _ in range(100)])
    x = np.tile(rows.draws, (100, 1))
    moved = targets + 8 * sigma * rng.standard_normal(len(targets))
    ends = [
        model.cut_scores(model.fold(x, y).astype(np.float32), theta, np.eye(3), 1e9, cut)[:, -1].mean()  # type: ignore[attr-defined]
        for y in (moved - step, moved + step)
    ]
    slope = rows.information(theta)[-1, -1] / rows.count
    assert parts[1] == pytest.approx((ends[1] - ends[0]) / (2 * step) / slope, rel=0.1)
    assert parts[1] < 0.9 * parts[0]


def test_expected_losses_of_a_score_are_those_of_a_simulation() -> None:
    """Noise and lost information, in nats of one Newton step."""
    case = Case(features=2)
    count, sigma = 800.0, 2.0
    rows, theta, rng = draw_rows(case, count=count, draws=800), np.array([0.5, -0.4, 0.2]), np.random.default_rng(2)
    prior, model = case.problem.prior, case.problem.model
    frame = make_frame(rows, theta, rows.information(theta) + prior.precision(theta), prior)
    response = respond(rng, rows, theta, frame, labels=True, cut=None)
    design = design_score(rows, frame, response, sigma=sigma)
    transform = invert(design.factor)
    slope = rows.gram(frame.white, design.kept) + frame.prior  # of weighted scores, white
    full, to_white = invert(rows.gram(frame.white) + frame.prior), invert(frame.own)
    noise, lost = [], []
    for _ in range(400):
        folded = rows.fold(model.sample_targets(rng, rows.draws, theta))
        whole = to_white @ model.scores(folded, theta).astype(float).sum(axis=0)
        bounded = model.bounded_scores(folded, theta, transform, design.clip).astype(float).sum(axis=0)
        drawn = sigma * design.clip * rng.standard_normal(3)
        there = invert(slope) @ to_white @ design.factor @ bounded
        lost.append(_nats(there - full @ whole))
        noise.append(_nats(invert(slope) @ to_white @ design.factor @ drawn))
    assert np.mean(noise) == pytest.approx(design.nats[0], rel=0.2)
    assert np.mean(lost) == pytest.approx(design.nats[1], rel=0.5, abs=0.01)
    assert design.nats[0] > 0.01


def _nats(step: Array64) -> float:
    """Half the squared length: the frame is where the information is the identity."""
    return float(0.5 * step @ step)


@pytest.mark.slow
def test_means_far_from_zero_are_found() -> None:
    """The columns' means are 35 deviations from zero."""
    case = Case("gaussian-mean", "narrow", features=3, noise_scale=0.02)
    for seed in range(3):
        points = build(case, case.plan(5.0, version=2), Drawn(seed), seed)
        assert compute_losses(case, points)[0] < 5


@pytest.mark.parametrize(("scale", "far"), [(1.0, False), (1.3, False), (3.0, True), (1000.0, True)])
def test_residuals_of_another_scale_are_far(scale: float, far: bool) -> None:
    """Also where the squares of the model's residuals have no mean."""
    rng = np.random.default_rng(3)
    bins = np.searchsorted(EDGES, np.abs(scale * rng.standard_cauchy(20_000)), side="right") - 1
    half = 0.5 * np.bincount(bins[bins >= 0], minlength=len(EDGES))
    counts = np.array([half, half]) + 5.0 * rng.standard_normal((2, len(EDGES)))
    assert ResidualCounts(ANYWHERE, counts, 5.0, 5000.0, rng.standard_cauchy(10_000), 20_000).are_far == far


@pytest.mark.parametrize(("degrees", "wide"), [(1000, False), (3, True)])
def test_residuals_with_heavy_tails_are_wide(degrees: int, wide: bool) -> None:
    rng = np.random.default_rng(4)
    residuals = rng.standard_t(degrees, 20_000)
    sides = [np.histogram(np.abs(residuals[residuals * side > 0]), [*EDGES, np.inf])[0] for side in (-1, 1)]
    counts = np.array(sides) + 5 * rng.standard_normal((2, len(EDGES)))
    assert ResidualCounts(ANYWHERE, counts, 5.0, 600.0, rng.standard_normal(10_000), 20_000).are_wide == wide


def test_hidden_residuals_count_with_a_probability_of_a_tenth() -> None:
    """Noise of 10 may hide ten residuals in a far bin."""
    rng = np.random.default_rng(5)
    residuals = ResidualCounts(ANYWHERE, np.zeros((2, len(EDGES))), 10.0, 64.0, rng.standard_normal(10_000), 20_000)
    query = ExcessSum(np.zeros(2), cut=3.0, scale=1.0, centre=0.0, spread=1.0, squares=0.25, clip=1e3)
    found = combine(query, (np.zeros(3),), 1e-3, residuals)
    hidden = residuals.excess(3.0).hidden
    expected = 0.1 * np.array([hidden[0], hidden[0] / 4, hidden[1] / 16])
    np.testing.assert_allclose(found.variance, expected, rtol=1e-3)
    assert np.sqrt(hidden[1]) > 0.2 * residuals.count


def test_an_excess_that_is_not_a_number_is_infinite() -> None:
    """An unknown excess must not pass a check."""
    counts = ResidualCounts(ANYWHERE, np.ones((2, len(EDGES))), 5.0, 5000.0, np.linspace(-2, 2, 100), 200)
    assert counts.find_clear_excess(np.square) < np.inf
    assert counts.find_clear_excess(lambda distances: np.where(distances > 100, np.nan, distances)) == np.inf
