"""PSVI by its number of gradient steps, with their cost in seconds."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from benchmarks.experiment import KL, RELATIVE_KL, SECONDS, Experiment, Quantity
from benchmarks.experiments.paper_tables import list_large, make_large
from benchmarks.records import Record
from benchmarks.runs import Job

VARIANTS: Final[tuple[tuple[Mapping[str, Any], str], ...]] = (
    ({"iterations": 500}, "T = 500"),
    ({"iterations": 2_000}, "T = 2,000"),
    ({}, "T = 5,000"),
    ({"minibatch": 5_000}, "T = 5,000, B = 5,000"),
)
SIZES, SEEDS = (100,), 2


def plan_work(quick: bool) -> Iterator[Job | Record]:
    """Yields every number of steps at both sizes."""
    for case in map(make_large, list_large()[quick:]):
        for size in SIZES[:1] if quick else SIZES:
            for parameters, label in VARIANTS[:2] if quick else VARIANTS:
                for seed in range(1 if quick else SEEDS):
                    yield Job(case, "psvi", size, seed, parameters, label=label)


EXPERIMENT = Experiment(
    "psvi-iterations",
    "PSVI by its number of steps",
    "Tables as in the large logistic experiment, PSVI with B = 1,000 unless stated. T = 5,000 is the "
    "default, formerly 500.",
    plan_work,
    (KL, RELATIVE_KL, Quantity(SECONDS.name, SECONDS.label)),
)
