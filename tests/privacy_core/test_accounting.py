"""Prices against second derivations: closed forms, exact sums, quadrature and another accountant."""

import itertools
import logging
import math
from fractions import Fraction
from typing import Any

import dp_accounting
import numpy as np
import pytest
from dp_accounting import pld, rdp
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import brentq

from app.privacy import accounting
from app.privacy.accounting import (
    INFINITE,
    MOST_NOISE,
    ORDERS,
    UNIT_BITS,
    add,
    compose_renyi,
    compute_cost,
    compute_epsilon,
)
from app.privacy.events import GaussianEvent, NonPrivateEvent, PoissonSampledEvent, SelfComposedEvent, UnknownEvent
from tests.privacy_core.divergences import sampled_exact, sampled_quadrature, table_delta, table_divergence

UNIT = 2.0**-UNIT_BITS
DELTA = 1e-6
RELATION = dp_accounting.NeighboringRelation.REPLACE_SPECIAL


def _sampled(rate: float, noise: float, count: int = 1) -> SelfComposedEvent:
    return SelfComposedEvent(PoissonSampledEvent(rate, GaussianEvent(noise)), count)


def _library(event: SelfComposedEvent) -> dp_accounting.DpEvent:
    assert isinstance(event.event, PoissonSampledEvent)
    gaussian = dp_accounting.GaussianDpEvent(event.event.event.noise_multiplier)
    sampled = dp_accounting.PoissonSampledDpEvent(event.event.sampling_rate, gaussian)
    return dp_accounting.SelfComposedDpEvent(sampled, event.count)


@pytest.mark.parametrize("noise", [0.05, 0.7, 1.0, 13.0, 1e5])
def test_a_gaussian_costs_its_closed_form_rounded_up(noise: float) -> None:
    """W9: a charge is never below the exact cost."""
    for order, amount in zip(ORDERS, compose_renyi((GaussianEvent(noise),)), strict=True):
        exact = Fraction(order) / (2 * Fraction(noise) ** 2) * 2**UNIT_BITS
        assert exact <= amount <= exact * (1 + Fraction(1, 10**11)) + 2


@pytest.mark.parametrize("rate", [1e-9, 1e-4, 0.002, 0.1, 0.5, 0.999])
@pytest.mark.parametrize("noise", [0.3, 1.0, 10.0, 1e4])
def test_a_sampled_gaussian_is_never_priced_below_the_exact_sum(rate: float, noise: float) -> None:
    """W9: the library loses digits where the divergence is small; the charge does not."""
    orders = (2.0, 5.0, 32.0, 128.0)
    many = 10**6
    for order, amount in zip(orders, compose_renyi((_sampled(rate, noise, many),), orders), strict=True):
        exact = Fraction(sampled_exact(rate, noise, int(order))) * many * 2**UNIT_BITS
        assert min(exact, INFINITE) <= amount <= exact * (1 + Fraction(1, 10**9)) + many // 10


@pytest.mark.parametrize(("rate", "noise"), [(0.002, 0.7), (0.02, 1.0), (0.1, 2.0), (0.3, 0.8), (0.9, 3.0)])
def test_the_price_dominates_both_directions_at_every_order(rate: float, noise: float) -> None:
    orders = (2.0, 3.2, 4.6, 7.5, 10.5, 24.0)
    for order, amount in zip(orders, compose_renyi((_sampled(rate, noise),), orders), strict=True):
        forward, backward = sampled_quadrature(rate, noise, order)
        assert backward <= forward * (1 + 1e-9)
        assert forward * (1 - 1e-9) - 1e-10 <= amount * UNIT <= forward * 1.05 + 1e-10
        if order.is_integer():
            assert amount * UNIT == pytest.approx(forward, rel=1e-6)


