"""Beta-cores of groups and batches: sets of rows are chosen and weighed as rows are.

The potential of a set is the sum ``F_g`` of its rows' potentials. Each round adds the set with the largest correlation
``Corr[F_g, R]`` with the residual R, and descends on all weights. Source: thesis, section 5.2.2.2 and Eq. 5.8.

A set of more than ``candidates`` rows is represented by as many random ones, each of which counts for several.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from app.inference.core.facts import DeclaredFacts
from app.inference.core.grouping import make_grouping
from app.inference.core.model import Array64
from app.inference.core.plan import GROUPS, MechanismPlan
from app.inference.core.problems import Problem
from app.inference.core.release import name_group
from app.inference.core.row_source import RowSource
from app.inference.methods.psvi.descent import LinearScale
from app.inference.methods.psvi.greedy import CANDIDATES, ITERATIONS, RATE
from app.inference.methods.psvi.residuals import Points, standardise
from app.inference.methods.psvi.residuals.monte_carlo import MonteCarloResidual, MonteCarloResiduals
from app.inference.methods.public import DRAWS, MINIBATCH, open_table
from app.inference.methods.public_table import Minibatches, PublicTable
from app.inference.methods.steps import COSINE, Schedule
from app.inference.models.robust import make_robust
from app.inference.post.gradients import compute_centred_potentials
from app.inference.post.optimisers import make_finite, start_adam

BATCHES: Final = "batches"
MOST_POINTS: Final = 100_000
"""Largest number of points of a release."""
_LEAST_BATCHES: Final = 8
_CHUNK: Final = 16_384


@dataclass(frozen=True, slots=True)
class RowSet:
    """A set of rows ``x`` ``(n, p)`` and ``y`` ``(n,)``; each replaces ``share`` rows of the table."""

    label: str
    x: Array64
    y: Array64
    share: float

    @property
    def count(self) -> float:
        """The number of rows of the table in the set."""
        return len(self.x) * self.share


@dataclass(frozen=True, slots=True)
class BuiltSets:
    """The chosen sets and their weights ``(k,)``."""

    problem: Problem
    table: PublicTable
    sets: tuple[RowSet, ...]
    weights: Array64

    @property
    def points(self) -> Points:
        """The rows of all sets with a weight."""
        return join_sets(self.sets, self.weights, self.problem.design.width)


def grow_sets(
    plan: MechanismPlan, facts: DeclaredFacts, source: RowSource, rng: np.random.Generator, *, beta: float
) -> BuiltSets:
    """Carry out ``plan.size`` rounds; fewer sets are chosen if no further one is better than those before."""
    problem, table = open_table(plan, facts, source)
    most = min(int(plan.parameters[CANDIDATES.name]), MOST_POINTS // plan.size)
    sets, weights = list[RowSet](), np.zeros(0)
    if not table.count:
        return BuiltSets(problem, table, (), weights)
    candidates = _iterate_candidates(plan, facts, table, most, rng)
    turn = SetRound(plan, problem, table, rng, beta=beta)
    for offered in candidates:
        sets, weights = turn.add(offered, sets, weights)
    return BuiltSets(problem, table, tuple(sets), weights)


class SetRound:
    """A round on one table: a set is added, and then all weights descend."""

    def __init__(
        self, plan: MechanismPlan, problem: Problem, table: PublicTable, rng: np.random.Generator, *, beta: float
    ) -> None:
        """``beta`` is the power of densities in the potentials; 0 for log-likelihoods."""
        parameters = plan.parameters
        self._table = table
        self._residuals = MonteCarloResiduals(
            make_robust(problem.model, beta) if beta else problem.model,
            problem.prior,
            Minibatches(table, parameters[MINIBATCH.name], rng),
            count=table.count,
            draws=parameters[DRAWS.name],
            rng=rng,
        )
        self._schedule = Schedule(COSINE, parameters[RATE.name], parameters[ITERATIONS.name])

    def add(self, offered: list[RowSet], sets: list[RowSet], weights: Array64) -> tuple[list[RowSet], Array64]:
        """Add the best of ``offered`` if it is better than ``sets``; then all weights descend."""
        best = _choose(self._residuals.at(self._join(sets, weights)), offered, sets)
        if best is not None:
            sets, weights = [*sets, best], np.append(weights, 0.0)
        return sets, self._descend(sets, weights) if sets else weights

    @np.errstate(over="ignore", invalid="ignore")
    def _descend(self, sets: list[RowSet], weights: Array64) -> Array64:
        """Take all steps on the weights; their unit is that of a table of these sets alone."""
        scale, state = LinearScale(self._table.count / sum(each.count for each in sets)), start_adam(weights.shape)
        edges = np.cumsum([0, *(len(each.x) for each in sets)])[:-1]
        shares = np.array([each.share for each in sets])
        for iteration in range(self._schedule.iterations):
            residual = self._residuals.at(self._join(sets, weights))
            own = np.add.reduceat(residual.own, edges) * shares
            state, move = self._schedule.turn(state, make_finite(scale.gradient(weights, -own)))
            weights = scale.step(weights, self._schedule.length(iteration) * move)
        return weights

    def _join(self, sets: list[RowSet], weights: Array64) -> Points:
        return join_sets(sets, weights, self._table.design.width)


def _iterate_candidates(
    plan: MechanismPlan, facts: DeclaredFacts, table: PublicTable, most: int, rng: np.random.Generator
) -> Iterator[list[RowSet]]:
    """Yield the sets among which each round chooses: all groups, or fresh random batches of rows."""
    batch = int(plan.parameters[BATCHES])
    if batch:
        drawn = rng.permutation(table.count)
        each = max(_LEAST_BATCHES, int(plan.parameters[CANDIDATES.name]) // batch) * batch
        for number in range(plan.size):
            places = np.take(drawn, number * each + np.arange(min(each, table.count)), mode="wrap")
            yield [_read(table, places[start : start + batch], "", most, rng) for start in range(0, len(places), batch)]
        return
    grouping = make_grouping(plan.parameters[GROUPS], facts)
    codes, names = table.find_groups(grouping), [column.name for column in grouping.columns]
    groups = [
        _read(table, np.flatnonzero(codes == code), name_group(names, label), most, rng)
        for code, label in enumerate(grouping.labels)
        if np.any(codes == code)
    ]
    yield from [groups] * plan.size


def _read(table: PublicTable, places: NDArray[np.int64], label: str, most: int, rng: np.random.Generator) -> RowSet:
    kept = places if len(places) <= most else np.sort(rng.choice(places, most, replace=False))
    x, y = table.read(kept)
    return RowSet(label, x.astype(np.float64), y, len(places) / len(kept))


def _choose(residual: MonteCarloResidual, offered: list[RowSet], sets: list[RowSet]) -> RowSet | None:
    """Choose the set to add; None if a present set has the same correlation or a larger one."""
    present = {id(each) for each in sets}
    fresh = [each for each in offered if id(each) not in present]
    if not fresh:
        return None
    correlations = _correlate(residual, fresh)
    best = int(np.argmax(correlations))
    inside = np.abs(_correlate(residual, sets)).max(initial=-np.inf)
    return fresh[best] if correlations[best] > inside else None


def _correlate(residual: MonteCarloResidual, sets: list[RowSet]) -> Array64:
    """Compute ``Cov[F_g, R] / sd[F_g]`` of sets, ``(k,)``."""
    if not sets:
        return np.zeros(0)
    potentials = np.array([_sum_potentials(residual, each) for each in sets])
    return standardise(potentials @ residual.values, np.square(potentials).mean(axis=1))


def _sum_potentials(residual: MonteCarloResidual, rows: RowSet) -> Array64:
    """Compute the centred potentials ``(S,)`` of a set."""
    model, total = residual.model, np.zeros(len(residual.draws))
    for start in range(0, len(rows.x), _CHUNK):
        part = slice(start, start + _CHUNK)
        total += compute_centred_potentials(model, model.fold(rows.x[part], rows.y[part]), residual.draws).sum(axis=0)
    return np.asarray(rows.share * total)


def join_sets(sets: Sequence[RowSet], weights: Array64, width: int) -> Points:
    """Join the rows of sets; each has the weight of its set, times the rows that it replaces."""
    x = np.concatenate([np.zeros((0, width)), *(each.x for each in sets)])
    y = np.concatenate([np.zeros(0), *(each.y for each in sets)])
    each_weight = [np.full(len(each.x), weight * each.share) for each, weight in zip(sets, weights, strict=True)]
    return Points(x, y, np.concatenate([np.zeros(0), *each_weight]))
