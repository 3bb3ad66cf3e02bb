"""The filter: bounds, design, admission, and an adaptive tree of real events by quadrature."""

import itertools
import math
from decimal import Decimal, localcontext

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.privacy.accounting import INFINITE, UNIT_BITS, compose_renyi
from app.privacy.calibration import calibrate
from app.privacy.events import GaussianEvent, PoissonSampledEvent, PrivacyEvent, SelfComposedEvent
from app.privacy.filter import Filter, design
from app.privacy.ladder import CANDIDATES, WEIGHTS
from tests.privacy_core.divergences import Floats, gaussian_delta, sampled_delta

DELTA = 1e-6
DEFAULT = design(1.0, DELTA)


@pytest.mark.parametrize("epsilon", [0.01, 0.4, 1.0, 5.0, 20.0, 1000.0])
@pytest.mark.parametrize("delta", [1e-3, 1e-6, 1e-12])
def test_bounds_are_the_conversion_rounded_down(epsilon: float, delta: float) -> None:
    rule = Filter(epsilon, delta, (2.0, 3.25, 48.0, 8192.0), (0.25, 0.5, 0.125, 0.125))
    with localcontext() as context:
        context.prec = 50
        for order, weight, bound in zip(rule.orders, rule.weights, rule.bounds(), strict=True):
            alpha = Decimal(order)
            mass = (Decimal(weight) * Decimal(delta) * alpha).ln()
            exact = (Decimal(epsilon) - (1 - 1 / alpha).ln() + mass / (alpha - 1)) * 2**UNIT_BITS
            assert exact - 4 - abs(exact) / 10**12 <= bound <= exact


@pytest.mark.parametrize(
    ("epsilon", "order", "bound"), [(0.4, 49, 0.214), (1.0, 22, 0.536), (2.0, 12, 1.057), (5.0, 6.1, 2.825)]
)
def test_the_design_is_near_the_measured_best_order(epsilon: float, order: float, bound: float) -> None:
    """The best order has a weight of 0.9; the design admits nearly as many Gaussians."""
    rule = design(epsilon, DELTA)
    assert rule.orders[rule.main] == pytest.approx(order, rel=0.2)
    admitted = max(b * 2.0**-UNIT_BITS / a for a, b in zip(rule.orders, rule.bounds(), strict=True))
    assert 0.94 * bound / order < admitted < 1.01 * bound / order


@given(st.floats(0.02, 1e5), st.floats(-12.0, -2.0))
def test_a_design_is_deterministic_and_a_valid_filter(epsilon: float, exponent: float) -> None:
    rule = design(epsilon, 10**exponent)
    assert rule == design(epsilon, 10**exponent)
    assert WEIGHTS[0] / 2 < rule.weights[rule.main] <= WEIGHTS[0]
    assert math.fsum(rule.weights) <= 1
    assert set(rule.orders) <= set(CANDIDATES)
    assert min(rule.bounds()) > 0


@pytest.mark.parametrize("delta", [0.0, 1.0, -1.0, math.nan, math.inf])
def test_a_design_refuses_a_delta_out_of_range(delta: float) -> None:
    with pytest.raises(ValueError, match="delta"):
        design(1.0, delta)


@pytest.mark.parametrize("epsilon", [math.nan, math.inf, -math.inf, -1.0, 0.0, 1e-6])
def test_a_design_refuses_an_epsilon_that_admits_nothing(epsilon: float) -> None:
    with pytest.raises(ValueError, match="epsilon"):
        design(epsilon, DELTA)


@pytest.mark.parametrize(
    ("orders", "weights"),
    [
        ((), ()),
        ((2.0,), (1.0, 0.0)),
        ((2.0, 4.0), (0.5,)),
        ((2.0, 4.0), (0.6, 0.6)),
        ((2.0, 4.0), (1.0, 2**-60)),
        ((2.0, 4.0), (1.1, -0.2)),
        ((2.0,), (0.0,)),
        ((2.0,), (math.nan,)),
        ((2.0,), (math.inf,)),
        ((1.0,), (1.0,)),
        ((0.5,), (1.0,)),
        ((math.inf,), (1.0,)),
        ((math.nan,), (1.0,)),
    ],
)
def test_weights_that_make_no_union_bound_are_refused(orders: tuple[float, ...], weights: tuple[float, ...]) -> None:
    """W9: more weight than one would spend more than delta."""
    with pytest.raises(ValueError, match="filter"):
        Filter(1.0, DELTA, orders, weights)


@pytest.mark.parametrize("offset", [0, 1])
def test_one_order_within_its_bound_is_enough_and_its_bound_is_sharp(offset: int) -> None:
    bounds = DEFAULT.bounds()
    for index in range(len(bounds)):
        amounts = [INFINITE] * len(bounds)
        amounts[index] = bounds[index] + offset
        assert DEFAULT.admits(amounts) is (offset == 0)


def test_amounts_infinite_at_every_order_are_refused() -> None:
    huge = Filter(1e9, DELTA, (2.0,), (1.0,))
    assert huge.bounds()[0] > INFINITE
    assert not huge.admits((INFINITE,))


@pytest.mark.parametrize("length", [0, 1, len(DEFAULT.orders) + 1])
def test_a_vector_of_another_length_is_refused(length: int) -> None:
    with pytest.raises(ValueError, match="argument"):
        DEFAULT.admits((0,) * length)


