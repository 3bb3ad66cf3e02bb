"""Quality against privacy, for all private methods (Bayesian Pseudocoresets, 2020, Fig. 4)."""

import math
from collections.abc import Iterator, Mapping
from typing import Any

from benchmarks.cases import Case
from benchmarks.experiment import (
    ACCURACY,
    EPSILON,
    KL,
    LOG_LIKELIHOOD,
    MEMORY,
    RELATIVE_KL,
    SECONDS,
    Experiment,
    Quantity,
)
from benchmarks.experiments.logistic import clamped, large
from benchmarks.records import Record
from benchmarks.runs import Job, known

EPSILONS = (0.05, 0.1, 0.2, 0.5, 1.0, math.inf)
SIZE, PUBLISHED_BATCH, PUBLISHED_CLIP = 100, 200, 10.0
METHODS, SEEDS = ("dp-psvi-surrogate", "dp-vi", "dp-psvi"), 10


def published(case: Case) -> Mapping[str, Any]:
    """The baseline's published settings; a raw clip is so many times smaller where columns are divided by their bound.

    The paper tunes the clip on the private rows, for free.
    """
    bound = case.facts.columns[0].upper
    assert bound is not None
    return {
        "iterations": 2_000,
        "sampling_rate": PUBLISHED_BATCH / case.facts.slots,
        "learning_rate": 0.01,
        "clip": PUBLISHED_CLIP / bound,
        "average": 0,
        "covariance": "mean-field",
    }


def work(quick: bool) -> Iterator[Job | Record]:
    """Methods that this version has."""
    for case in map(large, ("adult10",) if quick else ("synth100k", "adult10")):
        for epsilon in (1.0, math.inf) if quick else EPSILONS:
            for method in METHODS:
                for seed in range(1 if quick else SEEDS) if known(method) else ():
                    yield Job(case, method, SIZE, seed, epsilon=epsilon)
            for seed in range(1 if quick else SEEDS):
                yield Job(clamped(case), "dp-psvi", SIZE, seed, epsilon=epsilon, label="dp-psvi, clamped")
                yield Job(case, "dp-vi", SIZE, seed, published(case), epsilon, label="dp-vi, published settings")


EXPERIMENT = Experiment(
    "privacy-sweep",
    "Privacy sweep",
    "Tables as in the large logistic experiment, M = 100, δ = 1/N, every method at its defaults; discrete Gaussian "
    "noise, and at the right end none. dp-vi is judged by the posterior that it states, the others by their points. "
    "dp-psvi starts anywhere within the declared bounds, ±8 and ±16 here; *clamped*: at ±2, where the paper's points "
    "start. dp-vi with published settings: T = 2,000, batch 200, AdaGrad 0.01, clip 10 on raw columns, mean-field.",
    work,
    (
        KL,
        RELATIVE_KL,
        ACCURACY,
        Quantity(LOG_LIKELIHOOD.name, LOG_LIKELIHOOD.label, logarithmic=False),
        SECONDS,
        MEMORY,
    ),
    {"": EPSILON},
)
