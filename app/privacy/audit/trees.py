"""The audit of the privacy filter, by exact trees of adaptive analysts.

An analyst buys a mechanism, sees the outcome, and then chooses the next mechanism. A mechanism has several outcomes, of
which each leads to another mechanism, and a rest after which the analyst stops. The last mechanism on a path has one
bad outcome, with the largest privacy loss that the rule under test admits. The delta of the whole tree is then an exact
finite sum. A valid rule admits no tree with more than delta.

The tree of Rogers, Roth, Ullman & Vadhan (*Privacy odometers and filters*, 2016) has this form. A rule that takes the
least epsilon over orders, again for each purchase, admits nearly twice its delta.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

from app.privacy.accounting import INFINITE, ORDERS, UNIT_BITS, compute_epsilon
from app.privacy.filter import Filter
from app.privacy.ladder import CANDIDATES

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule that admits composed amounts, one for each of ``orders``."""

    orders: tuple[float, ...]
    admits: Callable[[Sequence[int]], bool]


def make_rule(rule: Filter, lowered: float | None = None) -> Rule:
    """Make the rule of a filter, at its limit or at a lower one."""
    return Rule(rule.orders, lambda amounts: rule.admits(amounts, lowered))


def free_minimum(limit: float, delta: float) -> Rule:
    """Make an invalid rule: the least epsilon over all orders, minimised again for each admission."""
    return Rule(ORDERS, lambda amounts: compute_epsilon(amounts, delta) <= limit)


def without_union_bound(limit: float, delta: float, orders: Sequence[float]) -> Rule:
    """Make another invalid rule: several orders, each of which uses the whole delta."""
    single = [Filter(limit, delta, (order,), (1.0,)) for order in orders]
    return Rule(tuple(orders), lambda amounts: any(f.admits((a,)) for f, a in zip(single, amounts, strict=True)))


@dataclass(frozen=True, slots=True)
class Branch:
    """An outcome of a mechanism, with the mechanism that follows.

    ``log_probability`` and ``loss`` (privacy loss) belong to the outcome. ``then`` holds the outcomes of the next
    mechanism. If it is empty, the next mechanism is the last one, and ``log_bad`` is the log probability of its bad
    outcome.
    """

    log_probability: float
    loss: float
    log_bad: float = -math.inf
    then: tuple["Branch", ...] = ()


def compute_spent_delta(branches: Sequence[Branch], rule: Rule, limit: float) -> float:
    """Compute the exact delta at ``limit`` of the worst tree with these branches.

    Only trees that ``rule`` admits count; 0 if it does not admit the first mechanism.
    """
    leaves = _grow(branches, [0] * len(rule.orders), rule)
    if leaves is None:
        return 0.0
    p, q = leaves
    odds = math.exp(limit)
    return max(float(np.maximum(p - odds * q, 0).sum()), float(np.maximum(q - odds * p, 0).sum()))


def _grow(branches: Sequence[Branch], spent: Sequence[int], rule: Rule) -> tuple[Floats, Floats] | None:
    """Compute the probabilities of all leaves in both worlds; None if the mechanism is invalid or not admitted."""
    p = np.exp([branch.log_probability for branch in branches])
    q = p * np.exp([-branch.loss for branch in branches])
    if max(p.sum(), q.sum()) >= 1 or any(not branch.then and branch.log_bad >= 0 for branch in branches):
        return None
    with_this = _add(spent, _compute_amounts(np.append(p, 1 - p.sum()), np.append(q, 1 - q.sum()), rule))
    if not rule.admits(with_this):
        return None
    leaves = [(np.array([1 - p.sum()]), np.array([1 - q.sum()]))]
    for index, branch in enumerate(branches):
        below = _grow(branch.then, with_this, rule) if branch.then else _end(branch.log_bad, with_this, rule)
        of_p, of_q = below if below is not None else (np.ones(1), np.ones(1))
        leaves.append((p[index] * of_p, q[index] * of_q))
    return np.concatenate([leaf[0] for leaf in leaves]), np.concatenate([leaf[1] for leaf in leaves])


def _end(log_bad: float, spent: Sequence[int], rule: Rule) -> tuple[Floats, Floats]:
    """Find the last mechanism with the largest loss that the rule admits."""
    low, high = 0.0, 100.0
    for _ in range(36):
        middle = (low + high) / 2
        last = _compute_amounts(*_make_bad_outcome(log_bad, middle), rule)
        low, high = (middle, high) if rule.admits(_add(spent, last)) else (low, middle)
    return _make_bad_outcome(log_bad, low)


def _make_bad_outcome(log_bad: float, loss: float) -> tuple[Floats, Floats]:
    p, q = math.exp(log_bad), math.exp(log_bad - loss)
    return np.array([p, 1 - p]), np.array([q, 1 - q])


