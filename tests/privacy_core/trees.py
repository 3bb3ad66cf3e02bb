"""Exact adaptive trees: an adversary reads one answer, then chooses the second mechanism.

The first mechanism shows which of several branches happened (or none). In each branch the adversary picks a second
mechanism with one bad outcome. Its privacy loss is the largest that the rule under test admits. The delta of the whole
tree is then an exact finite sum.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from app.privacy.accounting import INFINITE, ORDERS, UNIT_BITS, compute_epsilon
from app.privacy.filter import Filter
from tests.privacy_core.divergences import Floats, table_delta, table_divergence


@dataclass(frozen=True)
class Rule:
    """A rule that admits composed amounts, one for each of ``orders``."""

    orders: tuple[float, ...]
    admits: Callable[[Sequence[int]], bool]


def make_rule(rule: Filter, lowered: float | None = None) -> Rule:
    return Rule(rule.orders, lambda amounts: rule.admits(amounts, lowered))


def free_minimum(limit: float, delta: float) -> Rule:
    """Make an invalid rule: the least epsilon over all orders, minimised again for each admission."""
    return Rule(ORDERS, lambda amounts: compute_epsilon(amounts, delta) <= limit)


def without_union_bound(limit: float, delta: float, orders: Sequence[float]) -> Rule:
    """Make another invalid rule: several orders, each of which uses the whole delta."""
    single = [Filter(limit, delta, (order,), (1.0,)) for order in orders]
    return Rule(tuple(orders), lambda amounts: any(f.admits((a,)) for f, a in zip(single, amounts, strict=True)))


@dataclass(frozen=True)
class Branch:
    """An outcome of the first mechanism, with the bad outcome of the second.

    ``log_probability`` and ``loss`` (privacy loss) belong to the first, ``log_bad`` is the second's log probability.
    """

    log_probability: float
    loss: float
    log_bad: float


def compute_spent_delta(branches: Sequence[Branch], rule: Rule, limit: float) -> float:
    """Compute the exact delta at ``limit`` of the worst tree with these branches.

    Only trees that ``rule`` admits count; 0 if it admits none.
    """
    p = np.exp([branch.log_probability for branch in branches])
    q = p * np.exp([-branch.loss for branch in branches])
    if max(p.sum(), q.sum()) >= 1 or any(branch.log_bad >= 0 for branch in branches):
        return 0.0
    first = _amounts(np.append(p, 1 - p.sum()), np.append(q, 1 - q.sum()), rule)
    if not rule.admits(first):
        return 0.0
    leaves = [(np.array([1 - p.sum()]), np.array([1 - q.sum()]))]
    for index, branch in enumerate(branches):
        second = _bad_outcome(branch.log_bad, _most_loss(branch.log_bad, first, rule))
        leaves.append((p[index] * second[0], q[index] * second[1]))
    return table_delta(
        np.concatenate([leaf[0] for leaf in leaves]), np.concatenate([leaf[1] for leaf in leaves]), limit
    )


def _most_loss(log_bad: float, first: Sequence[int], rule: Rule) -> float:
    low, high = 0.0, 100.0
    for _ in range(36):
        middle = (low + high) / 2
        second = _amounts(*_bad_outcome(log_bad, middle), rule)
        admitted = rule.admits([a + b for a, b in zip(first, second, strict=True)])
        low, high = (middle, high) if admitted else (low, middle)
    return low


def _bad_outcome(log_bad: float, loss: float) -> tuple[Floats, Floats]:
    p, q = math.exp(log_bad), math.exp(log_bad - loss)
    return np.array([p, 1 - p]), np.array([q, 1 - q])


def _amounts(p: Floats, q: Floats, rule: Rule) -> list[int]:
    nats = table_divergence(p, q, np.array(rule.orders))
    return [min(math.ceil(math.ldexp(max(value, 0.0), UNIT_BITS)) + 1, INFINITE) for value in nats]
