"""The part of the belief's information that answers confirm, along single axes."""

from dataclasses import replace

import numpy as np
import pytest

from app.inference.core.model import Array64
from app.inference.core.plan import PriorSpec
from app.inference.methods.surrogate.information import Answers, find_least_parts
from support.surrogate_tables import Case, Drawn, build

SIZE, ROUNDS, NOISE, LEAST = 12, 13, 0.1, 0.7
PRIOR = 1e-6 * np.eye(SIZE)


def _answer(true: Array64, noise: float = NOISE, seed: int = 0) -> Answers:
    """Sum answers about ``true`` whose noise has deviation ``noise`` on the diagonal."""
    rng = np.random.default_rng(seed)
    total = np.zeros((SIZE, SIZE))
    for _ in range(ROUNDS):
        drawn = noise * rng.standard_normal((SIZE, SIZE)) / np.sqrt(2)
        total += true + (drawn + drawn.T) / np.sqrt(2)
    return Answers(ROUNDS, total, ROUNDS * noise * np.eye(SIZE))


def test_axis_without_real_information_has_the_least_part() -> None:
    true = np.eye(SIZE)
    true[3, 3] = 0.001
    parts, along = find_least_parts(np.eye(SIZE), PRIOR, _answer(true), LEAST)
    axis = int(np.argmin(parts))
    assert parts[axis] < 0.06
    assert abs(along[axis, 3]) > 0.95
    np.testing.assert_array_equal(np.delete(parts, axis), LEAST)


@pytest.mark.parametrize("seed", range(5))
def test_noise_alone_leaves_the_usual_part(seed: int) -> None:
    """Hardly any eigenvalue is beyond the edge of the semicircle law."""
    parts, _ = find_least_parts(np.eye(SIZE), PRIOR, _answer(np.eye(SIZE), 1.0, seed), LEAST)
    assert np.sum(parts < LEAST) <= 1


def test_information_is_at_least_that_of_the_prior() -> None:
    prior = np.diag(np.append(np.full(SIZE - 1, 1e-6), 0.4))
    true = np.diag(np.append(np.ones(SIZE - 1), 0.4))
    parts, _ = find_least_parts(np.eye(SIZE), prior, _answer(true), LEAST)
    assert np.min(parts) == pytest.approx(0.4, abs=0.02)
    certain, _ = find_least_parts(prior, prior, replace(_answer(true), count=0), LEAST)
    np.testing.assert_allclose(certain, 1.0)


def test_parts_follow_the_coordinates() -> None:
    """Along the axes, the belief's information is the identity."""
    rng = np.random.default_rng(1)
    change = rng.standard_normal((SIZE, SIZE))
    true = np.eye(SIZE)
    true[0, 0] = 0.001
    information, answers = change @ change.T, _answer(true).move(change)
    parts, along = find_least_parts(information, change @ PRIOR @ change.T, answers, LEAST)
    inverse = np.linalg.inv(along)
    np.testing.assert_allclose(inverse.T @ information @ inverse, np.eye(SIZE), atol=1e-8)
    assert np.min(parts) < 0.06


@pytest.mark.parametrize("seed", [0, 1])
def test_equal_columns_do_not_widen_intervals_beyond_the_prior(seed: int) -> None:
    """Only the prior decides between equal columns."""
    case = Case(design="duplicated", features=3, rows=8000, slots=8000, seed=seed, prior=PriorSpec(3.0))
    noise = build(case, case.plan(4.0), Drawn(seed), seed).diagnostics["noise_in_posterior_sds"]
    assert max(noise[name] for name in ("x0", "x1", "x2")) < 10
