"""The chart of trade-off curves."""

import re
from itertools import pairwise
from statistics import NormalDist

import pytest

from app.budgets.risks import trace_limit, trace_spent
from app.dashboard.charts.trade_off import BOTTOM, HEIGHT, LEFT, RATES, RIGHT, TOP, WIDTH, draw_trade_off
from app.ledger import Exposure, Guarantee
from app.privacy.accounting import ORDERS, UNIT_BITS
from tests.dashboard.conftest import Open
from tests.dashboard.html_checks import find_faults
from tests.factories import rows
from tests.factories.worker import House


def read_curve(svg: str, name: str) -> list[tuple[float, float]]:
    """Read false and true positives of a curve from its coordinates."""
    [points] = re.findall(rf'class="{name}" fill="none" points="([^"]*)"', svg)
    pairs = (map(float, point.split(",")) for point in points.split())
    return [((x - LEFT) / (WIDTH - LEFT - RIGHT), (HEIGHT - BOTTOM - y) / (HEIGHT - BOTTOM - TOP)) for x, y in pairs]


def test_the_curve_of_gaussian_noise_is_exact() -> None:
    """Against the normal law itself: the best test is a threshold (Neyman and Pearson)."""
    shift, normal = 0.8, NormalDist()
    exposure = Exposure(tuple(round(order * shift**2 / 2 * 2**UNIT_BITS) for order in ORDERS), ORDERS)
    drawn = read_curve(draw_trade_off(RATES, trace_spent(exposure, 1.0, 1e-6, RATES)), "chart-line")
    for false, true in drawn[3:-3]:
        threshold = normal.inv_cdf(1 - false)
        assert true == pytest.approx(1 - NormalDist(shift).cdf(threshold), abs=0.01)


def test_the_curve_of_the_limit_bounds_every_private_test() -> None:
    """It is above guessing, at most e**epsilon times as high, and never falls."""
    guarantee = Guarantee(2.0, 1e-6, (), "rdp", 1)
    curve = trace_limit(guarantee, RATES)
    assert all(before <= after for before, after in pairwise(curve))
    assert all(rate < height <= min(1.0, 7.39 * rate + 1e-6) for rate, height in zip(RATES, curve, strict=True))


def test_the_page_shows_the_spent_curve_once_data_was_opened(house: House, browse: Open, owner: rows.Key) -> None:
    dataset = house.ready_dataset(owner)
    browser, address = browse(owner), f"/dashboard/populations/{dataset}"
    before = browser.get(address).text
    assert 'class="chart-limit" fill="none"' in before
    assert 'class="chart-line" fill="none"' not in before
    house.run(house.job(dataset, owner))
    after = browser.get(address).text
    assert read_curve(after, "chart-line") != read_curve(after, "chart-limit")
    assert find_faults(before) == find_faults(after) == []
