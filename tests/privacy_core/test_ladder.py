"""The default filter's orders: a higher limit never admits less, for all events."""

import math
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.privacy.filter import Filter, design
from app.privacy.ladder import CANDIDATES, WEIGHTS, _build_ladder, choose_weights

deltas = st.floats(-200.0, -1.0).map(lambda exponent: 10.0**exponent)
limits = st.floats(math.log(1e-3), math.log(1000.0)).map(math.exp)
EDGES = [
    (delta, limit) for delta in (1e-1, 1e-3, 1e-6, 1e-9) for limit in _build_ladder(delta).handovers if limit > 1e-3
]


def _dominates(high: Filter, low: Filter) -> bool:
    """Whether ``high`` admits all that ``low`` admits.

    For each order of ``low``, ``high`` must have one that is no higher and whose bound is no smaller. Divergences never
    fall as the order grows, so that order admits all that the order of ``low`` admits.
    """
    pairs = list(zip(high.orders, high.bounds(), strict=True))
    return all(
        any(other <= order and more >= bound for other, more in pairs)
        for order, bound in zip(low.orders, low.bounds(), strict=True)
    )


def _design(limit: float, delta: float) -> Filter | None:
    try:
        return design(limit, delta)
    except ValueError:
        return None


@given(delta=deltas, limit=limits, growth=st.floats(1e-9, 1.0))
def test_a_filter_of_a_higher_limit_admits_no_less(delta: float, limit: float, growth: float) -> None:
    """W15: the orders and bounds of the higher limit are at least as good for all events."""
    low, high = _design(limit, delta), _design(limit * (1 + growth), delta)
    assert low is None or (high is not None and _dominates(high, low))


@pytest.mark.parametrize(("delta", "limit"), EDGES)
def test_a_higher_limit_admits_no_less_where_an_order_hands_over(delta: float, limit: float) -> None:
    """W15: at the limits where the weights have corners."""
    steps = [_design(limit * (1 + offset), delta) for offset in (-1e-6, -1e-9, 0.0, 1e-9, 1e-6, 1e-3)]
    filters = [step for step in steps if step is not None]
    assert all(_dominates(high, low) for low, high in pairwise(filters))


@given(delta=deltas, limit=limits)
def test_weights_sum_to_at_most_one(delta: float, limit: float) -> None:
    """W9: also counted with the orders that are left out as dominated."""
    logs = dict(_build_ladder(delta).log_weights(limit))
    assert math.fsum(map(math.exp, logs.values())) <= 1
    assert set(choose_weights(limit, delta)) <= set(logs) <= set(CANDIDATES)


@given(delta=deltas, limit=limits)
def test_orders_left_out_are_dominated_or_admit_nothing(delta: float, limit: float) -> None:
    chosen = choose_weights(limit, delta)
    logs = dict(_build_ladder(delta).log_weights(limit))
    bounds = {order: _nats(limit, delta, order, math.log(weight)) for order, weight in chosen.items()}
    for order in logs.keys() - chosen.keys():
        bound = _nats(limit, delta, order, logs[order])
        assert bound <= 1e-12 or any(other < order and more >= bound - 1e-12 for other, more in bounds.items())


def _nats(epsilon: float, delta: float, order: float, log_weight: float) -> float:
    """Compute the bound of an order by the formula of the module's docstring."""
    mass = (log_weight + math.log(delta) + math.log(order)) / (order - 1)
    return epsilon - math.log(1 - 1 / order) + mass


def test_orders_of_a_ladder_fall_and_handovers_rise() -> None:
    for delta in (1e-1, 1e-2, 1e-4, 1e-6, 1e-12, 1e-200):
        ladder = _build_ladder(delta)
        assert list(ladder.orders) == sorted(ladder.orders, reverse=True)
        assert list(ladder.handovers) == sorted(ladder.handovers)
        assert len(ladder.handovers) == len(ladder.orders) - 1
    assert tuple(sorted(WEIGHTS, reverse=True)) == WEIGHTS
