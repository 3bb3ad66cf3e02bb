"""The audit of the final release alone: an attacker sees the release of a run, but no answer.

Shadow runs of whole methods, with the canary in or out, train a likelihood ratio on numbers that describe the release
in the canary's direction. Fresh runs then test it.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from app.inference.audit.mechanism import CONFIDENCE, DELTA
from app.inference.audit.scenarios import Scenario
from app.inference.audit.transcripts import run_once
from app.inference.core.belief import DIRICHLET
from app.inference.core.model import Array64
from app.inference.core.problems import make_problem
from app.inference.core.release import BeliefRelease, GroupWeights, Released
from app.inference.post.laplace import fit_laplace
from app.inference.private_zone.partition import fold
from app.privacy.audit.bounds import Counts, bound_epsilon, bound_separation, count_positives
from app.privacy.audit.shadow import NormalRatio, choose_by_training, estimate_separation


@dataclass(frozen=True, slots=True)
class Runs:
    """Features ``(n, k)`` of the releases of n runs; ``present`` ``(n,)`` is 1 where the canary was in.

    ``statistics`` ``(n,)`` summarise all answers (:class:`app.inference.audit.transcripts.Transcript`).
    """

    features: Array64
    present: Array64
    statistics: Array64


def describe_release(released: Released, scenario: Scenario) -> Array64:
    """Describe a release by a few numbers ``(k,)`` in the canary's direction."""
    if isinstance(released, BeliefRelease):
        return _describe_topics(released, scenario)
    if isinstance(released, GroupWeights):
        raise TypeError("group weights are released with their answers, which the audit of whole runs attacks")
    problem = make_problem(scenario.spec, scenario.facts)
    table = scenario.make_table(present=True)
    rows, _ = fold(problem.model, problem.design, table, np.array([table.place]))
    canary = rows[0].astype(np.float64)
    direction = canary / np.linalg.norm(canary)
    y = np.zeros(len(released.u)) if released.y is None else released.y
    points = problem.model.fold(released.u, y)
    along = points @ direction
    fitted = fit_laplace(problem.model, points, released.weight, problem.prior, problem.prior.mean)
    width = np.linalg.solve(fitted.factor, direction)
    doubt = 0.0 if released.doubt is None else float(direction @ released.doubt @ direction)
    stated = released.posterior
    return np.array(
        [
            float(released.weight.sum()),
            float(released.weight @ along),
            float(released.weight @ along**2),
            float(fitted.mean @ direction),
            float(np.log(width @ width)),
            float(np.log(doubt + 1e-12)),
            0.0 if stated is None else float(stated.mean @ direction),
        ]
    )


def _describe_topics(released: BeliefRelease, scenario: Scenario) -> Array64:
    """Describe topics: the concentration of the canary's word, the total, and the largest of one topic."""
    block = next(each for each in released.blocks if each.family == DIRICHLET and "values" in each.arrays)
    concentration = block.arrays["concentration"]
    word = scenario.facts.columns[[column.name for column in scenario.facts.columns].index("word")]
    assert word.categories is not None
    own = concentration[:, [str(value) for value in block.arrays["values"]].index(word.categories[1])]
    return np.array([float(own.sum()), float(concentration.sum()), float(own.max())])


@dataclass(frozen=True, slots=True)
class Success:
    """The positives of the attack on fresh runs, at thresholds from training.

    ``by_shape`` is for the bound on mu, and ``alone`` for the bound from one point. ``estimate`` is mu of the Gaussian
    mechanism with the same area under the curve, without a bound.
    """

    by_shape: Counts
    alone: Counts
    estimate: float


def attack_releases(shadows: Runs, fresh: Runs) -> Success:
    """Train on ``shadows``, and test on ``fresh`` runs."""
    attack = NormalRatio.fit(shadows.features, shadows.present)
    trained, scores = attack.score(shadows.features), attack.score(fresh.features)

    def count(goal: Callable[[Counts], float]) -> Counts:
        return count_positives(scores, fresh.present, choose_by_training(trained, shadows.present, goal))

    return Success(
        count(lambda counts: bound_separation(counts, CONFIDENCE)),
        count(lambda counts: bound_epsilon(counts, DELTA, CONFIDENCE)),
        estimate_separation(scores, fresh.present),
    )


def draw_runs(scenario: Scenario, separation: float, runs: int) -> Runs:
    """Run the method ``runs`` times in each world."""
    found = [run_once(scenario, separation, present=flag) for flag in (True, False) for _ in range(runs)]
    features = np.stack([describe_release(run.released, scenario) for run in found])
    present, statistics = (np.array([float(getattr(run, name)) for run in found]) for name in ("present", "statistic"))
    return Runs(features, present, statistics)
