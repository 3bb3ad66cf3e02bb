"""Whether noised answers say that rows are isotropic: believed where they agree, refused where they cannot tell."""

from collections.abc import Callable

import numpy as np
import pytest

from app.inference.core.model import Array64
from app.inference.methods.surrogate.isotropy import Isotropic, isotropic
from app.inference.methods.surrogate.moments import Moments
from app.inference.methods.surrogate.population import Lengths
from app.inference.private_zone.queries.lengths import BINS
from support.surrogate_tables import declare_plain
from tests.inference.methods.surrogate.test_moments import sums

ROWS, COLUMNS, LARGEST, SCALE = 20_000, 12, 200.0, 2.0


def _normal(rng: np.random.Generator) -> Array64:
    return rng.standard_normal((ROWS, COLUMNS))


def _found(x: Array64, noise: float, slots: int = ROWS, seed: int = 1) -> Isotropic | None:
    """From both answers, with noise of that standard deviation relative to the slots."""
    rng, each = np.random.default_rng(seed), noise * slots
    answer = sums(x, SCALE)
    answer = answer + each * rng.standard_normal(len(answer))
    edges = LARGEST * 2.0 ** -np.arange(BINS - 1, 0, -1)
    place = BINS - 1 - np.searchsorted(edges, np.square(x).sum(axis=1), side="right")
    counts = np.bincount(place, minlength=BINS) + each * rng.standard_normal(BINS)
    moments = Moments(answer, SCALE, each, declare_plain(COLUMNS))
    return isotropic(moments.population(slots, intercept=True), moments, Lengths(counts, LARGEST, each), slots)


def test_normal_rows_are_believed_and_described() -> None:
    found = _found(0.7 * _normal(np.random.default_rng(0)) + 0.4, 0.005)
    assert found is not None
    assert found.count == pytest.approx(ROWS, rel=0.02)
    assert found.scale == pytest.approx(0.7, rel=0.02)
    np.testing.assert_allclose(found.mean, 0.4, atol=0.04)


def _skewed(rng: np.random.Generator) -> Array64:
    return np.asarray(rng.lognormal(0, 1, (ROWS, COLUMNS)) / 2)


def _heavy(rng: np.random.Generator) -> Array64:
    return np.asarray(rng.standard_t(3, (ROWS, COLUMNS)) / np.sqrt(3))


def _alike(rng: np.random.Generator) -> Array64:
    return np.asarray(np.sqrt(0.7) * _normal(rng) + np.sqrt(0.3) * rng.standard_normal((ROWS, 1)))


def _scaled(rng: np.random.Generator) -> Array64:
    """By little: lengths do not show it."""
    return _normal(rng) * np.linspace(0.9, 1.1, COLUMNS)


def _even(rng: np.random.Generator) -> Array64:
    return rng.choice([-1.0, 1.0], (ROWS, COLUMNS))


@pytest.mark.parametrize("rows", [_skewed, _heavy, _alike, _scaled, _even])
def test_other_rows_are_not(rows: Callable[[np.random.Generator], Array64]) -> None:
    assert _found(rows(np.random.default_rng(0)), 0.005) is None


@pytest.mark.parametrize("noise", [0.2, 1.0, 30.0])
def test_where_noise_hides_it_rows_are_not_believed_to_be(noise: float) -> None:
    assert all(_found(_normal(np.random.default_rng(0)), noise, seed=seed) is None for seed in range(20))


@pytest.mark.parametrize("value", [0.0, 1.0])
def test_tables_without_variance_are_not(value: float) -> None:
    assert _found(np.full((ROWS // 2, COLUMNS), value), 0.005) is None


def test_a_count_within_its_noise_of_the_slots_is_believed_to_be_all_of_them() -> None:
    x = _normal(np.random.default_rng(0))
    full = [_found(x, 0.03, seed=seed) for seed in range(40)]
    counts = np.array([found.count for found in full if found])
    assert len(counts) > 25
    assert np.abs(counts / ROWS - 1).mean() < 0.015  # noise alone: 0.024
    half = _found(x[: ROWS // 2], 0.005)
    assert half is not None
    assert half.count == pytest.approx(ROWS / 2, rel=0.03)
