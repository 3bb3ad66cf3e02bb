"""Distance of private pseudocoresets from the floor, on tables of many shapes."""

from collections.abc import Iterator, Sequence
from functools import cache
from typing import Final

from app.inference.core.model import Array64
from app.inference.methods.surrogate.planning import UNRESOLVED
from benchmarks.cases import Case, make_logistic
from benchmarks.experiment import EPSILON, KL, SECONDS, Experiment
from benchmarks.floors import (
    EXPECTED,
    OF_ROWS,
    compute_noise_floors,
    compute_one_shot_noise,
    compute_table_floors,
    list_floor_references,
)
from benchmarks.records import Record
from benchmarks.runs import Job
from benchmarks.summaries import spell_count
from benchmarks.unseen import LAWS, draw_unseen

METHOD, SIZE, SEEDS = "dp-psvi-surrogate", 100, 5
EPSILONS: Final = (0.05, 0.1, 0.2, 1.0)
_QUICK: Final = "three features"


def read_promise(epsilon: float) -> int:
    """The target of the median KL, as a multiple of the floor."""
    return 5 if epsilon <= 0.2 else 8


@cache
def make_table(name: str) -> Case:
    """The table of a law."""
    return make_logistic(name, draw_unseen(name), bound=LAWS[name].bound)


def list_within_reach(case: Case) -> tuple[float, ...]:
    """The epsilons with a target: those at which no quote warns of ``sigma D^2 / slots``."""
    slots, dimension = case.facts.slots, case.problem.model.dimension
    return tuple(
        epsilon
        for epsilon in EPSILONS
        if compute_one_shot_noise(epsilon, 1 / slots) * dimension**2 / slots <= UNRESOLVED
    )


def list_references(case: Case) -> Iterator[Record]:
    """The target, and both floors."""
    epsilons = list_within_reach(case)
    floors = compute_table_floors(case, epsilons)
    most = [read_promise(epsilon) * floor for epsilon, floor in zip(epsilons, floors, strict=True)]
    values: dict[str, Sequence[float] | Array64] = {
        "promised": most,
        OF_ROWS: floors,
        EXPECTED: compute_noise_floors(case, epsilons),
    }
    return list_floor_references(case, SIZE, epsilons, values)


def plan_work(quick: bool) -> Iterator[Job | Record]:
    """Yields the references and runs of each table."""
    for case in map(make_table, (_QUICK,) if quick else LAWS):
        yield from list_references(case)
        for epsilon in list_within_reach(case):
            for seed in range(2 if quick else SEEDS):
                yield Job(case, METHOD, SIZE, seed, epsilon=epsilon)


EXPERIMENT = Experiment(
    "unseen",
    "Private pseudocoresets on tables of many shapes",
    f"{METHOD} at its defaults, M = {SIZE}, δ = 1/N, on one table from each of {spell_count(len(LAWS))} distributions, "
    f"where σD²/N is at most {UNRESOLVED:g}. The floor of these rows is the expected KL of one "
    "Gaussian release that spends the whole budget and is given their mode and information. It includes the errors by "
    f"bounds. *Promised* is the aim: a median of at most {read_promise(0.2)} times this floor up to ε = 0.2, and "
    f"{read_promise(1.0)} times at ε = 1. The one-shot noise floor assumes labels that follow the model.",
    plan_work,
    (KL, SECONDS),
    {"": EPSILON},
    floor=OF_ROWS,
    target="promised",
)
