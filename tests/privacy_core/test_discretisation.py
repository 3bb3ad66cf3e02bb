"""The price of integers: the discrete Gaussian against the continuous one that is accounted."""

import math

import numpy as np
import pytest
from scipy.special import ndtr

from app.privacy.accounting import DISCRETISATION_SHARE, composable
from app.privacy.discretisation import distance
from app.privacy.events import GaussianEvent, NonPrivateEvent, PoissonSampledEvent, SelfComposedEvent, UnknownEvent
from tests.privacy_core.divergences import Floats, gaussian_delta, sampled_delta, table_delta


def _discrete(scale: float, reach: int) -> Floats:
    k = np.arange(-reach, reach + 1, dtype=np.float64)
    mass = np.exp(-(k**2) / (2 * scale**2))
    return np.asarray(mass / math.fsum(mass))


def _rounded(scale: float, reach: int) -> Floats:
    k = np.abs(np.arange(-reach, reach + 1, dtype=np.float64))
    return np.asarray(ndtr((0.5 - k) / scale) - ndtr(-(0.5 + k) / scale))


@pytest.mark.parametrize("scale", [1.0, 3.0, 10.0, 100.0, 1000.0])
def test_the_constant_bounds_the_summed_distance_closely(scale: float) -> None:
    reach = int(12 * scale) + 2
    exact = 0.5 * math.fsum(np.abs(_discrete(scale, reach) - _rounded(scale, reach))) * scale**2
    charged = distance((GaussianEvent(256.0),), 1, 0) * 256.0**2
    leading = 4 * math.exp(-0.5) / math.sqrt(2 * math.pi) / 48
    assert exact <= leading <= charged
    assert charged <= 1.01 * leading
    if scale >= 10:
        assert exact == pytest.approx(leading, rel=0.01)


@pytest.mark.parametrize("rate", [1.0, 0.1])
@pytest.mark.parametrize("epsilon", [0.5, 2.0, 4.0])
def test_both_neighbours_distributions_are_replaced(rate: float, epsilon: float) -> None:
    """W7: the integers that are released keep the continuous price once ``(1 + e^epsilon) t`` joins delta."""
    sensitivity, noise = 128, 1.0
    reach = int(14 * noise * sensitivity)
    base = _discrete(noise * sensitivity, reach)
    base, moved = np.pad(base, (0, sensitivity)), np.pad(base, (sensitivity, 0))
    mixture = (1 - rate) * base + rate * moved
    event = GaussianEvent(noise) if rate == 1 else PoissonSampledEvent(rate, GaussianEvent(noise))
    continuous = float(gaussian_delta(noise, epsilon) if rate == 1 else sampled_delta(rate, noise, epsilon))
    shift = (1 + math.exp(epsilon)) * distance((event,), 1, 7)
    assert table_delta(mixture, base, epsilon) <= continuous + shift


def test_every_value_of_every_answer_is_charged() -> None:
    event = PoissonSampledEvent(0.1, GaussianEvent(2.0))
    single = distance((event,), 1, 24)
    assert distance((SelfComposedEvent(event, 500),), 100, 24) == pytest.approx(50_000 * single)
    assert distance((event, GaussianEvent(2.0)), 1, 24) == pytest.approx(2 * single)
    assert distance((), 1, 24) < 1e-300


def test_noise_beyond_the_priced_range_is_charged_as_the_most() -> None:
    assert distance((GaussianEvent(1e300),), 1, 24) == distance((GaussianEvent(1e6),), 1, 24) > 0


@pytest.mark.parametrize(
    ("noise", "length", "bits"), [(0.5, 1, 7), (1.0, 0, 24), (1.0, -1, 24), (1.0, 1, -1), (1.0, 1, 53), (1.0, 1, 10**6)]
)
def test_what_the_leading_term_does_not_cover_is_refused(noise: float, length: int, bits: int) -> None:
    with pytest.raises(UnknownEvent):
        distance((GaussianEvent(noise),), length, bits)


def test_an_event_without_noise_is_refused() -> None:
    with pytest.raises(UnknownEvent):
        distance((NonPrivateEvent(),), 1, 24)


def test_the_share_is_what_composition_leaves() -> None:
    delta = 1e-6
    assert composable(delta) + delta * DISCRETISATION_SHARE <= delta * (1 + 1e-15)
