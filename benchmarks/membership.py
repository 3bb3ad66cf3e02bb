"""Membership inference on releases, compared with the guarantee: ``make membership``.

A simulated table has rows that are always there, and candidates that are in one half of the runs, drawn at random.
Shadow runs of the whole plan train two attackers. One has a model for all candidates, a logistic regression on features
of a release and a row. The other has two normal laws for each candidate. Fresh runs test them. Each method is attacked
at each epsilon, and the rates are compared with the trade-off function that the plan's events allow.

Sources: Shokri et al., *Membership inference attacks against machine learning models*, 2017; Carlini et al.,
*Membership inference attacks from first principles*, 2022.
"""

import os

os.environ |= {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}

import argparse
import math
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any, Final

import matplotlib as mpl
import numpy as np
from scipy.optimize import minimize
from scipy.special import expit, ndtr

mpl.use("Agg")

import matplotlib.pyplot as plt

from app.inference.conjugate import make_run_problem
from app.inference.core.facts import Column, DeclaredFacts
from app.inference.core.model import Array64
from app.inference.core.plan import MechanismPlan, ModelSpec, PlanRequest
from app.inference.core.problems import make_problem
from app.inference.core.release import Pseudocoreset
from app.inference.post.laplace import fit_laplace
from app.inference.private_zone.mechanisms import DiscreteGaussian
from app.inference.private_zone.oracle import ClippedGaussianOracle
from app.inference.private_zone.rng import make_monte_carlo_generator, make_sampling_generator
from app.inference.registry import DEFAULT, find_method
from app.inference.runner import run_points
from app.privacy.audit.bounds import bound_proportion
from app.privacy.audit.composed import ComposedTradeOff, compute_separation
from app.privacy.audit.laws import AnswerLaw
from app.privacy.audit.shadow import NormalRatio, compute_area
from app.privacy.calibration import calibrate
from benchmarks.environment import PAGES, describe, write_environment
from benchmarks.figures import read_lines, write_lines
from benchmarks.plots import COLOURS, MARKERS
from benchmarks.summaries import wrap_paragraph
from support.table import Table

METHODS: Final[dict[str, dict[str, Any]]] = {
    DEFAULT: {},
    "dp-psvi": {"iterations": 50},
    "dp-vi": {"iterations": 50},
    "vips": {"iterations": 20},
}
"""Methods with their parameters; fewer iterations than usual make many runs fast."""
EPSILONS: Final = (0.5, 2.0, 8.0, 32.0)
DELTA: Final = 1e-6
RATES: Final = (0.01, 1e-3)
"""Rates of false positives."""
FIXED, CANDIDATES, FAR = 100, 100, 20
"""Rows that are always there; candidates; and how many candidates are at the declared bounds, with a rare target."""
SHADOWS, FRESH = 32, 24
SIZE: Final = 8
CONFIDENCE: Final = 0.999
_SEED: Final = 7
_COLUMNS: Final = (Column("a", "real", -3, 3), Column("b", "real", -3, 3), Column("ill", "binary"))
_SPEC: Final = ModelSpec("logistic-regression", ("a", "b"), "ill")
_PENALTY: Final = 1e-3


@dataclass(frozen=True, slots=True)
class Result:
    """The success of one attacker on one method at one epsilon.

    ``power_1`` and ``power_01`` are true-positive rates at measured false-positive rates of 1 % and 0.1 %. ``least_1``
    and ``least_01`` are lower bounds on them. ``allowed_*`` is the most that the guarantee allows at these rates, and
    ``most_*`` at upper bounds on the true rates. ``area_far`` is of the candidates at the bounds alone.
    """

    method: str
    epsilon: float
    attacker: str
    runs: int
    scores: int
    area: float
    area_far: float
    allowed_area: float
    power_1: float
    least_1: float
    allowed_1: float
    most_1: float
    power_01: float
    least_01: float
    allowed_01: float
    most_01: float

    @property
    def holds(self) -> bool:
        """Whether no lower bound exceeds the guarantee."""
        return self.least_1 <= self.most_1 and self.least_01 <= self.most_01