@pytest.mark.parametrize(("order", "limit"), [(4.0, 8.0), (8.0, 6.0), (32.0, 3.0)])
def test_the_conversion_is_attained_by_its_tight_pair(order: float, limit: float) -> None:
    delta = 1e-4
    bad, odds = order * delta, math.exp(limit) * order / (order - 1)
    p, q = np.array([bad, 1 - bad]), np.array([bad / odds, 1 - bad / odds])
    nats = float(table_divergence(p, q, np.array([order]))[0])
    stated = compute_epsilon((math.ceil(nats / UNIT),), delta, (order,))
    exact = float(brentq(lambda value: table_delta(p, q, value) - delta, 0.0, 50.0, xtol=1e-12))
    assert exact <= stated <= exact + 2e-3


PLANS = [
    (_sampled(1.0, 5.0, 3),),
    (_sampled(0.002, 1.1, 500),),
    (_sampled(0.02, 5.0, 500),),
    (_sampled(0.1, 0.9, 10), _sampled(0.02, 2.0, 100)),
    (_sampled(0.5, 0.6),),
    (_sampled(1e-6, 30.0, 10**6),),
    (_sampled(0.3, 1000.0, 10),),
]


@pytest.mark.parametrize("plan", PLANS, ids=range(len(PLANS)))
def test_no_stated_cost_is_below_the_librarys(plan: tuple[SelfComposedEvent, ...]) -> None:
    """W8: the ledger's charge is never less than dp-accounting's for the same events."""
    accountant = rdp.RdpAccountant(neighboring_relation=RELATION)
    for event in plan:
        accountant.compose(_library(event))
    for delta in (1e-3, 1e-6, 1e-10):
        theirs = accountant.get_epsilon(delta)
        assert theirs <= compute_cost(plan, delta) <= 1.02 * theirs + 0.02


@pytest.mark.parametrize("plan", PLANS[:3], ids=range(3))
def test_no_stated_cost_is_below_a_tight_accountants(plan: tuple[SelfComposedEvent, ...]) -> None:
    accountant = pld.PLDAccountant(RELATION, value_discretization_interval=1e-3)
    for event in plan:
        accountant.compose(_library(event))
    assert accountant.get_epsilon(DELTA) <= compute_cost(plan, DELTA)


def test_the_orders_are_a_subset_of_the_librarys() -> None:
    theirs = rdp.rdp_privacy_accountant.DEFAULT_RDP_ORDERS
    assert {round(order, 9) for order in ORDERS} <= {round(order, 9) for order in theirs}


def test_composition_is_addition() -> None:
    left, right = (_sampled(0.1, 1.3, 7),), (GaussianEvent(4.0), _sampled(0.02, 0.9, 100))
    sums = tuple(map(add, compose_renyi(left), compose_renyi(right)))
    assert compose_renyi((*left, *right)) == compose_renyi((*right, *left)) == sums


