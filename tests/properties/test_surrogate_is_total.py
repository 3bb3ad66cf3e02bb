"""The surrogate gives points for all designs and answers; wrong ones are not trusted."""

import math
import warnings
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.inference.core.model import Array64
from app.inference.core.plan import PriorSpec
from app.inference.core.release import Grade, Pseudocoreset
from app.inference.methods.surrogate.schedule import Schedule
from app.inference.private_zone.mechanisms import NoiseSource
from app.inference.runner import run
from support.surrogate_tables import (
    DESIGNS,
    FAMILIES,
    SIGNALS,
    Case,
    Drawn,
    Script,
    build,
    compute_losses,
    fit_posterior,
)
from tests.inference.support import NullNoise

NOISES = (0.01, 0.5, 5.0, 60.0, 1e4, 1e6)


@st.composite
def cases(draw: st.DrawFn) -> Case:
    """Mostly degenerate tables."""
    features = draw(st.sampled_from([1, 2, 3, 8]))
    slots = draw(st.sampled_from([1, 2, features + 1, 30, 300, 2000]))
    rows = draw(st.sampled_from([0, 1, slots // 50, slots // 2, slots]))
    scales = draw(st.sampled_from([{}, {"x0": 1e-6}, {"x0": 1e6}]))
    prior = PriorSpec(draw(st.sampled_from([1.0, 10.0, 1e-6, 1e6])), scales, draw(st.sampled_from([None, 0.1, 4.0])))
    return Case(
        draw(st.sampled_from(FAMILIES)),
        draw(st.sampled_from(sorted(DESIGNS))),
        draw(st.sampled_from(SIGNALS)),
        features,
        min(rows, slots),
        slots,
        draw(st.integers(0, 1 << 30)),
        prior,
        draw(st.sampled_from([None, 0.01, 1.0, 1e3])),
    )


def _numbers(value: Any) -> list[float]:
    return [number for each in value.values() for number in _numbers(each)] if isinstance(value, dict) else [value]


def _check(points: Pseudocoreset, size: int) -> None:
    assert len(points.u) == len(points.weight) == size
    assert points.y is None or (len(points.y) == size and bool(np.all(np.isfinite(points.y))))
    assert np.all(np.isfinite(points.u))
    assert np.all(np.isfinite(points.weight))
    assert np.all(points.weight >= 0)
    assert all(math.isfinite(number) for number in _numbers(dict(points.diagnostics)))


def _adversary(seed: int, magnitude: float | None) -> Script:
    """Answers of one magnitude and any sign, or of all magnitudes at once."""
    rng = np.random.default_rng(seed)

    def answers(length: int) -> Array64:
        size = 10.0 ** rng.uniform(-300, 290, length) if magnitude is None else np.full(length, magnitude)
        return np.asarray(size * rng.choice([-1.0, 0.0, 1.0], length))

    return Script(answers)


@pytest.mark.slow
@settings(max_examples=8, deadline=None)
@given(
    cases(),
    st.sampled_from(NOISES),
    st.sampled_from([1, 2, 9]),
    st.sampled_from([1.0, 0.05]),
    st.sampled_from([None, NullNoise()]),
)
def test_w14_any_table_gives_points(
    case: Case, sigma: float, size: int, rate: float, noise: NoiseSource | None
) -> None:
    """W14: for all rows and noise multipliers."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        plan = case.plan(sigma, size, sampling_rate=rate)
        _check(build(case, plan, noise or Drawn(case.seed), case.seed), size)


@pytest.mark.slow
@settings(max_examples=12, deadline=None)
@given(
    cases(),
    st.sampled_from(NOISES),
    st.sampled_from([1, 2, 9]),
    st.sampled_from([0.0, 1e-300, 1e-3, 1.0, 1e5, 1e100, 1e290, None]),
)
def test_w14_any_answers_give_points(case: Case, sigma: float, size: int, magnitude: float | None) -> None:
    """W14: no answers make the method fail, or make its output infinite."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        plan = case.plan(sigma, size)
        oracle = _adversary(case.seed, magnitude)
        _check(run(plan, case.facts, oracle, np.random.default_rng(case.seed), lambda _: None), size)


@pytest.mark.parametrize("magnitude", [0.0, 1e-3, 1e290, None])
@pytest.mark.parametrize("family", ["logistic-regression", "poisson-regression"])
def test_w14_any_answers_are_averaged(family: str, magnitude: float | None) -> None:
    """W14: this holds also with noise at which information matrices are averaged."""
    assert Schedule(5.0, 1.0, 300, 9, one_predictor=True).averages
    for seed, scales in enumerate(({}, {"x0": 1e-6}, {"x0": 1e6})):
        prior = PriorSpec(1.0, scales, 4.0 if seed else None)
        case = Case(family, features=8, rows=300, slots=300, prior=prior)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            plan, answers = case.plan(5.0, 1), _adversary(seed, magnitude)
            _check(run(plan, case.facts, answers, np.random.default_rng(seed), lambda _: None), 1)


@pytest.mark.slow
@pytest.mark.parametrize(
    "family", ["logistic-regression", "probit-regression", "multinomial-logistic", "gaussian-mean"]
)
def test_release_far_from_the_posterior_is_not_trusted(family: str) -> None:
    """The tables have several designs, labels, sizes and noises; some releases are trusted."""
    rng = np.random.default_rng(len(family))
    trusted = 0
    for seed in range(16):
        slots, features = int(rng.choice([300, 2000, 20_000])), int(rng.choice([1, 3]))
        rows, sigma = int(slots * rng.choice([1, 0.9, 0.5])), float(rng.choice([70.0, 19.0, 4.2, 2.2]))
        design, signal = str(rng.choice(list(DESIGNS))), str(rng.choice(SIGNALS, p=[0.4, 0.4, 0.1, 0.1]))
        trusted += _check_trust(Case(family, design, signal, features, rows, slots, seed), sigma)
    assert trusted >= 6


@pytest.mark.slow
@pytest.mark.parametrize("family", ["linear-regression", "poisson-regression"])
def test_scales_and_rates_that_are_far_away_are_not_trusted(family: str) -> None:
    """Some tables are degenerate: few rows, separable or constant targets, unknown noise scales."""
    rng = np.random.default_rng(1)
    for seed in range(8):
        slots = int(rng.choice([100, 300]))
        rows, sigma = int(slots * rng.choice([1, 0.9, 0.5, 0.1])), float(rng.choice([70.0, 19.0, 4.2, 2.2]))
        design, signal = str(rng.choice(list(DESIGNS))), str(rng.choice(SIGNALS, p=[0.7, 0.1, 0.1, 0.1]))
        _check_trust(Case(family, design, signal, int(rng.choice([1, 3, 6])), rows, slots, seed), sigma)
    assert _check_trust(Case(family, features=1, seed=1), 1.0)


@pytest.mark.parametrize(
    ("case", "sigma"),
    [
        (Case("poisson-regression", "correlated", features=6, rows=30, slots=300, seed=9), 2.2),
        (Case("poisson-regression", "narrow", "separable", features=6, rows=1000, slots=2000, seed=8), 12.0),
        (Case("linear-regression", "uniform", features=3, rows=150, slots=300, seed=92), 2.2),
        (Case("linear-regression", "duplicated", "noise", features=6, rows=200, slots=2000, seed=4), 2.2),
    ],
    ids=["few rows", "large rates", "the wrong noise scale", "no noise to learn"],
)
def test_table_that_once_had_a_wrong_trusted_release_is_not_trusted(case: Case, sigma: float) -> None:
    assert not _check_trust(case, sigma)


@pytest.mark.parametrize(
    ("case", "sigma"),
    [
        (Case("logistic-regression", "duplicated", "separable", 3, 10_000, 20_000, 1336), 20.0),
        (Case("logistic-regression", "uniform", "separable", 1, 10_000, 20_000, 1198), 70.0),
        (Case("probit-regression", "heavy tails", "separable", 3, 20_000, 20_000, 1085), 70.0),
        (Case("multinomial-logistic", "uniform", "drawn", 3, 20_000, 20_000, 1346), 19.0),
    ],
    ids=["too sure along a plane", "too sure of a slope", "too sure of tails", "not converged"],
)
def test_stated_noise_covers_the_divergence_for_nearly_certain_labels(case: Case, sigma: float) -> None:
    """In earlier versions each was trusted, with 10 to 60 times the stated divergence."""
    points = build(case, case.plan(sigma, 16), Drawn(case.seed), case.seed)
    assert compute_losses(case, points)[0] <= 50 + 10 * points.diagnostics["noise_kl"]


def test_release_is_not_trusted_if_noise_hides_rare_levels() -> None:
    case = Case("logistic-regression", "rare", "noise", 3, 18_000, 20_000, 1092)
    assert not _check_trust(case, 70.0)
    assert _check_trust(case, 2.2)


@pytest.mark.parametrize("seed", [8, 9, 10, 11, 12, 13, 14])
def test_large_rates_of_narrow_columns_are_found(seed: int) -> None:
    """Earlier versions, which queried squares around zero, did not detect them.

    Seed 7 diverges by rounding alone, which is detected.
    """
    case = Case("poisson-regression", "narrow", "separable", features=6, rows=1000, slots=2000, seed=seed)
    assert _check_trust(case, 4.2)


def _check_trust(case: Case, sigma: float) -> bool:
    """Whether a build is trusted; if KL exceeds 50 nats plus ten times the stated noise, it must not be."""
    points = build(case, case.plan(sigma, 12), Drawn(case.seed), case.seed)
    kl, gain = compute_losses(case, points)
    far = not kl <= 50 + 10 * points.diagnostics["noise_kl"]
    trusted = bool(points.diagnostics["trusted"])
    assert not (far and trusted)
    assert points.reliability is not None
    if points.reliability.grade is Grade.CENTRE_ONLY:
        _check_centre(case, points, gain)
    return trusted


def _check_centre(case: Case, points: Pseudocoreset, gain: float) -> None:
    """The error of a usable centre is less than the ``gain``, in nats."""
    exact, problem = case.exact(), case.problem
    y = problem.design.encode_targets(points.y) if points.y is not None else None
    error = exact.factor.T @ (fit_posterior(problem, points.u, y, points.weight).mean - exact.mean)
    assert 0.5 * error @ error < max(gain, 1.0)


@pytest.mark.slow
@pytest.mark.parametrize("family", FAMILIES)
def test_search_that_cannot_converge_in_two_rounds_is_not_trusted(family: str) -> None:
    """Every answer points to a mode far away in one direction."""
    case = Case(family, features=3)
    plan = case.plan(0.5, 12, rounds=2)
    answers = Script(lambda length: np.full(length, 1e4))
    points = run(plan, case.facts, answers, np.random.default_rng(0), lambda _: None)
    assert points.diagnostics["trusted"] is False
