"""The audit of whole runs: every answer of a private method, with the canary in or out.

A run of a method asks queries that depend on earlier answers. For each query the contributions of all people follow
from the query. So the auditor subtracts the contributions of the others, and projects the answer on the canary's.
Divided by the noise, the projection is standard normal without the canary, for every query. Weighted by ``1 / s_t`` and
added, the projections give one number for each run. At rate 1 it is exactly ``N(0, 1)`` without the canary. With it,
the mean is at most ``mu = sqrt(sum 1 / s_t^2)``, which the accountant prices. It is the sum of log-likelihood ratios,
up to its scale, if each contribution has the clipping norm.
"""

from collections import deque
from dataclasses import dataclass

import numpy as np

from app.inference.audit.mechanism import make_oracle
from app.inference.audit.scenarios import Scenario
from app.inference.audit.subjects import compute_contribution, compute_sum, read_answer
from app.inference.audit.tables import CanaryTable
from app.inference.core.model import Array64
from app.inference.core.plan import MechanismPlan
from app.inference.core.query import Oracle, Query
from app.inference.core.release import Released
from app.inference.private_zone.queries import LengthHistogram, ResidualHistogram, StatisticSum
from app.inference.private_zone.rng import make_monte_carlo_generator
from app.inference.runner import run
from app.privacy.audit.composed import compute_separation


@dataclass(frozen=True, slots=True)
class Transcript:
    """One run: ``statistic`` as in the module's docstring, and its mean ``reached`` if the canary was in.

    ``claim`` is mu, the largest possible mean, and ``released`` the release.
    """

    present: bool
    statistic: float
    reached: float
    claim: float
    released: Released


class _Recorder:
    """An oracle that records the projections of answers on the canary's contributions.

    ``table`` has the canary.
    """

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
        own = read_answer(query, answer)
        if self._table.others:
            own = own - compute_sum(self._spec, query, self._table.without())
        self.weighted.append(float(own @ contribution) / (norm or 1.0) / (clip * noise**2))
        self.shares.append(norm / (clip * noise**2))
        self.weights.append(1 / noise**2)
        return answer


def find_clip(query: Query) -> float:
    """Find the largest norm of a contribution to ``query``, in units of its answer."""
    if isinstance(query, LengthHistogram | ResidualHistogram | StatisticSum):
        return 1.0
    return float(getattr(query, "clip", None) or getattr(query, "bound"))  # noqa: B009


def run_once(scenario: Scenario, separation: float, *, present: bool) -> Transcript:
    """Run a method to its release, on the table with or without the canary."""
    plan, facts = scenario.make_plan(separation), scenario.facts
    table = scenario.make_table(present=present)
    recorder = _Recorder(make_oracle(plan, facts, table), plan, scenario.make_table(present=True))
    released = run(plan, facts, recorder, make_monte_carlo_generator(), lambda _: None)
    claim, length = compute_separation(plan.events), float(np.sqrt(sum(recorder.weights)))
    return Transcript(present, sum(recorder.weighted) / length, sum(recorder.shares) / length, claim, released)