def test_many_tiny_charges_add_up_exactly() -> None:
    """W9: many charges below the resolution still cost their sum."""
    tiny, many = GaussianEvent(1e5), 2**30
    exact = Fraction(2) / (2 * Fraction(1e5) ** 2) * 2**UNIT_BITS * many
    together = compose_renyi((SelfComposedEvent(tiny, many),), (2.0,))[0]
    assert exact <= together <= exact * (1 + Fraction(1, 1000))
    assert compose_renyi((tiny,), (2.0,))[0] * many >= together
    assert compose_renyi((SelfComposedEvent(tiny, many // 2),) * 2, (2.0,))[0] >= together


def test_repeating_costs_the_sum_up_to_rounding() -> None:
    event = PoissonSampledEvent(0.05, GaussianEvent(0.8))
    one, repeated = compose_renyi((event,) * 40), compose_renyi((SelfComposedEvent(event, 40),))
    assert all(0 <= separate - joint <= 40 for separate, joint in zip(one, repeated, strict=True))


def test_saturated_amounts_have_an_infinite_epsilon() -> None:
    amounts = compose_renyi((SelfComposedEvent(GaussianEvent(0.01), 2**40),))
    assert set(amounts) == {INFINITE}
    assert add(amounts[0], INFINITE) == INFINITE
    assert compute_epsilon(amounts, DELTA) == math.inf


def test_an_empty_composition_costs_zero() -> None:
    assert compute_cost((), DELTA) == 0.0


@pytest.mark.parametrize("delta", [0.0, 1.0, -1e-6, 2.0, math.nan, math.inf])
def test_a_delta_out_of_range_is_refused(delta: float) -> None:
    with pytest.raises(ValueError, match="delta"):
        compute_cost((GaussianEvent(1.0),), delta)
    with pytest.raises(ValueError, match="delta"):
        compute_cost((), delta)


@pytest.mark.parametrize("length", [0, 1, len(ORDERS) + 1])
def test_amounts_of_another_length_are_refused(length: int) -> None:
    with pytest.raises(ValueError, match="order"):
        compute_epsilon((0,) * length, DELTA)


@pytest.mark.parametrize("stranger", [NonPrivateEvent(), object()])
def test_an_event_without_a_price_is_refused(stranger: Any) -> None:
    """W9: no event is priced at zero."""
    with pytest.raises(UnknownEvent):
        compute_cost((GaussianEvent(1.0), stranger), DELTA)


@pytest.mark.parametrize("value", [math.nan, -1.0, -1e-13])
def test_a_negative_or_nan_price_is_refused(value: float, monkeypatch: pytest.MonkeyPatch) -> None:
    class Broken:
        def __init__(self, orders: list[float], relation: object) -> None:
            self.rdp = [1.0] * (len(orders) - 1) + [value]

        def compose(self, event: object) -> None:
            return None

    monkeypatch.setattr("dp_accounting.rdp.RdpAccountant", Broken)
    with pytest.raises(UnknownEvent):
        accounting._divergences.__wrapped__(1.0, 1.0, (2.0, 3.0))


@pytest.mark.parametrize("rate", [5e-324, 1e-12, 0.5, 1 - 2**-53, 1.0])
@pytest.mark.parametrize("noise", [5e-324, 1e-160, 0.01, MOST_NOISE, 1e200, 1.7e308])
def test_extreme_events_have_a_price_on_the_safe_side(rate: float, noise: float) -> None:
    amounts = compose_renyi((_sampled(rate, noise),))
    inside = compose_renyi((_sampled(max(rate, 1e-9), min(noise, MOST_NOISE)),))
    assert all(0 < amount <= INFINITE for amount in amounts)
    assert noise < 1 or all(amount <= most for amount, most in zip(amounts, inside, strict=True))
    assert noise > 1e-3 or set(amounts) == {INFINITE}


def test_sampled_events_are_infinite_beyond_the_highest_order() -> None:
    assert compose_renyi((_sampled(0.1, 5.0),), (2048.0,)) == (INFINITE,)
    assert compose_renyi((_sampled(1.0, 5.0),), (2048.0,))[0] < INFINITE


def test_the_library_writes_nothing_to_the_streams(
    caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    """W3: no message of a library reaches the outside, not even by standard error."""
    with caplog.at_level(logging.DEBUG):
        for rate, noise in itertools.product((1e-6, 0.3, 0.5, 0.7), (0.05, 1.0, 300.0, 1e6)):
            assert compute_cost((_sampled(rate, noise),), DELTA) > 0
    assert not caplog.records
    assert capfd.readouterr() == ("", "")


def test_the_cache_of_prices_is_bounded() -> None:
    assert accounting._divergences.cache_info().maxsize == 4096


@given(st.floats(0, 1e12), st.integers(1, 10**6))
def test_a_charge_is_the_divergence_plus_its_error_rounded_up(divergence: float, count: int) -> None:
    """W9: the charge covers the errors of the library."""
    each = Fraction(divergence) * (1 + Fraction(1, 10**12)) + Fraction(1, 10**14)
    assert accounting._compute_charge(divergence, count) == min(math.ceil(each * count * 2**UNIT_BITS), INFINITE)
