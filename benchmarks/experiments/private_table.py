"""Targets of private pseudocoresets: four designs, five epsilons, one set of defaults."""

import math
from collections.abc import Iterator, Sequence
from functools import cache
from typing import Final

from app.inference.core.model import Array64
from benchmarks.cases import Case, make_logistic
from benchmarks.designs import draw_bnd15, draw_bnd40
from benchmarks.experiment import ACCURACY, EPSILON, KL, LOG_LIKELIHOOD, MEMORY, RELATIVE_KL, SECONDS, Experiment
from benchmarks.experiments.paper_tables import make_large
from benchmarks.floors import EXPECTED, OF_ROWS, compute_noise_floors, compute_table_floors, list_floor_references
from benchmarks.records import Record
from benchmarks.runs import Job

METHOD, SIZE, SEEDS = "dp-psvi-surrogate", 100, 4
EPSILONS: Final = (0.05, 0.1, 0.2, 0.5, 1.0)
_NONE: Final = math.nan
AT_MOST: Final = {
    "synth100k": (250, 75, 22, 5, 1.8),
    "adult10": (280, 100, 40, 6.5, 2.5),
    "bnd15": (_NONE, 60, 25, _NONE, 5),
    "bnd40": (_NONE, 240, 85, _NONE, 5),
}
AIMS: Final = {
    "synth100k": (120, 40, 12, 3, 1),
    "adult10": (100, 30, 10, 2.5, 0.8),
    "bnd15": (_NONE, 40, 14, _NONE, 1.5),
    "bnd40": (_NONE, 110, 35, _NONE, 3),
}


@cache
def make_design(name: str) -> Case:
    """One of the four designs."""
    if name in {"bnd15", "bnd40"}:
        return make_logistic(name, draw_bnd15() if name == "bnd15" else draw_bnd40(), bound=1.0)
    return make_large(name)


def list_references(case: Case) -> Iterator[Record]:
    """The target, the aim and both floors."""
    values: dict[str, Sequence[float] | Array64] = {
        "at most": AT_MOST[case.name],
        "aim": AIMS[case.name],
        EXPECTED: compute_noise_floors(case, EPSILONS),
        OF_ROWS: compute_table_floors(case, EPSILONS),
    }
    return list_floor_references(case, SIZE, EPSILONS, values)


def plan_work(quick: bool) -> Iterator[Job | Record]:
    """Yields the references of each design, then the runs, seed by seed."""
    cases = [make_design(name) for name in (("bnd15",) if quick else AIMS)]
    for case in cases:
        yield from list_references(case)
    for seed in range(2 if quick else SEEDS):
        for case in cases:
            for epsilon in (0.2, 1.0) if quick else EPSILONS:
                yield Job(case, METHOD, SIZE, seed, epsilon=epsilon)


EXPERIMENT = Experiment(
    "private-table",
    "Private pseudocoresets",
    f"{METHOD} at its defaults, M = {SIZE}, δ = 1/N, discrete Gaussian noise, prior N(0, I) on raw columns. "
    "Columns of synth100k and adult10 have no bounds by nature, and are declared so wide that no value is clamped. "
    "Columns of bnd15 and bnd40 are bounded and heavy-tailed, with rare levels and collinear indicators. *At most* and "
    "*aim* are targets for the method: the largest acceptable KL, and the desired one. A floor is the expected KL of "
    "one Gaussian release that spends the whole budget and is given the posterior. The one-shot noise floor assumes "
    "labels that follow the model; the floor of these rows uses the actual labels.",
    plan_work,
    (KL, RELATIVE_KL, ACCURACY, LOG_LIKELIHOOD, SECONDS, MEMORY),
    {"": EPSILON},
    floor=OF_ROWS,
    target="at most",
)
