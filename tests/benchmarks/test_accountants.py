"""The comparison of accountants: the independent derivation, the stored prices, and the search for shortfalls."""

import math
from pathlib import Path

import mpmath
import numpy as np
import pytest

from app.privacy.accounting import ORDERS
from benchmarks.accountants.__main__ import OPINIONS, PRICES, read_csv
from benchmarks.accountants.environments import ask, read_requirements
from benchmarks.accountants.opinions import NAMES, find_differences, give_opinion, make_cases, trace_hull
from benchmarks.accountants.points import (
    FRACTIONS,
    WHOLE,
    Point,
    find_shortfalls,
    list_points,
    price_by_definition,
    price_by_ledger,
)
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
    assert len(list_points()) >= 200
    assert sorted((*WHOLE, *FRACTIONS)) == sorted(ORDERS)


def test_statistics_of_a_perfect_attack() -> None:
    case = make_cases()[-1]
    found = give_opinion(case)
    assert found["area"] == pytest.approx(1.0, abs=1e-3)
    assert found["power"] > 0.99


def test_hull_leaves_out_thresholds_below_it() -> None:
    scores, present = np.array([4.0, 3.0, 2.0, 1.0, 1.0, 0.0]), np.array([1.0, 0.0, 0.0, 1.0, 0.0, 1.0])
    false, true = trace_hull(scores, present)
    assert false.tolist() == [0, 0, 1]
    assert true.tolist() == pytest.approx([0, 1 / 3, 1])


def test_stored_statistics_are_those_of_both_libraries() -> None:
    stored = read_csv(OPINIONS)
    assert list(find_differences(stored)) == []
    again = [give_opinion(case)[name] for case in make_cases() for name in NAMES]
    assert [each["here"] for each in stored] == pytest.approx(again, rel=1e-9)


def test_a_difference_of_statistics_is_found() -> None:
    assert list(find_differences([{"here": 1.0, "jax_privacy": 1.001}])) != []
    assert list(find_differences([{"here": 1.0, "jax_privacy": math.nan}])) != []


def test_w9_the_ledger_is_never_below_the_stored_prices() -> None:
    """W9: the ledger of today against the prices of TensorFlow Privacy and of other derivations at every point."""
    stored = read_csv(PRICES)
    assert [Point(each["rate"], each["noise"], int(each["count"]), each["delta"]) for each in stored] == list_points()
    found = [
        (point, name)
        for point, record in zip(list_points(), stored, strict=True)
        for name in find_shortfalls(record | price_by_ledger(point))
    ]
    assert found == [], "W9: the ledger charges less than another accountant"


@pytest.mark.sweep
@pytest.mark.services
@pytest.mark.timeout(600)
def test_w9_the_ledger_is_never_below_tensorflow_privacy(tmp_path: Path) -> None:
    """W9: the package is installed in a separate environment, and asked. CI compares its stored prices."""
    points = [point for point in list_points() if point.count < 1000][::20]
    request = {"points": [[point.rate, point.noise, point.count, point.delta] for point in points]}
    prices = ask("tensorflow-privacy", "tensorflow_privacy_prices", request, tmp_path)["prices"]
    for name in ("tensorflow_privacy", "tensorflow_privacy_losses"):
        for point, price in zip(points, prices[name], strict=True):
            assert 0 < price <= price_by_ledger(point)["ledger"] + 1e-9, (point, name)


@pytest.mark.parametrize("name", ["tensorflow-privacy", "jax-privacy"])
def test_requirements_are_pinned_and_name_no_host(name: str) -> None:
    lines = read_requirements(name)
    assert all(line.count("==") == 1 and "/" not in line for line in lines)
    assert any(line.startswith(f"{name}==") for line in lines)
