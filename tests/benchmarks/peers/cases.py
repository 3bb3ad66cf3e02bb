"""A small problem for peers."""

from dataclasses import replace

import numpy as np

from app.inference.core.facts import Column
from app.inference.core.plan import PriorSpec
from benchmarks.cases import compute_full_posterior
from benchmarks.peers.problem import Problem, make_problem
from benchmarks.peers.tables import PeerTable
from benchmarks.tables.drawn import Features, Target, assemble
from benchmarks.tables.targets import LABEL, LOGISTIC

LEVELS = ("a", "b", "c")


def draw_table(rows: int = 4000) -> PeerTable:
    rng = np.random.default_rng(5)
    number, level = rng.uniform(-2, 2, rows), rng.integers(0, 3, rows)
    labels = (rng.random(rows) < 1 / (1 + np.exp(0.5 - number - 0.7 * (level == 1)))).astype(np.float64)
    features = Features(
        "small",
        (Column("number", "real", -2.0, 2.0), Column("level", "categorical", categories=LEVELS)),
        (number, level),
    )
    case = assemble(features, Target(LOGISTIC, LABEL, labels), prior=PriorSpec(scale=2.0))
    case = replace(case, name="small", facts=replace(case.facts, delta=1e-4))
    return PeerTable(
        "small", "a small table", replace(case, exact=compute_full_posterior(case)), features, make_problem(case)
    )


def draw_problem(rows: int = 4000) -> Problem:
    return draw_table(rows).problem
