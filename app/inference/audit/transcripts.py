"""The audit of whole runs: every answer of a private method, with the canary in or out.

A run of a method asks queries that depend on earlier answers. For each query the canary's contribution follows from the
query, so the auditor projects the answer on it. Divided by the noise, the projection is standard normal without the
canary, for every query. Weighted by ``1 / s_t`` and added, the projections give one number for each run. At rate
1 it is exactly ``N(0, 1)`` without the canary. With it, the mean is at most ``mu = sqrt(sum 1 / s_t^2)``, which the
accountant prices. It is the sum of log-likelihood ratios, up to its scale, if each contribution has the clipping norm.

The canary is a person of many equal rows. Their sum is longer than the clipping norm for nearly every query, so it is
clipped to it.
"""

from collections import deque
from dataclasses import dataclass
from typing import Final

import numpy as np

from app.inference.audit.subjects import COLUMNS, PLACE, compute_contribution, read_answer
from app.inference.audit.tables import CanaryTable, make_facts
from app.inference.conjugate import make_run_problem
from app.inference.core.facts import DeclaredFacts
from app.inference.core.model import Array64
from app.inference.core.plan import GROUPS, Mechanism, MechanismPlan, ModelSpec, PlanRequest
from app.inference.core.query import Oracle, Query
from app.inference.private_zone.mechanisms import DiscreteGaussian
from app.inference.private_zone.oracle import ClippedGaussianOracle
from app.inference.private_zone.queries import LengthHistogram, ResidualHistogram, StatisticSum
from app.inference.private_zone.rng import make_monte_carlo_generator, make_sampling_generator
from app.inference.registry import find_method
from app.inference.runner import run
from app.privacy.audit.composed import compute_separation

SLOTS: Final = 20
ROWS: Final = 1024
"""Rows of the canary."""
_CANARY: Final = {"a": 1.0, "b": -1.0, "flag": 1.0}
_SPEC: Final = ModelSpec("logistic-regression", ("a", "b"), "flag")


@dataclass(frozen=True, slots=True)
class Transcript:
    """One run: ``statistic`` as in the module's docstring, and its mean ``reached`` if the canary was in.

    ``claim`` is mu, the largest possible mean.
    """

    present: bool
    statistic: float
    reached: float
    claim: float


class _Recorder:
    """An oracle that records the projections of answers on the canary's contributions."""

    def __init__(self, oracle: Oracle, plan: MechanismPlan, table: CanaryTable) -> None:
        self._oracle, self._spec, self._table = oracle, plan.model, table
        self._noises = deque(query.event.noise_multiplier for query in plan.queries for _ in range(query.count))
        self.weighted: list[float] = []
        self.shares: list[float] = []
        self.weights: list[float] = []

    def ask(self, query: Query) -> Array64:
        """Answer as :meth:`app.inference.core.query.Oracle.ask`, and record the projection."""
        answer, noise = self._oracle.ask(query), self._noises.popleft()
        contribution = compute_contribution(self._spec, query, self._table)
        norm, clip = float(np.linalg.norm(contribution)), find_clip(query)
        if norm == 0:
            contribution, norm = np.eye(1, len(contribution)).ravel(), 0.0
        direction = contribution / (norm or 1.0)
        self.weighted.append(float(read_answer(query, answer) @ direction) / (clip * noise**2))
        self.shares.append(norm / (clip * noise**2))
        self.weights.append(1 / noise**2)
        return answer


def find_clip(query: Query) -> float:
    """Find the largest norm of a contribution to ``query``, in units of its answer."""
    if isinstance(query, LengthHistogram | ResidualHistogram | StatisticSum):
        return 1.0
    return float(getattr(query, "clip", None) or getattr(query, "bound"))  # noqa: B009


def make_method_plan(method: str, facts: DeclaredFacts, noise: float, queries: int) -> MechanismPlan:
    """Plan a run of a private method at rate 1.

    The noise multiplier is that of each query, or for the default method that of all together. ``dp-groups`` has one
    query.
    """
    if method == "dp-psvi-surrogate":
        return find_method(method).plan(PlanRequest(method, 6, _SPEC, noise_multiplier=noise), facts)
    if method == "dp-groups":
        grouped, once = {GROUPS: ["word"]}, Mechanism(noise, 1.0, 1)
        return find_method(method).plan(PlanRequest(method, 6, _SPEC, grouped, once), facts)
    return find_method(method).plan(PlanRequest(method, 6, _SPEC, mechanism=Mechanism(noise, 1.0, queries)), facts)


def run_once(method: str, noise: float, queries: int, *, present: bool) -> Transcript:
    """Run ``method`` to its release, on the table with or without the canary."""
    facts = make_facts(COLUMNS, SLOTS, ROWS)
    plan = make_method_plan(method, facts, noise, queries)
    canary = CanaryTable(facts, PLACE, [_CANARY] * ROWS)
    table = canary if present else CanaryTable(facts, PLACE, [])
    oracle = ClippedGaussianOracle(
        make_run_problem(plan, facts).model,
        plan,
        facts,
        table,
        noise=DiscreteGaussian(),
        sampling=make_sampling_generator(),
    )
    recorder = _Recorder(oracle, plan, canary)
    run(plan, facts, recorder, make_monte_carlo_generator(), lambda _: None)
    claim = compute_separation(plan.events)
    length = float(np.sqrt(sum(recorder.weights)))
    return Transcript(present, sum(recorder.weighted) / length, sum(recorder.shares) / length, claim)
