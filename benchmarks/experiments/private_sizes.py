"""DP-PSVI with several numbers of points (Bayesian Pseudocoresets, 2020, Fig. 3 and 4)."""

import math
from collections.abc import Iterator
from dataclasses import replace

from app.inference.core.plan import Mechanism
from app.privacy.accounting import compute_cost
from benchmarks.cases import Case
from benchmarks.experiment import KL, MEMORY, RELATIVE_KL, SECONDS, Experiment
from benchmarks.experiments.paper_tables import NARROW, clamp, list_large, make_large
from benchmarks.experiments.privacy_sweep import PUBLISHED_PSVI
from benchmarks.records import Record
from benchmarks.runs import Job, make_plan

SIZES, EPSILONS, SEEDS = (20, 50, 100, 200), (0.2, 1.0, math.inf), 2
MECHANISMS = tuple(Mechanism(noise_multiplier=5.0, sampling_rate=rate, iterations=500) for rate in (0.002, 0.02))
"""The sampling rates of the paper and of its program."""
ALPHAS = (1.0, 10.0)


def plan_work(quick: bool) -> Iterator[Job | Record]:
    """Yields every size at every epsilon, and the published mechanism."""
    for case in map(make_large, list_large()[quick:]):
        narrow = clamp(case)
        for size in SIZES[:1] if quick else SIZES:
            for epsilon in EPSILONS[2:3] if quick else EPSILONS:
                for seed in range(1 if quick else SEEDS):
                    yield Job(narrow, "dp-psvi", size, seed, epsilon=epsilon, label=name_line(epsilon))
            for mechanism in MECHANISMS:
                for alpha in ALPHAS:
                    for seed in range(1 if quick else SEEDS):
                        yield make_published(narrow, size, seed, mechanism, alpha)


def name_line(epsilon: float) -> str:
    """Name the line of the defaults at an epsilon."""
    return "no noise" if math.isinf(epsilon) else f"ε = {epsilon:g}"


def name_published(mechanism: Mechanism, alpha: float) -> str:
    """Name the line of published steps."""
    return f"published, q = {mechanism.sampling_rate:g}, α = {alpha:g}"


def make_published(case: Case, size: int, seed: int, mechanism: Mechanism, alpha: float) -> Job:
    """The run of the paper: its mechanism, which states an epsilon, and its steps."""
    parameters = {"steps": PUBLISHED_PSVI["steps"], "learning_rate": alpha / NARROW}
    label = name_published(mechanism, alpha)
    job = Job(case, "dp-psvi", size, seed, parameters, mechanism=mechanism, label=label)
    delta = case.facts.delta
    assert delta is not None
    return replace(job, epsilon=compute_cost(make_plan(job).events, delta))


EXPERIMENT = Experiment(
    "private-sizes",
    "Private pseudocoresets of several sizes",
    "Tables as in the large logistic experiment, δ = 1/N, columns clamped as there. ε: dp-psvi at its defaults. "
    f"*Published*: the mechanism of the paper (σ = {MECHANISMS[0].noise_multiplier:g}, T = "
    f"{MECHANISMS[0].iterations}), with published steps α/t on raw columns. The paper states the sampling rate "
    "q = 0.002 and ε = 0.2. Its program samples 0.02. The CSV file has the smaller ε that the "
    "accountant of this project computes.",
    plan_work,
    (KL, RELATIVE_KL, SECONDS, MEMORY),
)
