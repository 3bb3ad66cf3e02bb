"""Columns of two values, told by noised answers."""

import numpy as np
import pytest

from app.inference.core.model import Array64
from app.inference.methods.surrogate.two_valued import Winsorisations, two_valued
from support.surrogate_tables import compute_tail_sums

ROWS = 100_000
TIMES = 2_000
RNG = np.random.default_rng(6)
_EXPONENTIAL = RNG.exponential(size=ROWS)
AMOUNTS: dict[str, Array64] = {
    "exponential": _EXPONENTIAL,
    "cut off at a bound": np.asarray(np.minimum(_EXPONENTIAL, 5)),
    "beta": RNG.beta(1, 10, ROWS),
    "log-normal": np.asarray(np.exp(RNG.normal(size=ROWS))),
    "counts": RNG.poisson(RNG.gamma(1, 1, ROWS)).astype(np.float64),
    "Student's t": RNG.standard_t(3, ROWS),
    "bimodal": RNG.normal(size=ROWS) + 8 * (RNG.random(ROWS) < 0.3),
}
ERRORS = (0.0005, 0.001, 0.002, 0.003, 0.005, 0.01, 0.02, 0.05)
"""Of sums, as shares of the rows."""


def _flags(share: float) -> Array64:
    return np.asarray((RNG.random(ROWS) < share).astype(np.float64))


def _said(column: Array64, error: float = 0.005) -> Winsorisations:
    t = (column - column.mean()) / column.std()
    near, far, mean = compute_tail_sums(t[:, None]) / len(t) * np.array([2.5**2, 5**2, 2 * 2.5])[:, None]
    return Winsorisations(near, far, mean, np.array([error]), np.array([error]), error / 3)


def _noised(column: Array64, error: float) -> Winsorisations:
    """As said by sums, and by variances three times as uncertain."""
    said = _said(column)
    noise = RNG.standard_normal((4, TIMES)) * error
    near_error, far_error = (np.full(TIMES, error * np.hypot(3, weight)) for weight in (2.5**2, 5**2))
    return Winsorisations(
        said.near * (1 + 3 * noise[3]) + 2.5**2 * noise[0],
        said.far * (1 + 3 * noise[3]) + 5**2 * noise[1],
        said.mean + 5 * noise[2],
        near_error,
        far_error,
        mean_error=5 * error,
    )


@pytest.mark.parametrize("distance", [3.1, 3.5, 4.0, 4.5, 4.9])
@pytest.mark.parametrize("error", [0.0, 0.005])
def test_two_values_are_found_where_they_are(distance: float, error: float) -> None:
    share = 1 / (1 + distance**2)
    said = two_valued(_said(7 - 3 * _flags(share), error))
    assert said.found
    assert said.distance == pytest.approx(distance, rel=0.03)


@pytest.mark.parametrize("law", AMOUNTS)
def test_amounts_are_none(law: str) -> None:
    assert not two_valued(_said(AMOUNTS[law])).found


@pytest.mark.parametrize("law", AMOUNTS)
def test_noise_does_not_make_two_values_of_amounts(law: str) -> None:
    """Log-normal ones at one noise, in one of twelve; all others hardly ever, at any."""
    assert max(two_valued(_noised(AMOUNTS[law], error)).found.mean() for error in ERRORS) < 0.12


@pytest.mark.parametrize(("share", "least"), [(0.05, 0.98), (0.07, 0.98), (0.09, 0.9)])
def test_noise_hides_two_values_only_where_it_could_make_them(share: float, least: float) -> None:
    column = _flags(share)
    assert two_valued(_noised(column, 0.001)).found.mean() > least
    assert two_valued(_noised(column, 0.05)).found.mean() < 0.05


@pytest.mark.parametrize("share", [0.5, 0.2, 0.11, 0.03, 0.001])
def test_neither_are_many_nor_few(share: float) -> None:
    """What winsorising does not reach, or further out than it does, even if noise hides that."""
    said = _said(_flags(share))
    assert not two_valued(said).found
    assert not two_valued(said._replace(far=np.ones(1))).found


@pytest.mark.parametrize(
    ("near", "far", "mean", "told"),
    [(0.01, 0.5, 0.01, True), (0.01, 0.03, 0.5, True), (0.01, 0.5, 0.5, False), (0.1, 0.5, 0.01, False)],
)
def test_either_tells_them_from_amounts_where_noise_does_not_hide_it(
    near: float, far: float, mean: float, told: bool
) -> None:
    """The mean, whose error grows with that of the mean square, or what is taken beyond FAR."""
    said = _said(_flags(0.07))
    noised = said._replace(near_error=np.array([near]), far_error=np.array([far]), mean_error=mean)
    assert two_valued(noised).found == told


def test_what_two_values_would_not_say_speaks_against_them() -> None:
    said = _said(_flags(0.07))
    assert not two_valued(said._replace(far=said.far - 0.05)).found
    for times in (0.7, 1.5):
        assert not two_valued(said._replace(mean=times * said.mean)).found


def test_where_noise_hides_nothing_little_speaks_against_them() -> None:
    """A tenth of the mean: less than amounts lack, and more than noise does to it."""
    said = _said(_flags(0.07), 0.0003)
    assert two_valued(said).found
    for times in (0.9, 1.1):
        assert not two_valued(said._replace(mean=times * said.mean)).found


@pytest.mark.parametrize("distance", [2.8, 3.1, 4.0])
@pytest.mark.parametrize("error", ERRORS)
def test_two_values_mostly_stay_possible(distance: float, error: float) -> None:
    assert two_valued(_noised(_flags(1 / (1 + distance**2)), error)).possible.mean() > 0.6


def test_amounts_may_be_two_values_only_where_noise_hides_what_they_are() -> None:
    clear, noised = (two_valued(_noised(AMOUNTS["log-normal"], error)).possible.mean() for error in (0.001, 0.02))
    assert clear == 0
    assert noised > 0.5