def make_rows() -> dict[str, Array64]:
    """Make the rows of all slots: first the fixed ones, then the candidates, the last of which are far."""
    rng = np.random.default_rng(_SEED)
    a, b = rng.normal(0, 0.8, (2, FIXED + CANDIDATES))
    a[-FAR:], b[-FAR:] = 3.0, -3.0
    ill = (rng.random(FIXED + CANDIDATES) < expit(1.5 * a - b)).astype(np.float64)
    ill[-FAR:] = np.arange(FAR) % 2
    return {"a": np.clip(a, -3, 3), "b": np.clip(b, -3, 3), "ill": ill}


def make_facts() -> DeclaredFacts:
    """Declare the table."""
    return DeclaredFacts(_COLUMNS, FIXED + CANDIDATES, {"kind": "row"}, "private", DELTA)


def make_plan(method: str, epsilon: float) -> MechanismPlan:
    """Plan a run that costs at most ``epsilon``."""
    facts, planner = make_facts(), find_method(method)

    def plan(noise: float) -> MechanismPlan:
        return planner.plan(PlanRequest(method, SIZE, _SPEC, METHODS[method], None, noise), facts)

    return plan(calibrate(lambda noise: plan(noise).events, epsilon, DELTA))


def release_once(plan: MechanismPlan, coins: Array64) -> Pseudocoreset:
    """Run the plan on the table whose candidates are in where ``coins`` are 1."""
    facts, rows = make_facts(), make_rows()
    present = np.concatenate([np.ones(FIXED), coins])
    table = Table({name: values * present for name, values in rows.items()} | {"_present": present.astype(np.uint8)})
    oracle = ClippedGaussianOracle(
        make_run_problem(plan, facts).model,
        plan,
        facts,
        table,
        noise=DiscreteGaussian(),
        sampling=make_sampling_generator(),
    )
    return run_points(plan, facts, oracle, make_monte_carlo_generator(), lambda _: None)


def describe_candidates(release: Pseudocoreset) -> Array64:
    """Compute features ``(m, k)`` of a release and each candidate."""
    facts, rows = make_facts(), make_rows()
    problem = make_problem(_SPEC, facts)
    table = Table(rows | {"_present": np.ones(facts.slots, dtype=np.uint8)})
    x, y, _ = problem.design.encode(table.gather(np.arange(FIXED, facts.slots)))
    folded = problem.model.fold(x.astype(np.float64), y)
    assert release.y is not None, "a logistic regression has targets"
    points = problem.model.fold(release.u, release.y)
    fitted = fit_laplace(problem.model, points, release.weight, problem.prior, problem.prior.mean)
    mean = fitted.mean if release.posterior is None else release.posterior.mean
    width = np.square(np.linalg.solve(fitted.factor, folded.T)).sum(axis=0)
    margin = folded @ mean
    near = np.exp(-np.square(folded[:, None] - points[None]).sum(axis=2) / 0.5) @ release.weight
    alike = np.maximum(folded @ points.T, 0) @ release.weight / np.linalg.norm(folded, axis=1)
    return np.stack([margin, -np.log1p(np.exp(-margin)), np.log(width), np.log1p(near), np.log1p(alike)], axis=1)


def draw_coins(runs: int) -> Array64:
    """Draw where each candidate is in ``(runs, m)``: in one half of the runs."""
    halves = np.tile(np.arange(runs)[:, None] % 2, CANDIDATES).astype(np.float64)
    return make_monte_carlo_generator().permuted(halves, axis=0)


def draw(plan: MechanismPlan, runs: int) -> tuple[Array64, Array64]:
    """Run ``runs`` times; return features ``(runs, m, k)`` and coins ``(runs, m)``."""
    coins = draw_coins(runs)
    return np.stack([describe_candidates(release_once(plan, each)) for each in coins]), coins


def score_by_one_model(shadows: Array64, coins: Array64, fresh: Array64) -> Array64:
    """Train one logistic regression for all candidates, and score ``fresh`` runs.

    Features are standardised for each candidate, without its coins. Their squares are features, too.
    """
    centre, scale = shadows.mean(axis=0), shadows.std(axis=0) + 1e-12

    def expand(features: Array64) -> Array64:
        standard = np.clip((features - centre) / scale, -5, 5)
        return np.concatenate([standard, standard**2, np.ones((*standard.shape[:2], 1))], axis=2)

    x, y = expand(shadows).reshape(coins.size, -1), coins.ravel()

    def lose(weights: Array64) -> tuple[float, Array64]:
        margin = x @ weights
        value = np.logaddexp(0, margin) @ np.ones(len(y)) - margin @ y + _PENALTY * weights @ weights
        return float(value), x.T @ (expit(margin) - y) + 2 * _PENALTY * weights

    found = minimize(lose, np.zeros(x.shape[1]), jac=True, method="L-BFGS-B")
    return np.asarray(expand(fresh) @ found.x)