amounts = st.tuples(*(st.integers(0, 2 * bound) for bound in DEFAULT.bounds()))


@given(amounts, st.floats(-1.0, 3.0), st.floats(-1.0, 3.0))
def test_a_lowered_limit_admits_less_and_a_raised_one_no_more(spent: tuple[int, ...], one: float, other: float) -> None:
    low, high = sorted((one, other))
    assert not DEFAULT.admits(spent, low) or DEFAULT.admits(spent, high)
    assert not DEFAULT.admits(spent, high) or DEFAULT.admits(spent)


def test_a_limit_above_the_opened_one_has_no_effect() -> None:
    """W9: bounds are fixed at opening; a higher limit needs a further tranche."""
    assert DEFAULT.bounds(2.0) == DEFAULT.bounds(math.inf) == DEFAULT.bounds() != DEFAULT.bounds(0.9)


def test_a_limit_that_is_nan_is_refused() -> None:
    with pytest.raises(ValueError, match="NaN"):
        DEFAULT.admits([0] * len(DEFAULT.orders), math.nan)


@given(st.data(), st.lists(amounts, min_size=1, max_size=5))
def test_the_order_of_reservations_does_not_matter(data: st.DataObject, jobs: list[tuple[int, ...]]) -> None:
    """W9: jobs that fit together fit in every order and after every refund; admission does not depend on history."""
    total = [sum(column) for column in zip(*jobs, strict=True)]
    shuffled = data.draw(st.permutations(jobs))
    prefixes = list(itertools.accumulate(shuffled, lambda left, right: tuple(map(sum, zip(left, right, strict=True)))))
    assert list(prefixes[-1]) == total
    admitted = [DEFAULT.admits(prefix) for prefix in prefixes]
    assert admitted == sorted(admitted, reverse=True)
    assert admitted[-1] is DEFAULT.admits(total)


def _find_least_noise(rule: Filter, first: PrivacyEvent, rate: float) -> float:
    """Find the least noise of a second event that the filter admits after ``first``.

    The second event has the sampling rate ``rate``.
    """
    low, high = -3.0, 12.0
    for _ in range(25):
        middle = (low + high) / 2
        second = PoissonSampledEvent(rate, GaussianEvent(math.exp(middle)))
        fits = rule.admits(compose_renyi((first, second), rule.orders))
        low, high = (low, middle) if fits else (middle, high)
    return math.exp(high)


def _backward(rate: float, noise: float, epsilon: Floats) -> Floats:
    """Compute the hockey-stick divergence of base from mixture by duality."""
    odds = np.exp(np.minimum(epsilon, 50.0))
    return np.asarray(np.maximum(1 - odds + odds * sampled_delta(rate, noise, -np.minimum(epsilon, 50.0)), 0.0))


@pytest.mark.parametrize(("limit", "rates"), [(1.0, (0.02, 1.0)), (4.0, (1.0, 0.01)), (4.0, (0.1, 0.002))])
@pytest.mark.parametrize("share", [0.3, 0.8])
def test_an_adaptive_tree_of_real_events_stays_within_delta(
    limit: float, rates: tuple[float, float], share: float
) -> None:
    """W9: after one Gaussian answer the adversary picks the worse of two events, as large as the filter admits."""
    delta = 1e-3
    rule = design(limit, delta)
    first = GaussianEvent(calibrate(lambda noise: (GaussianEvent(noise),), share * limit, delta))
    noises = [_find_least_noise(rule, first, rate) for rate in rates]
    sigma = first.noise_multiplier
    y = np.linspace(-14 * sigma, 14 * sigma + 1, 20_001)
    loss = (2 * y - 1) / (2 * sigma**2)
    forward = [
        sampled_delta(rate, noise, limit - loss) if rate < 1 else gaussian_delta(noise, limit - loss)
        for rate, noise in zip(rates, noises, strict=True)
    ]
    backward = [_backward(rate, noise, limit + loss) for rate, noise in zip(rates, noises, strict=True)]
    base = np.exp(-(y**2) / (2 * sigma**2)) / (sigma * math.sqrt(2 * math.pi))
    moved = np.exp(-((y - 1) ** 2) / (2 * sigma**2)) / (sigma * math.sqrt(2 * math.pi))
    step = float(y[1] - y[0])
    assert 1e-3 * delta < float((moved * np.maximum(*forward)).sum()) * step <= delta
    assert 0 <= float((base * np.maximum(*backward)).sum()) * step <= delta


@pytest.mark.parametrize("epsilon", [0.1, 0.5, 1.0, 2.0, 5.0, 12.0])
@pytest.mark.parametrize(("rate", "count"), [(1.0, 1), (1.0, 1000), (0.1, 100), (0.1, 1000), (0.02, 320), (0.02, 5000)])
def test_a_new_filter_admits_one_job_of_nearly_the_whole_limit(epsilon: float, rate: float, count: int) -> None:
    """A calibrated job needs at most 5 % more noise to fit: from a rate of 0.02 on, unless the steps are few."""

    def job(noise: float) -> tuple[SelfComposedEvent, ...]:
        return (SelfComposedEvent(PoissonSampledEvent(rate, GaussianEvent(noise)), count),)

    rule = design(epsilon, DELTA)
    assert rule.admits(compose_renyi(job(1.05 * calibrate(job, epsilon, DELTA)), rule.orders))