def _compute_amounts(p: Floats, q: Floats, rule: Rule) -> list[int]:
    """Compute the Rényi divergences of two tables, the larger of both directions, rounded up."""
    log_p, log_q, alpha = np.log(p), np.log(q), np.array(rule.orders)[:, None]
    nats = np.maximum(
        logsumexp(alpha * log_p + (1 - alpha) * log_q, axis=1), logsumexp(alpha * log_q + (1 - alpha) * log_p, axis=1)
    ) / (alpha[:, 0] - 1)
    return [min(math.ceil(math.ldexp(max(value, 0.0), UNIT_BITS)) + 1, INFINITE) for value in nats]


def _add(left: Sequence[int], right: Sequence[int]) -> list[int]:
    return [min(a + b, INFINITE) for a, b in zip(left, right, strict=True)]


@dataclass(frozen=True, slots=True)
class Tree:
    """A tree that breaks invalid rules at the limit (``epsilon``, ``delta``)."""

    epsilon: float
    delta: float
    branches: tuple[Branch, ...]

    @property
    def depth(self) -> int:
        """The number of mechanisms on the longest path."""
        return 1 + _measure_depth(self.branches)


def _measure_depth(branches: Sequence[Branch]) -> int:
    return 1 + max((_measure_depth(branch.then) for branch in branches if branch.then), default=0)


def _make_deeper(tree: Tree) -> Tree:
    """Put a cheap mechanism before ``tree``, whose two outcomes both lead to it."""
    return Tree(tree.epsilon, tree.delta, tuple(Branch(-0.695, loss, then=tree.branches) for loss in (1e-6, -1e-6)))


_FLAT: Final = (
    Tree(8.0, 1e-6, (Branch(-9.93, 4.09, -0.021), Branch(-1.07, 3.71, -10.81))),
    Tree(3.0, 1e-6, (Branch(-7.83, 1.84, -1.86), Branch(-1.08, 1.63, -10.27))),
    Tree(3.0, 1e-10, (Branch(-15.09, 0.88, -3.80), Branch(-0.65, 0.488, -19.61))),
    Tree(1.0, 1e-6, (Branch(-9.10, 0.413, -0.557), Branch(-1.18, 0.216, -9.77))),
)
"""Two-branch trees: a rare branch best priced at a high order, a common one at a low order."""

TREES: Final = (*_FLAT, *map(_make_deeper, _FLAT), *map(_make_deeper, map(_make_deeper, _FLAT[:2])))


def tune_branch(order: float, mass: float, split: float, share: float, limit: float) -> Branch:
    """Make a branch that is the tight pair of ``order`` for a bad mass.

    ``mass`` is that of both mechanisms together. ``split`` is the share of the first mechanism in the logarithm of the
    probability, ``share`` that in the loss.
    """
    log_bad = min(0.0, math.log(order * mass))
    loss = limit - math.log1p(-1 / order)
    return Branch(split * log_bad - 0.7, share * loss, (1 - split) * log_bad)


def tune_tree(orders: Sequence[float], limit: float, delta: float) -> tuple[Branch, ...]:
    """Make branches against two orders, each with the whole of ``delta``."""
    return (
        tune_branch(max(orders), delta, 0.5, 0.5, limit),
        tune_branch(min(orders), delta, 0.1, 0.4, limit),
    )


@dataclass(frozen=True, slots=True)
class FilterFinding:
    """The shares of delta that the worst tree spends under three rules; the filter's must be at most 1.

    ``by_filter`` is that of the account's filter, for this tree and for one that is tuned to its orders. Its orders are
    close together. ``by_wide_filter`` is that of a filter of many orders, which an error in the weights would break.
    """

    tree: Tree
    by_filter: float
    by_wide_filter: float
    by_free_minimum: float
    without_union_bound: float


def audit_filter(make_filter: Callable[[float, float], Filter], tree: Tree) -> FilterFinding:
    """Evaluate ``tree`` exactly against a filter and two invalid rules."""

    def spend(rule: Rule) -> float:
        return compute_spent_delta(tree.branches, rule, tree.epsilon) / tree.delta

    limit = tree.epsilon, tree.delta
    rule = make_filter(*limit)
    tuned = tune_tree(rule.orders, *limit)
    wide = Filter(*limit, CANDIDATES, (1 / 128,) * len(CANDIDATES))
    return FilterFinding(
        tree,
        max(spend(make_rule(rule)), compute_spent_delta(tuned, make_rule(rule), tree.epsilon) / tree.delta),
        spend(make_rule(wide)),
        spend(free_minimum(*limit)),
        spend(without_union_bound(*limit, CANDIDATES)),
    )