def score_by_own_laws(shadows: Array64, coins: Array64, fresh: Array64) -> Array64:
    """Score ``fresh`` runs by the ratio of two normal laws for each candidate."""
    return np.stack(
        [
            NormalRatio.fit(shadows[:, place], coins[:, place]).score(fresh[:, place])
            for place in range(shadows.shape[1])
        ],
        axis=1,
    )


ATTACKERS: Final = {"one model": score_by_one_model, "own laws": score_by_own_laws}


def bound_curve(plan: MechanismPlan, false_positives: float) -> float:
    """Bound the rate of true positives that the plan's events allow."""
    if all(query.event.sampling_rate == 1 for query in plan.queries):
        return AnswerLaw(1 / compute_separation(plan.events)).bound_power(false_positives)
    return ComposedTradeOff(plan.events).bound_power(false_positives)


def bound_area(plan: MechanismPlan) -> float:
    """Bound the area under the curve that the plan's events allow, from above."""
    if all(query.event.sampling_rate == 1 for query in plan.queries):
        return float(ndtr(compute_separation(plan.events) / math.sqrt(2)))
    curve, grid = ComposedTradeOff(plan.events), np.linspace(0, 1, 101)
    powers = np.array([curve.bound_power(float(each)) for each in grid])
    return float(np.mean(powers[1:]))


@dataclass(frozen=True, slots=True)
class Power:
    """A rate of true positives, and bounds on both rates.

    ``least`` is a lower bound on ``rate``, and ``most_false`` an upper bound on the rate of false positives. Both hold
    together at :data:`CONFIDENCE`, if scores are independent.
    """

    rate: float
    least: float
    most_false: float


def count_power(scores: Array64, coins: Array64, false_positives: float) -> Power:
    """Count true positives at the threshold with this rate of false positives.

    The threshold is the quantile of the scores of candidates that are out. So the true rate of false positives may be
    larger.
    """
    absent, present = scores[coins == 0], scores[coins == 1]
    allowed = int(false_positives * len(absent))
    threshold = np.sort(absent)[len(absent) - 1 - allowed]
    true = int((present > threshold).sum())
    error = (1 - CONFIDENCE) / 2
    most_false = bound_proportion(allowed, len(absent), error)[1]
    return Power(true / len(present), bound_proportion(true, len(present), error)[0], most_false)


def attack(task: tuple[str, float], shadows: int = SHADOWS, fresh: int = FRESH) -> list[Result]:
    """Attack one method at one epsilon by both attackers."""
    method, epsilon = task
    plan = make_plan(method, epsilon)
    trained, coins = draw(plan, shadows)
    tested, truth = draw(plan, fresh)
    far = np.arange(CANDIDATES) >= CANDIDATES - FAR
    results = []
    for name, score in ATTACKERS.items():
        scores = score(trained, coins, tested)
        powers = [_list_figures(plan, count_power(scores.ravel(), truth.ravel(), rate), rate) for rate in RATES]
        results.append(
            Result(
                method,
                epsilon,
                name,
                fresh,
                scores.size,
                compute_area(scores.ravel(), truth.ravel()),
                compute_area(scores[:, far].ravel(), truth[:, far].ravel()),
                bound_area(plan),
                *powers[0],
                *powers[1],
            )
        )
    return results


def _list_figures(plan: MechanismPlan, power: Power, false_positives: float) -> tuple[float, float, float, float]:
    """List power, its lower bound, and the allowed power at both other rates."""
    return power.rate, power.least, bound_curve(plan, false_positives), bound_curve(plan, power.most_false)


