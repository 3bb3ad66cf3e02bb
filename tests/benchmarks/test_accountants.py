"""The comparison of accountants: the independent derivation, the stored prices, and the search for shortfalls."""

import math

import mpmath
import numpy as np
import pytest

from app.privacy.accounting import ORDERS
from benchmarks.accountants import points
from benchmarks.accountants.environments import read_requirements
from benchmarks.accountants.opinions import compute_power, give_opinion, make_cases
from benchmarks.accountants.points import FRACTIONS, WHOLE, Point, find_shortfalls, price_by_definition, price_by_ledger
from support.renyi import convert, enclose_divergence, integrate_divergence
from tests.privacy_core.divergences import sampled_exact, sampled_quadrature


@pytest.mark.parametrize(("rate", "noise", "order"), [(0.02, 0.8, 2), (0.3, 4.0, 30), (0.001, 1.5, 128)])
def test_an_enclosure_contains_the_exact_divergence(rate: float, noise: float, order: int) -> None:
    """W9: interval arithmetic against sixty digits."""
    below, above = enclose_divergence(rate, noise, order)
    exact = mpmath.mpf(str(sampled_exact(rate, noise, order)))
    assert below <= exact * (1 + mpmath.mpf(10) ** -20)
    assert above >= exact * (1 - mpmath.mpf(10) ** -20)
    assert above - below <= mpmath.mpf(10) ** -15 * above


def test_full_batches_have_the_closed_form() -> None:
    below, above = enclose_divergence(1.0, 2.0, 5)
    assert float(below) == pytest.approx(5 / 8)
    assert below <= above


@pytest.mark.parametrize(("rate", "noise", "order"), [(0.02, 0.8, 3.2), (0.3, 4.0, 7.5)])
def test_quadrature_agrees_with_another_rule(rate: float, noise: float, order: float) -> None:
    """The divergence of the mixture is the larger of both directions."""
    forward, backward = sampled_quadrature(rate, noise, order)
    assert float(integrate_divergence(rate, noise, order)) == pytest.approx(forward, rel=1e-7)
    assert forward >= backward


def test_quadrature_meets_the_expansion_at_whole_orders() -> None:
    found = integrate_divergence(0.1, 1.5, 4.0)
    assert float(found) == pytest.approx(float(enclose_divergence(0.1, 1.5, 4)[0]), rel=1e-12)


def test_conversion_takes_the_least_order() -> None:
    nats = [mpmath.mpf(order) / 8 for order in (2, 5)]
    shares = zip((0.25, 0.625), (2, 5), strict=True)
    by_hand = min(n + math.log1p(-1 / a) - math.log(1e-6 * a) / (a - 1) for n, a in shares)
    assert convert(nats, (2.0, 5.0), 1e-6) == pytest.approx(by_hand, rel=1e-12)


@pytest.mark.parametrize("point", [Point(1.0, 4.0, 30, 1e-6), Point(0.1, 1.5, 30, 1e-6)])
@pytest.mark.long
def test_w9_the_ledger_is_never_below_the_definition(point: Point) -> None:
    """W9: to 1e-9 nats at integer orders, and to a share of 1e-4 at the others."""
    found = price_by_ledger(point) | price_by_definition(point) | {"losses_down": 0.0, "losses_up": 0.0}
    record: dict[str, float | None] = {}
    record.update(found)
    assert list(find_shortfalls(record)) == [], "W9: the ledger charges less than the definition"


@pytest.mark.parametrize("name", ["exact", "losses_down", "tensorflow_privacy", "whole", "fractions"])
def test_w9_a_higher_price_of_another_accountant_is_found(name: str) -> None:
    """W9: the comparison can fail, by each accountant."""
    equal = ("ledger", "ledger_whole", "ledger_fractions", "whole", "fractions", "losses_down", "losses_up", "exact")
    record: dict[str, float | None] = {each: 1.0 for each in (*equal, "tensorflow_privacy")}  # noqa: C420 (its type)
    assert list(find_shortfalls(record)) == []
    assert name in set(find_shortfalls({**record, name: 1.001}))


def test_points_are_many_and_orders_are_all_compared() -> None:
    assert len(points.list_points()) >= 200
    assert sorted((*WHOLE, *FRACTIONS)) == sorted(ORDERS)


def test_statistics_of_a_perfect_attack() -> None:
    case = make_cases()[-1]
    found = give_opinion(case)
    assert found["area"] == pytest.approx(1.0, abs=1e-3)
    assert found["power"] > 0.99


def test_power_is_that_of_the_best_threshold() -> None:
    scores, present = np.array([3.0, 2.0, 1.0, 0.0]), np.array([1.0, 0.0, 1.0, 0.0])
    assert compute_power(scores, present, 0.0) == pytest.approx(0.5)
    assert compute_power(scores, present, 0.5) == pytest.approx(1.0)


@pytest.mark.parametrize("name", ["tensorflow-privacy", "jax-privacy"])
def test_requirements_are_pinned_and_name_no_host(name: str) -> None:
    lines = read_requirements(name)
    assert all(line.count("==") == 1 and "/" not in line for line in lines)
    assert any(line.startswith(f"{name}==") for line in lines)
