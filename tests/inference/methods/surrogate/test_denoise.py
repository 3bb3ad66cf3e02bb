"""What is kept of a noised information matrix."""

import numpy as np
import pytest

from app.inference.core.model import Array64
from app.inference.methods.surrogate.denoise import denoised

SIZE = 40
CENTRE = np.eye(SIZE)
NOWHERE = np.zeros((SIZE, 1))


def _noise(seed: int, noise: float, size: int = SIZE) -> Array64:
    upper = np.triu(np.random.default_rng(seed).normal(0, noise / np.sqrt(2), (size, size)), 1)
    return upper + upper.T + np.diag(np.random.default_rng(seed + 99).normal(0, noise, size))


@pytest.mark.parametrize("seed", range(4))
def test_pure_noise_gives_back_the_centre(seed: int) -> None:
    """All of the answer's 40 x 40 entries are noise; most of its norm has to go."""
    noise = _noise(seed, 0.05)
    found = denoised(CENTRE + noise, CENTRE, NOWHERE, 0.05)
    assert np.linalg.norm(found.matrix - CENTRE) < 0.45 * np.linalg.norm(noise)
    assert found.kept < 0.2


def test_without_noise_all_is_kept() -> None:
    truth = CENTRE + _noise(1, 0.05)
    for directions in (NOWHERE, np.eye(SIZE)[:, :3]):
        np.testing.assert_allclose(denoised(truth, CENTRE, directions, 0.0).matrix, truth, atol=1e-10)
    np.testing.assert_allclose(denoised(CENTRE, CENTRE, NOWHERE, 0.0).matrix, CENTRE, atol=1e-12)


@pytest.mark.parametrize("size", [1.5, 4.0])
def test_a_spike_beyond_the_semicircles_edge_is_kept(size: float) -> None:
    """The edge is ``noise sqrt(2 D)`` = 0.45; of a spike y, ``sqrt(y^2 - edge^2)`` at least is kept."""
    direction = np.random.default_rng(5).normal(size=SIZE)
    direction /= np.linalg.norm(direction)
    answer = CENTRE + size * np.outer(direction, direction) + _noise(3, 0.05)
    level = np.vdot(answer, CENTRE) / SIZE
    kept = direction @ denoised(answer, CENTRE, NOWHERE, 0.05).matrix @ direction - level
    seen = direction @ answer @ direction - level
    assert 0.9 * np.sqrt(seen**2 - 2 * SIZE * 0.05**2) < kept < 1.05 * seen


def test_directions_that_are_expected_to_change_keep_more() -> None:
    """A change of half the edge drowns in the bulk, but not where it is looked for."""
    direction = np.eye(SIZE)[:, :1]
    answer = CENTRE + 0.25 * direction @ direction.T + _noise(6, 0.05)
    blind, told = (denoised(answer, CENTRE, where, 0.05).matrix[0, 0] for where in (NOWHERE, direction))
    assert blind < 1.15 < told


@pytest.mark.parametrize("noise", [0.03, 0.1, 0.3, 0.5])
def test_a_direction_without_information_falls_to_what_noise_allows(noise: float) -> None:
    """To 1.5 times the noise, a tenth at least and a half at most."""
    direction, answer = np.eye(SIZE)[:, :1], np.diag(np.append(0.0, np.ones(SIZE - 1)))
    found = denoised(answer, CENTRE, direction, noise).matrix[0, 0]
    assert found == pytest.approx(np.clip(1.5 * noise, 0.1, 0.5))


def test_the_level_follows_the_answer() -> None:
    found = denoised(3 * CENTRE + _noise(7, 0.05), CENTRE, NOWHERE, 0.05).matrix
    assert found.trace() / SIZE == pytest.approx(3, rel=0.02)


@pytest.mark.parametrize("scale", [0.0, 1e-9, 1.0, 1e6, 1e100])
def test_it_is_positive_definite_and_below_the_most_there_can_be(scale: float) -> None:
    for seed in range(5):
        matrix = denoised(_noise(seed, scale), CENTRE, np.eye(SIZE)[:, :2], 0.3, most=50.0).matrix
        values = np.linalg.eigvalsh(matrix)
        assert 0.44 < values.min() <= values.max() < 50.01


@pytest.mark.parametrize("size", [1, 2])
def test_few_directions_that_all_change_leave_no_bulk(size: int) -> None:
    answer = np.eye(size) + _noise(1, 0.1, size)
    found = denoised(answer, np.eye(size), np.eye(size), 0.01)
    np.testing.assert_allclose(found.matrix, answer, atol=0.05)
    assert found.kept == 0