PAGE: Final = """# Membership inference on releases

{text}

{circumstances}

{verdict}

| method | ε | attacker | area | area, far | allowed | at 1 % | allowed | at 0.1 % | allowed |
| --- | ---: | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |
{rows}

![Area under the curve over epsilon](membership.png)
"""
TEXT: Final = (
    "Written by `make membership`: the success of an attacker who sees one release and wants to decide whether a "
    f"row was in the table. The table has {FIXED} rows that are always there, and {CANDIDATES} candidates, each in "
    f"one half of the runs, drawn at random. {FAR} candidates are *far*: at the declared bounds, half of them with the "
    f"target that the others do not have. The model is a logistic regression, with {SIZE} points and δ = {DELTA:g}. "
    f"{SHADOWS} shadow runs of the same plan train an attacker, and {FRESH} fresh runs test it. *One model* is a "
    "logistic regression for all candidates, on features of a release: margin, log-likelihood, variance, and the "
    "weights of similar points. *Own laws* fits two normal laws to each candidate's shadow runs. *Area* is the "
    "area under the curve of true over false positives; 0.5 is a guess. Then follow the true positives at 1 % and "
    "at 0.1 % of false positives. *Allowed* is the most that the trade-off function of the plan's events allows. "
    f"An attack exceeds the guarantee if a lower bound on its true positives does, at {100 * CONFIDENCE:g} %. The "
    "bounds count scores of one run as independent. "
    "Iterative methods run with fewer iterations than usual, which saves time and does not change the price. "
    "Every figure is in [membership.csv](membership.csv)."
)


def render_page(results: Sequence[Result], circumstances: dict[str, str]) -> str:
    """Render the page."""
    broken = [each for each in results if not each.holds]
    verdict = "No attack exceeds the guarantee." if not broken else f"**{len(broken)} attacks exceed the guarantee.**"
    return PAGE.format(
        text=wrap_paragraph(TEXT),
        circumstances=wrap_paragraph(describe(circumstances)),
        verdict=verdict,
        rows="\n".join(_render_row(each) for each in results),
    )


def _render_row(each: Result) -> str:
    figures = (
        *(each.area, each.area_far, each.allowed_area, each.power_1, each.allowed_1),
        *(each.power_01, each.allowed_01),
    )
    return f"| {each.method} | {each.epsilon:g} | {each.attacker} | {' | '.join(f'{value:.3f}' for value in figures)} |"


def plot(results: Sequence[Result], path: Path) -> None:
    """Draw the larger area of both attackers over epsilon, and the allowed one."""
    figure, panels = plt.subplots(1, 2, figsize=(8, 3.2), layout="constrained")
    for panel, name, title in zip(panels, ("area", "area_far"), ("all candidates", "candidates far out"), strict=True):
        for place, method in enumerate(dict.fromkeys(each.method for each in results)):
            own = [each for each in results if each.method == method]
            epsilons = sorted({each.epsilon for each in own})
            best = [max(getattr(each, name) for each in own if each.epsilon == epsilon) for epsilon in epsilons]
            allowed = [max(each.allowed_area for each in own if each.epsilon == epsilon) for epsilon in epsilons]
            panel.semilogx(epsilons, best, marker=MARKERS[place], color=COLOURS[place], label=method)
            panel.semilogx(epsilons, allowed, linestyle=":", color=COLOURS[place])
        panel.set(xlabel="ε", title=title, ylim=(0.45, 1.02))
    panels[0].set_ylabel("area under the curve")
    panels[0].plot([], [], linestyle=":", color="grey", label="allowed")
    panels[0].legend(loc="upper left", fontsize=8)
    figure.savefig(path, dpi=150)
    plt.close(figure)


def main() -> int:
    """Attack all methods, and write the page, the lines and the figure; return 1 if a claim is refuted."""
    parser = argparse.ArgumentParser(description="Membership inference on releases.")
    parser.add_argument("--quick", action="store_true", help="a small run as a check")
    parser.add_argument("--out", type=Path, default=PAGES)
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--only", choices=METHODS, help="attack one method, and keep the lines of the others")
    options = parser.parse_args()
    methods = (options.only,) if options.only else tuple(METHODS)
    tasks = list(product(methods, (8.0,) if options.quick else EPSILONS))
    count = 12 if options.quick else SHADOWS
    with ProcessPoolExecutor(options.processes) as pool:
        results = [each for found in pool.map(partial(attack, shadows=count, fresh=count), tasks) for each in found]
    file = options.out / "membership.csv"
    if options.only:
        kept = [each for each in read_lines(file, Result) if each.method != options.only]
        results = sorted([*kept, *results], key=lambda each: list(METHODS).index(each.method))
    write_lines(file, results)
    environment = write_environment(options.out / "membership.json", options.only)
    plot(results, options.out / "membership.png")
    (options.out / "membership.md").write_text(render_page(results, environment))
    return int(not all(each.holds for each in results))


if __name__ == "__main__":
    raise SystemExit(main())
