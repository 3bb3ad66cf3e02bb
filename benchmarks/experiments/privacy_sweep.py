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
from benchmarks.experiments.paper_tables import NARROW, clamp, list_large, make_large
from benchmarks.records import Record
from benchmarks.runs import Job

EPSILONS = (0.05, 0.1, 0.2, 0.5, 1.0, math.inf)
SIZE = 100
PUBLISHED_ITERATIONS, PUBLISHED_BATCH, PUBLISHED_RATE, PUBLISHED_CLIP = 2_000, 200, 0.01, 10.0
METHODS, SEEDS = ("dp-psvi-surrogate", "dp-vi", "dp-psvi"), 5
PUBLISHED_PSVI: Mapping[str, Any] = {
    "iterations": 500,
    "sampling_rate": 0.002,
    "steps": "published",
    "learning_rate": 1 / NARROW,
}
"""The settings of DP-PSVI in the paper, with a step of 1 on raw columns."""


def choose_published(case: Case) -> Mapping[str, Any]:
    """The baseline's published settings.

    The clipping norm is divided by the bound, because the design divides columns by it. The paper tunes the norm on
    the private rows at no cost.
    """
    bound = case.facts.columns[0].upper
    assert bound is not None
    return {
        "iterations": PUBLISHED_ITERATIONS,
        "sampling_rate": PUBLISHED_BATCH / case.facts.slots,
        "learning_rate": PUBLISHED_RATE,
        "clip": PUBLISHED_CLIP / bound,
        "average": 0,
        "covariance": "mean-field",
    }


def plan_work(quick: bool) -> Iterator[Job | Record]:
    """Yields every method at every epsilon."""
    for case in map(make_large, list_large()[quick:]):
        for epsilon in (1.0, math.inf) if quick else EPSILONS:
            for method in METHODS:
                for seed in range(1 if quick else SEEDS):
                    yield Job(case, method, SIZE, seed, epsilon=epsilon)
            for seed in range(1 if quick else SEEDS):
                yield Job(clamp(case), "dp-psvi", SIZE, seed, epsilon=epsilon, label="dp-psvi, clamped")
                yield Job(
                    clamp(case), "dp-psvi", SIZE, seed, PUBLISHED_PSVI, epsilon, label="dp-psvi, published settings"
                )
                yield Job(case, "dp-vi", SIZE, seed, choose_published(case), epsilon, label="dp-vi, published settings")


EXPERIMENT = Experiment(
    "privacy-sweep",
    "Privacy sweep",
    f"Tables as in the large logistic experiment, M = {SIZE}, δ = 1/N, every method at its defaults. Noise is discrete "
    "Gaussian; the last column has no noise. dp-vi is measured by its stated posterior, the others by their points. "
    f"dp-psvi starts at random points within the declared bounds, here ±8 and ±16. *Clamped*: the bounds are "
    f"±{NARROW:g}, where the points of the paper start. dp-vi with published settings: T = "
    f"{PUBLISHED_ITERATIONS:,}, batch {PUBLISHED_BATCH}, "
    f"AdaGrad {PUBLISHED_RATE:g}, clip {PUBLISHED_CLIP:g} on raw columns, mean-field. dp-psvi with published settings: "
    f"T = {PUBLISHED_PSVI['iterations']}, sampling rate {PUBLISHED_PSVI['sampling_rate']:g}, C one median norm, Adam's "
    "steps 1/t on raw columns, weights from N/M; columns are clamped. As in the paper, only the noise depends on ε.",
    plan_work,
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
