"""DP-PSVI with several numbers of points (Bayesian Pseudocoresets, 2020, Fig. 3 and 4)."""

import math
from collections.abc import Iterator
from dataclasses import replace

from app.inference.core.plan import Mechanism
from app.privacy.accounting import compute_cost
from benchmarks.cases import Case
from benchmarks.experiment import EPSILON, KL, MEMORY, RELATIVE_KL, SECONDS, Experiment
from benchmarks.experiments.paper_tables import NARROW, clamp, list_large, make_large
from benchmarks.experiments.privacy_sweep import PUBLISHED_PSVI
from benchmarks.records import Record
from benchmarks.runs import Job, make_plan

SIZES, EPSILONS, SEEDS = (20, 50, 100, 200), (0.2, 1.0, math.inf), 2
MECHANISM = Mechanism(noise_multiplier=5.0, sampling_rate=0.002, iterations=500)
ALPHAS = (1.0, 10.0)


def plan_work(quick: bool) -> Iterator[Job | Record]:
    """Yields every size at every epsilon, and the published mechanism."""
    for case in map(make_large, list_large()[quick:]):
        narrow = clamp(case)
        for size in SIZES[:1] if quick else SIZES:
            for epsilon in EPSILONS[2:3] if quick else EPSILONS:
                for seed in range(1 if quick else SEEDS):
                    yield Job(narrow, "dp-psvi", size, seed, epsilon=epsilon, label=f"M = {size}")
            for alpha in ALPHAS:
                for seed in range(1 if quick else SEEDS):
                    yield make_published(narrow, size, seed, alpha)


def make_published(case: Case, size: int, seed: int, alpha: float) -> Job:
    """The run of the paper: its mechanism, which states an epsilon, and its steps."""
    parameters = {"steps": PUBLISHED_PSVI["steps"], "learning_rate": alpha / NARROW}
    job = Job(
        case, "dp-psvi", size, seed, parameters, mechanism=MECHANISM, label=f"M = {size}, published, α = {alpha:g}"
    )
    delta = case.facts.delta
    assert delta is not None
    return replace(job, epsilon=compute_cost(make_plan(job).events, delta))


EXPERIMENT = Experiment(
    "private-sizes",
    "Private pseudocoresets of several sizes",
    "Tables as in the large logistic experiment, δ = 1/N, columns clamped as there. Lines: dp-psvi at its defaults. "
    f"Single points: the published mechanism (σ = {MECHANISM.noise_multiplier:g}, sampling rate "
    f"{MECHANISM.sampling_rate:g}, T = {MECHANISM.iterations}) with published steps α/t on raw columns. The "
    "paper states ε = 0.2 for it. The points are drawn at the ε that the accountant of this project computes. The "
    "program of the paper samples ten times as many rows, 2 %.",
    plan_work,
    (KL, RELATIVE_KL, SECONDS, MEMORY),
    {"": EPSILON},
)
