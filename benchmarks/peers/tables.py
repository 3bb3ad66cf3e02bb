"""The tables of the comparison: doctor visits, census income with eight and all columns, and heavy-tailed features.

Every table is a logistic regression with a normal prior of one scale, and has as many slots as rows. Bounds and
categories are declared; for doctor visits they are the least and largest value.
"""

import csv
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
from scipy.special import expit

from app.inference.core.facts import Column
from app.inference.core.model import Array64
from app.inference.core.plan import PriorSpec
from benchmarks.adult import TRAIN, require
from benchmarks.cases import Case, compute_full_posterior
from benchmarks.peers.problem import Problem, make_problem
from benchmarks.tables.drawn import Features, Target, Values, assemble
from benchmarks.tables.real import load
from benchmarks.tables.targets import LABEL, LOGISTIC, standardise
from demo import census

HEAVY_SEED: Final = 7_310_425_517
"""Drawn once for the report; development used small seeds."""
EIGHT: Final = (
    "age", "workclass", "education_num", "marital_status", "occupation", "race", "sex", "hours_per_week"
)  # fmt: skip
_HEAVY_ROWS: Final = 30_000


@dataclass(frozen=True, slots=True, eq=False)
class PeerTable:
    """A case with an exact posterior, its features, and its problem."""

    name: str
    what: str
    case: Case
    features: Features
    problem: Problem


def make_visits() -> PeerTable:
    """Whether somebody saw a doctor (RAND health insurance experiment)."""
    frame = load("statsmodels", "randhie")
    parts: list[tuple[Column, Values]] = []
    for name in (each for each in frame.columns if each != "mdvis"):
        values = frame[name].to_numpy().astype(np.float64)
        is_flag = set(np.unique(values)) <= {0.0, 1.0}
        bounds = (None, None) if is_flag else (float(values.min()), float(values.max()))
        parts.append((Column(name, "binary" if is_flag else "real", *bounds), values))
    labels = (frame["mdvis"].to_numpy() > 0).astype(np.float64)
    return _make("insurance", "RAND health insurance: any visit to a doctor", parts, labels, scale=1.0)


def make_census(columns: Sequence[str], name: str) -> PeerTable:
    """Census income above 50,000 dollars, training rows, with the demo's declaration."""
    with require(TRAIN).open(newline="") as stream:
        rows = [row for row in csv.reader(stream, skipinitialspace=True) if len(row) == len(census.SCHEMA.names)]
    cells = dict(zip(census.SCHEMA.names, np.array(rows).T, strict=True))
    parts: list[tuple[Column, Values]] = []
    for declared in census.SCHEMA:
        if declared.name not in columns:
            continue
        if declared.type == "categorical":
            levels = tuple(declared.categories or ())
            codes = np.array([levels.index(cell) for cell in cells[declared.name]])
            parts.append((Column(declared.name, "categorical", categories=levels), codes))
        else:
            column = Column(declared.name, "integer", declared.lower, declared.upper)
            parts.append((column, cells[declared.name].astype(np.float64)))
    labels = np.char.startswith(cells[census.TARGET], ">50K").astype(np.float64)
    return _make(name, f"census income, {len(parts)} columns", parts, labels, scale=1.0)


def make_heavy(seed: int) -> PeerTable:
    """Student's t and log-normal features in bounds that are far wider than most values."""
    rng = np.random.default_rng(seed)
    parts: list[tuple[Column, Values]] = []
    for place, bound in enumerate((15.0, 30.0, 60.0, 100.0)):
        parts.append((Column(f"t{place}", "real", -bound, bound), rng.standard_t(2.5, _HEAVY_ROWS)))
    for place, most in enumerate((20.0, 50.0, 100.0, 200.0)):
        values = np.exp(rng.uniform(0.8, 1.3) * rng.standard_normal(_HEAVY_ROWS))
        parts.append((Column(f"amount{place}", "real", 0.0, most), values))
    clipped = np.column_stack([np.clip(values, column.lower, column.upper) for column, values in parts])
    predictor = standardise(clipped / clipped.std(axis=0) @ rng.standard_normal(len(parts)))
    labels = (rng.random(_HEAVY_ROWS) < expit(1.5 * predictor - 0.5)).astype(np.float64)
    return _make("heavy tails", "Student's t (2.5 degrees) and log-normal features", parts, labels, scale=10.0)


def _make(name: str, what: str, parts: Sequence[tuple[Column, Values]], labels: Array64, scale: float) -> PeerTable:
    columns, values = zip(*parts, strict=True)
    features = Features(name, columns, values)
    case = assemble(features, Target(LOGISTIC, LABEL, labels), prior=PriorSpec(scale=scale))
    facts = replace(case.facts, delta=1 / case.facts.slots)
    case = replace(case, name=name, facts=facts)
    case = replace(case, exact=compute_full_posterior(case))
    what = f"{what}; {case.facts.slots:,} rows, {case.problem.model.dimension} coefficients, prior N(0, {scale**2:g})"
    return PeerTable(name, what, case, features, make_problem(case))


TABLES: Final[Mapping[str, Callable[[], PeerTable]]] = {
    "insurance": make_visits,
    "census, 8 columns": lambda: make_census(EIGHT, "census, 8 columns"),
    "heavy tails": lambda: make_heavy(HEAVY_SEED),
    "census, all columns": lambda: make_census(census.SCHEMA.names[:-1], "census, all columns"),
}
"""How to make each table, in the order of the page."""
