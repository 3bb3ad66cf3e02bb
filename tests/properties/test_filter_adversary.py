"""The filter against adaptive adversaries; the same check breaks all other rules."""

import math

import numpy as np
import pytest
from hypothesis import given, settings, target
from hypothesis import strategies as st
from scipy.optimize import minimize

from app.privacy.filter import Filter, design
from app.privacy.ladder import CANDIDATES
from tests.privacy_core.trees import Branch, Rule, compute_spent_delta, free_minimum, make_rule, without_union_bound

TREES = [
    (8.0, 1e-6, (Branch(-9.93, 4.09, -0.021), Branch(-1.07, 3.71, -10.81))),
    (3.0, 1e-6, (Branch(-7.83, 1.84, -1.86), Branch(-1.08, 1.63, -10.27))),
    (3.0, 1e-10, (Branch(-15.09, 0.88, -3.80), Branch(-0.65, 0.488, -19.61))),
    (1.0, 1e-6, (Branch(-9.10, 0.413, -0.557), Branch(-1.18, 0.216, -9.77))),
]
"""Two-branch trees: a rare branch best priced at a high order, a common one at a low order."""


@pytest.mark.parametrize(("limit", "delta", "branches"), TREES)
def test_free_minimum_over_orders_spends_delta_nearly_twice(
    limit: float, delta: float, branches: tuple[Branch, ...]
) -> None:
    assert compute_spent_delta(branches, free_minimum(limit, delta), limit) > 1.9 * delta


@pytest.mark.parametrize(("limit", "delta", "branches"), TREES)
def test_several_orders_without_the_union_bound_overspend(
    limit: float, delta: float, branches: tuple[Branch, ...]
) -> None:
    rule = without_union_bound(limit, delta, CANDIDATES)
    assert compute_spent_delta(branches, rule, limit) > 1.9 * delta


@pytest.mark.parametrize(("limit", "delta", "branches"), TREES)
def test_filter_holds_for_trees_that_break_other_rules(
    limit: float, delta: float, branches: tuple[Branch, ...]
) -> None:
    """W9: adaptive purchases stay within the limit."""
    assert compute_spent_delta(branches, make_rule(design(limit, delta)), limit) <= delta


@pytest.mark.slow
@pytest.mark.parametrize(("limit", "delta", "branches"), TREES[::3])
def test_optimiser_cannot_push_the_filter_over_its_delta(
    limit: float, delta: float, branches: tuple[Branch, ...]
) -> None:
    """W9: the search starts from trees that break other rules, and comes close to delta."""
    rule = make_rule(design(limit, delta))
    worst = max(_maximise(start, rule, limit, delta) for start in (branches, _make_tree(rule, limit, delta)))
    assert 0.5 < worst <= 1


def _maximise(start: tuple[Branch, ...], rule: Rule, limit: float, delta: float) -> float:
    def negative_share(point: np.ndarray) -> float:
        branches = [Branch(*map(float, row)) for row in point.reshape(-1, 3)]
        return -compute_spent_delta(branches, rule, limit) / delta

    flat = np.array([(branch.log_probability, branch.loss, branch.log_bad) for branch in start]).ravel()
    return -float(minimize(negative_share, flat, method="Nelder-Mead", options={"maxfev": 50}).fun)


def _make_tree(rule: Rule, limit: float, delta: float) -> tuple[Branch, ...]:
    """Branches that are each the tight pair of one order, with the whole delta."""
    rare, common = max(rule.orders), rule.orders[0]
    return _make_branch(rare, delta, 0.5, 0.5, limit), _make_branch(common, delta, 0.1, 0.4, limit)


def _make_branch(order: float, delta: float, split: float, share: float, limit: float) -> Branch:
    log_bad = min(0.0, math.log(order * delta))
    loss = limit - math.log1p(-1 / order)
    return Branch(split * log_bad - 0.7, share * loss, (1 - split) * log_bad)


unit = st.floats(0.01, 0.99)


@st.composite
def filters(draw: st.DrawFn) -> Filter:
    limit, delta = draw(st.floats(0.3, 10.0)), 10 ** draw(st.floats(-10.0, -3.0))
    if draw(st.booleans()):
        return design(limit, delta)
    orders = tuple(draw(st.lists(st.floats(1.5, 64.0), min_size=1, max_size=4)))
    shares = [draw(unit) for _ in orders]
    return Filter(limit, delta, orders, tuple(0.999 * share / math.fsum(shares) for share in shares))


@pytest.mark.slow
@settings(max_examples=120, deadline=None)
@given(st.data(), filters())
def test_no_tree_breaks_a_filter(data: st.DataObject, rule: Filter) -> None:
    """W9: for all orders, weights and numbers of branches, and after a limit limit."""
    limit = data.draw(st.sampled_from([1.0, 1.0, 0.9, 0.5])) * rule.epsilon
    branches = tuple(
        _make_branch(order, rule.delta * weight * data.draw(unit), data.draw(unit), data.draw(unit), limit)
        for order, weight in zip(rule.orders, rule.weights, strict=True)
    )
    spent = compute_spent_delta(branches, make_rule(rule, limit), limit)
    target(spent / rule.delta)
    assert spent <= rule.delta
