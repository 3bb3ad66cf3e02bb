"""Columns of two values, declared or told by their mean and variance."""

import numpy as np
import pytest

from app.inference.methods.surrogate.declared import Declared
from app.inference.methods.surrogate.flags import Flags, flags

RNG = np.random.default_rng(5)


def _flags(mean: list[float], variance: list[float], uncertain: float = 0.01, known: Declared | None = None) -> Flags:
    nothing = Declared(np.full(len(mean), -1), np.zeros(len(mean), dtype=np.bool_))
    return flags(known or nothing, np.array(mean), np.array(variance), np.full(len(mean), uncertain))


@pytest.mark.parametrize("share", [0.04, 0.3, 0.5, 0.8])
@pytest.mark.parametrize("signs", [False, True])
def test_mean_and_variance_tell_what_has_two_values(share: float, signs: bool) -> None:
    """The rarer one lies ``sqrt((1 - p) / p)`` deviations away, on its side."""
    x = np.where(RNG.random(200_000) < share, 1.0, -1.0 if signs else 0.0)
    found = _flags([x.mean()], [x.var()])
    assert found.found.all()
    rarer = min(share, 1 - share)
    assert found.distance == pytest.approx(np.sqrt((1 - rarer) / rarer), rel=0.05)
    assert share == 0.5 or found.side == (1 if share < 0.5 else -1)


def test_numbers_are_no_flags() -> None:
    """Uniform, normal and skewed ones, flags in wider bounds, and counts that are declared to have more values."""
    n = 200_000
    columns = [
        RNG.uniform(-1, 1, n),
        RNG.uniform(0, 1, n),
        RNG.normal(0.3, 0.1, n),
        RNG.beta(0.5, 0.5, n),
        0.2 * (RNG.random(n) < 0.3),
        RNG.binomial(2, 0.3, n) / 2,
        RNG.exponential(0.1, n) - 0.9,
    ]
    assert not _flags([x.mean() for x in columns], [x.var() for x in columns]).found.any()


def test_a_variance_a_tenth_off_is_no_flags() -> None:
    """Where it is known to a hundredth; two hundredths may be noise."""
    assert _flags([0.3, -0.4], [1.02 * 0.21, 0.98 * 0.84]).found.all()
    for factor in (0.9, 1.1):
        assert not _flags([0.3, -0.4], [factor * 0.21, factor * 0.84]).found.any()


def test_uncertain_variances_tell_nothing_and_of_what_is_declared_next_to_nothing() -> None:
    """Declared ones need a fourth of the certainty; beyond, they may be in far fewer rows than they seem to be."""
    share, variance = [0.3, 0.3, -0.4], [0.21, 0.21, 0.84]
    known = Declared(np.array([0, -1, -1]), np.array([False, False, True]))
    assert not _flags(share, variance, uncertain=0.06).found.any()
    assert not _flags(share, variance, uncertain=0.25, known=known).found.any()
    found = _flags(share, variance, uncertain=0.15, known=known)
    assert found.found.tolist() == [True, False, True]
    np.testing.assert_allclose(found.distance[[0, 2]], np.sqrt([7 / 3, 7 / 3]))


@pytest.mark.parametrize("share", [0.03, 0.97])
def test_a_flag_of_few_rows_is_left_to_its_tail(share: float) -> None:
    known = Declared(np.array([0]), np.array([False]))
    assert not _flags([share], [share * (1 - share)], known=known).found.any()


@pytest.mark.parametrize("mean", [0.0, -0.2, 1.0, 3.0, np.inf, np.nan])
def test_what_cannot_be_a_share_is_none(mean: float) -> None:
    """Whatever noise makes of a mean: never a fault, and distances stay finite but for what is no number."""
    known = Declared(np.array([0]), np.array([False]))
    with np.errstate(invalid="ignore"):
        found = _flags([mean], [0.1], known=known)
    assert not found.found.any()
    assert np.isfinite(found.distance).all() or np.isnan(mean)
