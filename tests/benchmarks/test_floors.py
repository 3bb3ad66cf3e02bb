"""The noise floor against simulation."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.linalg import solve_triangular
from scipy.special import expit

from app.inference.core.facts import Column
from benchmarks import floors
from benchmarks.cases import Case, compute_full_posterior, make_design_rows, make_logistic
from benchmarks.floors import (
    _parts,
    compute_noise_floors,
    compute_one_shot_noise,
    compute_release_floors,
    compute_table_floors,
)
from benchmarks.tables.drawn import Features, Target, assemble
from benchmarks.unseen import draw_unseen
from tests.benchmarks.cases import case


def squared_case() -> Case:
    """A case whose labels follow a square and a heavy-tailed threshold."""
    return make_logistic("squared", draw_unseen("no logistic regression", n=20_000), bound=8.0)


def test_the_loss_of_weights_is_the_residual_variance_of_scores() -> None:
    """Labels are drawn from the model. The full score explains a part of the weighted score, which is not lost."""
    table, rng, clip = case(300), np.random.default_rng(0), 0.05
    assert table.exact is not None
    x, _ = make_design_rows(table)
    white, p = solve_triangular(table.exact.factor, x.T, lower=True).T, expit(x @ table.exact.mean)
    residuals = (rng.random((20_000, len(p))) < p) - p
    weight = np.minimum(1, clip / (np.maximum(p, 1 - p) * np.linalg.norm(white, axis=1)))
    full, weighted = residuals @ white, (residuals * weight) @ white
    explained, *_ = np.linalg.lstsq(full, weighted, rcond=None)
    inverse = np.linalg.inv((white * (weight * p * (1 - p))[:, None]).T @ white)
    simulated = 0.5 * np.square((weighted - full @ explained) @ inverse).sum(axis=1).mean()
    np.testing.assert_allclose(_parts(white, p, np.zeros((3, 3)), clip)[1], simulated, rtol=0.04)


def test_the_noise_part_is_the_kl_of_a_step_from_noise() -> None:
    rng, white = np.random.default_rng(0), np.eye(3)[np.arange(300) % 3] / 10
    steps = 0.2 * rng.standard_normal((100_000, 3)) / 0.25  # information: 100 rows of 1/4 * 1/100 each
    noise, loss = _parts(white, np.full(300, 0.5), np.zeros((3, 3)), 0.2)
    np.testing.assert_allclose(noise, 0.5 * np.square(steps).sum(axis=1).mean(), rtol=0.02)
    assert abs(loss) < 1e-12


def test_floors_fall_with_epsilon_by_less_than_the_noise() -> None:
    floors = compute_noise_floors(case(), (0.1, 1.0))
    noise = [compute_one_shot_noise(epsilon, 1 / 200) for epsilon in (0.1, 1.0)]
    assert floors[0] > floors[1] > 0
    assert floors[0] / floors[1] < (noise[0] / noise[1]) ** 2


def test_a_table_floor_is_the_kl_of_one_bounded_score_step(monkeypatch: pytest.MonkeyPatch) -> None:
    """Simulated with the rows and many draws of noise, at a single clipping norm."""
    table, rng, kappa = squared_case(), np.random.default_rng(0), 1.5
    monkeypatch.setattr(floors, "TABLE_CLIPS", (kappa,))
    exact, slots = table.exact, table.facts.slots
    assert exact is not None
    floor, model = compute_table_floors(table, (0.5,))[0], table.problem.model
    inverse, clip = solve_triangular(exact.factor, np.eye(10), lower=True), np.sqrt(kappa * 10 / slots)
    x, y = make_design_rows(table)
    rows = model.fold(x, y).astype(np.float32)
    weighted = model.bounded_scores(rows, exact.mean, inverse, clip).sum(axis=0, dtype=np.float64)
    white, p = x @ inverse.T, expit(x @ exact.mean)
    weight = np.minimum(1, clip / (np.maximum(p, 1 - p) * np.linalg.norm(white, axis=1)))
    information = (white * (weight * p * (1 - p))[:, None]).T @ white
    information += inverse @ table.problem.prior.precision(exact.mean) @ inverse.T
    noise = compute_one_shot_noise(0.5, 1 / slots) * clip * rng.standard_normal((100_000, 10))
    answers = weighted + noise + inverse @ table.problem.prior.gradient(exact.mean)
    steps = np.linalg.solve(information, answers.T)
    by_weight = 0.5 * np.square(steps).sum(axis=0).mean()
    scores = (y - p)[:, None] * white
    scores *= np.minimum(1, clip / np.linalg.norm(scores, axis=1))[:, None]
    clipped = scores.sum(axis=0) + noise + inverse @ table.problem.prior.gradient(exact.mean)
    by_clip = 0.5 * np.square(clipped).sum(axis=1).mean()
    np.testing.assert_allclose(floor, min(by_weight, by_clip), rtol=0.01)


def test_labels_outside_the_model_raise_the_floor() -> None:
    """Bounding then moves the mode by a fixed step."""
    assert compute_table_floors(squared_case(), (0.5,))[0] > 1.5 * compute_noise_floors(squared_case(), (0.5,))[0]


def test_larger_clipping_norms_do_not_lower_the_floor(monkeypatch: pytest.MonkeyPatch) -> None:
    """The best norm is large if few rows are informative and noise is small.

    The floor's list of norms contains it.
    """
    table = make_logistic("rare", draw_unseen("rare flags"), bound=1.0)
    floor = compute_table_floors(table, (1.0,))[0]
    narrow = tuple(clip for clip in floors.TABLE_CLIPS if clip <= 12)
    monkeypatch.setattr(floors, "TABLE_CLIPS", (*floors.TABLE_CLIPS, 1e4, 1e6))
    assert compute_table_floors(table, (1.0,))[0] == floor
    monkeypatch.setattr(floors, "TABLE_CLIPS", narrow)
    assert compute_table_floors(table, (1.0,))[0] > 1.5 * floor


def test_floors_of_any_family_equal_those_of_logistic_regression() -> None:
    """With drawn targets in place of the exact information, up to the draw."""
    table, epsilons = squared_case(), (0.2, 1.0)
    scores = floors.score_units(table)
    ways = []
    for clip in floors._clips(table, np.array(floors.TABLE_CLIPS)):
        ways += [floors._clip_units(scores, clip), *floors._bound_rows(scores, clip)]
    np.testing.assert_allclose(floors._best(table, epsilons, ways), compute_table_floors(table, epsilons), rtol=0.05)


def test_a_floor_of_means_is_the_kl_of_one_clipped_step(monkeypatch: pytest.MonkeyPatch) -> None:
    """Simulated with many draws of noise. Units have five rows."""
    rng, kappa = np.random.default_rng(0), 3.0
    monkeypatch.setattr(floors, "TABLE_CLIPS", (kappa,))
    x = 0.3 + 0.1 * rng.standard_normal(1000)
    features = Features("", (Column("x0", "real", -1, 1),), (x,))
    table = assemble(features, Target("gaussian-mean", None, np.empty(0), 0.1), counts=np.full(200, 5))
    table = replace(table, exact=compute_full_posterior(table))
    assert table.facts.delta is not None
    precision, clip = 1000 / 0.1**2 + 1, np.sqrt(kappa / 200)
    mode = x.sum() / 0.1**2 / precision
    units = ((x - mode) / 0.1**2 / np.sqrt(precision)).reshape(200, 5).sum(axis=1)
    noise = compute_one_shot_noise(0.5, table.facts.delta) * clip * rng.standard_normal(200_000)
    steps = np.clip(units, -clip, clip).sum() + noise - mode / np.sqrt(precision)
    np.testing.assert_allclose(compute_release_floors(table, (0.5,))[0], 0.5 * np.mean(steps**2), rtol=0.01)


def test_floors_of_units_grow_with_their_rows() -> None:
    """A unit of ten rows is clipped as a whole, which costs more noise."""
    rng = np.random.default_rng(0)
    features = Features("", (Column("x0", "real", -1, 1),), (rng.uniform(-1, 1, 10_000),))
    labels = Target("logistic-regression", Column("y", "binary"), (rng.random(10_000) < 0.5) * 1.0)
    values = []
    for each in (1, 10):
        table = assemble(features, labels, counts=np.full(10_000 // each, each))
        values.append(compute_release_floors(replace(table, exact=compute_full_posterior(table)), (0.2,))[0])
    assert values[1] > 3 * values[0]
