"""Discrete noise priced as continuous noise: each bound against a second derivation."""

import math
from decimal import Decimal, localcontext

import numpy as np
import pytest
from scipy.special import ndtr
from scipy.stats import norm

from app.privacy import discretisation
from app.privacy.accounting import ORDERS, SURCHARGE, UNIT_BITS, compose_renyi
from app.privacy.discretisation import (
    FINEST_SCALE,
    GREATEST_EPSILON,
    GREATEST_LENGTH,
    LEAST_DELTA,
    LEAST_FINE_SCALE,
    REACH,
    SET_ASIDE,
    bound_excess_nats,
    bound_log_tail_delta,
)
from app.privacy.events import MAX_COUNT, GaussianEvent, PoissonSampledEvent, SelfComposedEvent
from app.privacy.filter import design
from app.privacy.ladder import CANDIDATES
from tests.privacy_core.divergences import Floats, gaussian_delta, sampled_delta, table_delta, table_divergence

LIBRARY_ERROR = 4e-16


def _discrete(scale: float, reach: int) -> Floats:
    k = np.arange(-reach, reach + 1, dtype=np.float64)
    mass = np.exp(-(k**2) / (2 * scale**2))
    return np.asarray(mass / math.fsum(mass))


def _rounded(scale: float, reach: int) -> Floats:
    k = np.abs(np.arange(-reach, reach + 1, dtype=np.float64))
    return np.asarray(ndtr((0.5 - k) / scale) - ndtr(-(0.5 + k) / scale))


@pytest.mark.parametrize("scale", [1.0, 3.0, 10.0, 100.0, 1000.0])
def test_the_total_variation_distance_is_the_leading_term(scale: float) -> None:
    """By direct summation: 0.0202 / scale**2 in total, which for the finest grid is below 1e-35 a value."""
    reach = int(12 * scale) + 2
    exact = 0.5 * math.fsum(np.abs(_discrete(scale, reach) - _rounded(scale, reach))) * scale**2
    leading = 4 * math.exp(-0.5) / math.sqrt(2 * math.pi) / 48
    assert exact <= leading
    if scale >= 10:
        assert exact == pytest.approx(leading, rel=0.01)
    assert leading / LEAST_FINE_SCALE**2 < 1e-35


@pytest.mark.parametrize("scale", [1.0, 3.0, 10.0, 40.0])
def test_discrete_and_rounded_masses_differ_by_the_stated_factor(scale: float) -> None:
    """By quadrature: ``-1/(24 s**2) <= log q/p <= z**2/(24 s**2)``, and the upper bound is nearly attained."""
    with localcontext() as context:
        context.prec = 60
        s, reach = Decimal(scale), int(14 * scale)
        weights = [(-(Decimal(k) ** 2) / (2 * s**2)).exp() for k in range(-reach, reach + 1)]
        total = sum(weights)
        slack = (-19 * s**2).exp() * 3 + Decimal(10) ** -30
        for k in range(0, int(8 * scale), max(1, int(scale))):
            mass = weights[reach + k] / total
            log_ratio = (_cell(k, s) / mass).ln()
            z = Decimal(k) / s
            assert -1 / (24 * s**2) - slack <= log_ratio <= z**2 / (24 * s**2) + slack
            if z >= 4 and scale >= 10:
                assert log_ratio > Decimal("0.9") * (z**2 - 1) / (24 * s**2)


def _cell(k: int, scale: Decimal) -> Decimal:
    """Compute the normal mass of ``[k - 1/2, k + 1/2]`` by Gauss-Legendre quadrature.

    It has the precision of the decimal context.
    """
    nodes, weights = np.polynomial.legendre.leggauss(24)
    pairs = [(Decimal(float(x)), Decimal(float(w))) for x, w in zip(nodes, weights, strict=True)]
    heights = [(w / 2) * (-((k + x / 2) ** 2) / (2 * scale**2)).exp() for x, w in pairs]
    exact_weights = sum((w for _, w in pairs), Decimal(0)) / 2
    return sum(heights, Decimal(0)) / exact_weights / (scale * Decimal(2 * math.pi).sqrt())


