"""Exact trees of adaptive analysts, against sums by hand."""

import math

import numpy as np
import pytest

from app.privacy.accounting import INFINITE, ORDERS
from app.privacy.audit.trees import TREES, Branch, Rule, audit_filter, compute_spent_delta, free_minimum
from app.privacy.filter import design
from tests.privacy_core.divergences import table_delta

ADMIT_ALL = Rule((2.0,), lambda amounts: amounts[0] < INFINITE)


def _admit(most: float) -> Rule:
    return Rule((2.0,), lambda amounts: amounts[0] * 2.0**-40 <= most)


def test_a_tree_of_two_levels_is_the_sum_over_its_leaves() -> None:
    """Against the product of probabilities, with a second derivation of delta."""
    limit, log_bad = 0.4, math.log(0.2)
    branches = (Branch(math.log(0.3), 0.5, log_bad), Branch(math.log(0.25), -0.3, log_bad))
    spent = compute_spent_delta(branches, _admit(0.3), limit)
    first_p = np.array([0.3, 0.25, 0.45])
    first_q = np.array([0.3 * math.exp(-0.5), 0.25 * math.exp(0.3), 0.0])
    first_q[2] = 1 - first_q.sum()
    deltas = []
    for loss in np.linspace(0, 3, 3001):
        bad_q = 0.2 * math.exp(-loss)
        p = np.concatenate([np.outer(first_p[:2], [0.2, 0.8]).ravel(), first_p[2:]])
        q = np.concatenate([np.outer(first_q[:2], [bad_q, 1 - bad_q]).ravel(), first_q[2:]])
        divergence = math.log(max(np.sum(p**2 / q), np.sum(q**2 / p)))
        if _composed(first_p, first_q) + _composed(np.array([0.2, 0.8]), np.array([bad_q, 1 - bad_q])) <= 0.3:
            deltas.append(table_delta(p, q, limit))
        assert divergence >= 0
    assert spent == pytest.approx(max(deltas), abs=1e-3)


def _composed(p: np.ndarray, q: np.ndarray) -> float:
    return math.log(max(float(np.sum(p**2 / q)), float(np.sum(q**2 / p))))


def test_a_tree_that_is_not_admitted_spends_nothing() -> None:
    assert compute_spent_delta((Branch(-1.0, 5.0, -1.0),), _admit(1e-6), 1.0) == 0
    assert compute_spent_delta((Branch(-0.1, 0.0, -1.0), Branch(-0.1, 0.0, -1.0)), ADMIT_ALL, 1.0) == 0
    assert compute_spent_delta((Branch(-1.0, 0.1, 0.0),), ADMIT_ALL, 1.0) == 0


def test_an_analyst_stops_where_the_next_mechanism_is_not_admitted() -> None:
    """The branch is then a leaf, with the probabilities that it had."""
    inner = (Branch(-1.0, 3.0, -1.0),)
    spent = compute_spent_delta((Branch(math.log(0.5), 0.5, then=inner),), _admit(0.3), 0.1)
    q = 0.5 * math.exp(-0.5)
    assert spent == pytest.approx(table_delta(np.array([0.5, 0.5]), np.array([q, 1 - q]), 0.1))


@pytest.mark.long
def test_rules_without_the_union_bound_are_caught_and_the_filter_holds() -> None:
    """W9: trees of two, three and four mechanisms."""
    found = [audit_filter(design, tree) for tree in TREES]
    assert {each.tree.depth for each in found} == {2, 3, 4}
    assert min(each.by_free_minimum for each in found) > 1.9
    assert min(each.without_union_bound for each in found) > 1.9
    assert max(each.by_filter for each in found) <= 1
    assert max(each.by_wide_filter for each in found) <= 1


def test_the_free_minimum_uses_the_orders_of_stated_costs() -> None:
    assert free_minimum(1.0, 1e-6).orders == ORDERS
