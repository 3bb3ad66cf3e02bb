"""Visits to doctors, and heavy-tailed or skewed residuals, with targets for the KL."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cache
from typing import Final

import numpy as np

from app.inference.core.facts import Column
from app.inference.core.model import Array64
from benchmarks.cases import Case, compute_full_posterior
from benchmarks.experiment import EPSILON, KL, SECONDS, Experiment
from benchmarks.floors import EXPECTED, compute_release_floors, list_floor_references
from benchmarks.records import Record
from benchmarks.runs import Job
from benchmarks.tables.drawn import Features, Target, Values, assemble
from benchmarks.tables.real import load
from benchmarks.tables.targets import LINEAR, NEGATIVE_BINOMIAL, POISSON, STUDENT_T

METHOD, SIZE, SEEDS = "dp-psvi-surrogate", 50, 5
EPSILONS: Final = (0.2, 1.0, 2.0)
_NONE: Final = math.nan
AT_MOST: Final = {
    "visits, Poisson": (_NONE, 40, _NONE),
    "visits, negative binomial": (_NONE, 5, _NONE),
    "t(3), known scale": (_NONE, _NONE, 5),
    "t(3), unknown scale": (_NONE, _NONE, 5),
    "t(3), Student-t model": (_NONE, _NONE, 5),
    "exponential, known scale": (_NONE, _NONE, 5),
    "exponential, unknown scale": (_NONE, _NONE, 5),
}
_ROWS: Final = 20_000
_BOUND: Final = 15.0
"""Bounds of the drawn targets; one t(3) residual in 5,000 is beyond."""
_VISITORS: Final = ("lncoins", "idp", "lpi", "disea", "hlthg")


def _make_visits(family: str) -> Case:
    """Make the table of visits to a doctor by five columns (RAND health insurance)."""
    frame = load("statsmodels", "randhie")
    columns, values = list[Column](), list[Values]()
    for name in _VISITORS:
        column = frame[name].to_numpy().astype(np.float64)
        is_flag = set(np.unique(column)) <= {0.0, 1.0}
        bounds = (None, None) if is_flag else (float(column.min()), float(column.max()))
        columns.append(Column(name, "binary" if is_flag else "real", *bounds))
        values.append(column)
    visits = frame["mdvis"].to_numpy().astype(np.float64)
    features = Features("visits", tuple(columns), tuple(values))
    return assemble(features, Target(family, Column("mdvis", "integer", 0, 100), visits))


def _draw_line(law: str, family: str, noise_scale: float | None) -> Case:
    """One feature, and residuals of another law than the family's."""
    rng = np.random.default_rng(5)
    x = rng.uniform(-1, 1, _ROWS)
    residuals = rng.standard_t(3, _ROWS) if law == "t(3)" else rng.exponential(1, _ROWS) - 1
    values = np.clip(1 + 2 * x + residuals, -_BOUND, _BOUND)
    features = Features("line", (Column("x", "real", -1, 1),), (x,))
    return assemble(features, Target(family, Column("y", "real", -_BOUND, _BOUND), values, noise_scale))


@cache
def make_table(name: str) -> Case:
    """A table of :data:`AT_MOST` with its exact posterior."""
    law, model = name.split(", ")
    if law == "visits":
        case = _make_visits(POISSON if model == "Poisson" else NEGATIVE_BINOMIAL)
    else:
        family = STUDENT_T if model == "Student-t model" else LINEAR
        case = _draw_line(law, family, 1.0 if model == "known scale" else None)
    facts = replace(case.facts, delta=1 / case.facts.slots)
    return replace(case, name=name, facts=facts, exact=compute_full_posterior(case))


def list_references(case: Case) -> Iterator[Record]:
    """The target and the floor."""
    values: dict[str, Sequence[float] | Array64] = {
        "at most": AT_MOST[case.name],
        EXPECTED: compute_release_floors(case, EPSILONS),
    }
    return list_floor_references(case, SIZE, EPSILONS, values)


def plan_work(quick: bool) -> Iterator[Job | Record]:
    """Yields the references of each table, then the runs, seed by seed."""
    cases = [make_table(name) for name in (list(AT_MOST)[2:3] if quick else AT_MOST)]
    for case in cases:
        yield from list_references(case)
    for seed in range(2 if quick else SEEDS):
        for case in cases:
            for epsilon in EPSILONS:
                yield Job(case, METHOD, SIZE, seed, epsilon=epsilon)


EXPERIMENT = Experiment(
    "other-residuals",
    "Targets that do not follow their family",
    f"{METHOD} at its defaults, M = {SIZE}. *Visits* are those to a doctor by five columns (RAND health insurance): "
    "counts that vary more than Poisson counts, and more than negative binomial counts of the default dispersion. The "
    f"other tables have {_ROWS:,} rows, one feature, slope 2 and intercept 1. Residuals are heavy-tailed or skewed. "
    f"Targets are clamped to ±{_BOUND:g}. The model is linear regression unless stated. *At most* is the target: the "
    "largest acceptable KL. The one-shot noise floor assumes targets that follow the model. It is that of one Gaussian "
    "release of the whole budget, which is given the posterior.",
    plan_work,
    (KL, SECONDS),
    {"": EPSILON},
    floor=EXPECTED,
    target="at most",
)