@pytest.mark.parametrize("scale", [20.0, 60.0])
@pytest.mark.parametrize("rate", [1.0, 0.1])
def test_discrete_noise_adds_less_to_a_divergence_than_stated(
    scale: float, rate: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """W7: the same formula at small scales, where the difference shows, against sums over all integers."""
    reach, sensitivity = 9.0, int(scale) // 4
    monkeypatch.setattr(discretisation, "LEAST_FINE_SCALE", scale)
    monkeypatch.setattr(discretisation, "REACH", reach)
    ends = int(reach * scale)
    orders = np.array([2.0, 3.0, 8.0, 24.0])

    def divergence(masses: Floats) -> Floats:
        base, moved = np.pad(masses, (0, sensitivity)), np.pad(masses, (sensitivity, 0))
        positive = (base > 0) & (moved > 0)
        p, q = (1 - rate) * base[positive] + rate * moved[positive], base[positive]
        return table_divergence(p, q, orders)

    discrete, continuous = divergence(_discrete(scale, ends)), divergence(_rounded(scale, ends))
    assert np.all(discrete - continuous <= bound_excess_nats(1))


@pytest.mark.parametrize("rate", [1.0, 0.1])
@pytest.mark.parametrize("epsilon", [0.5, 2.0, 4.0])
def test_integer_noise_keeps_the_continuous_price_with_tails(rate: float, epsilon: float) -> None:
    """W7: integer noise keeps the continuous price once epsilon includes the excess and delta the tails."""
    sensitivity, noise = 128, 1.0
    reach = int(14 * noise * sensitivity)
    base = _discrete(noise * sensitivity, reach)
    base, moved = np.pad(base, (0, sensitivity)), np.pad(base, (sensitivity, 0))
    mixture = (1 - rate) * base + rate * moved
    shift = 14.0**2 / (24 * sensitivity**2)
    below = epsilon - 2 * shift
    continuous = float(gaussian_delta(noise, below) if rate == 1 else sampled_delta(rate, noise, below))
    tails = (1 + math.exp(epsilon)) * 4 * float(norm.sf(13.0))
    assert table_delta(mixture, base, epsilon) <= continuous * math.exp(shift) + tails


def test_the_surcharge_covers_the_longest_answer_and_the_library() -> None:
    """W9: the surcharge of each price exceeds the excess of discrete noise for an answer of any size."""
    assert bound_excess_nats(GREATEST_LENGTH) + LIBRARY_ERROR < SURCHARGE
    by_hand = 3 * GREATEST_LENGTH * 3600 / 24 / (0.75 * 2.0**57) ** 2
    assert bound_excess_nats(GREATEST_LENGTH) == pytest.approx(by_hand)
    assert min(*ORDERS, *CANDIDATES) >= 2


@pytest.mark.parametrize("event", [GaussianEvent(1e6), PoissonSampledEvent(1e-12, GaussianEvent(1e6))])
@pytest.mark.parametrize("count", [1, 1000, MAX_COUNT])
def test_every_event_is_charged_at_least_the_surcharge(event: GaussianEvent | PoissonSampledEvent, count: int) -> None:
    charged = compose_renyi((event if count == 1 else SelfComposedEvent(event, count),))
    assert min(charged) * 2.0**-UNIT_BITS >= count * SURCHARGE


def test_set_aside_covers_every_value_an_account_can_pay_for() -> None:
    """W9: the worst case is an account of the greatest limit, with events of the longest answer.

    A bound is never above ``epsilon + log 2``, and an event never costs less than the surcharge. The arithmetic is
    exact.
    """
    events = (GREATEST_EPSILON + math.log(2)) / SURCHARGE
    values = events * GREATEST_LENGTH
    with localcontext() as context:
        context.prec = 50
        z = Decimal(REACH)
        tail = 2 * (-(z**2) / 2).exp() / (z * Decimal(2 * math.pi).sqrt())
        exact = (1 + Decimal(GREATEST_EPSILON).exp()) * Decimal(values) * 2 * tail
        assert exact <= Decimal(bound_log_tail_delta(GREATEST_EPSILON, values)).exp() <= exact * Decimal("1.01")
        assert exact < Decimal(SET_ASIDE) < Decimal("1e-20")


@pytest.mark.parametrize("z", [3.0, 10.0, 30.0])
def test_the_tail_bound_is_above_the_normal_tail(z: float, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(discretisation, "REACH", z)
    exact = math.log1p(math.exp(2.0)) + math.log(1000) + 2 * math.log(2) + float(norm.logsf(z))
    assert exact <= bound_log_tail_delta(2.0, 1000.0) <= exact + 0.3


def test_noise_saturates_only_beyond_its_reach() -> None:
    assert 2**63 / FINEST_SCALE >= REACH + 4


@pytest.mark.parametrize("epsilon", [1e-2, 1.0, 20.0, GREATEST_EPSILON])
@pytest.mark.parametrize("delta", [1e-3, 1e-6, 1e-50, LEAST_DELTA])
def test_bounds_leave_more_of_delta_unused_than_set_aside(epsilon: float, delta: float) -> None:
    """W9: each order still holds if it converts at its share of delta less SET_ASIDE, in exact arithmetic."""
    try:
        rule = design(epsilon, delta)
    except ValueError:
        assert epsilon < 1  # no filter exists here
        return
    with localcontext() as context:
        context.prec = 320
        left = Decimal(delta) - Decimal(SET_ASIDE)
        for order, weight, bound in zip(rule.orders, rule.weights, rule.bounds(), strict=True):
            alpha = Decimal(order)
            mass = (Decimal(weight) * left * alpha).ln()
            assert bound <= (Decimal(epsilon) - (1 - 1 / alpha).ln() + mass / (alpha - 1)) * 2**UNIT_BITS
