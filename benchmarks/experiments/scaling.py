"""Time and memory of private methods, one axis at a time: rows, features, points."""

from collections.abc import Iterator

from app.inference.core.plan import Mechanism
from app.inference.private_zone.rows import RESIDENT_BYTES
from benchmarks.cases import Case
from benchmarks.experiment import MEMORY, SECONDS, SIZE, Experiment, Quantity
from benchmarks.records import Record
from benchmarks.runs import Job
from benchmarks.sources import GeneratedRows, make_facts, make_spec

ROWS, FEATURES, POINTS = 100_000, 20, 100
BY_ROWS = (10_000, 100_000, 1_000_000, 10_000_000, 100_000_000)
BY_FEATURES = (10, 20, 50, 100, 200, 500, 1_000)
BY_POINTS = (10, 30, 100, 300, 1_000)
BATCH, ITERATIONS, NOISE, EPSILON = 2_000, 500, 5.0, 1.0
SEEDS, LIMIT_SECONDS = 2, 1_200
MANY_ROWS, MANY_FEATURES = 10_000_000, 500


def make_table(name: str, rows: int, features: int) -> Case:
    """A table of generated rows, without an exact posterior."""
    return Case(name, make_facts(features, rows, 1 / rows), make_spec(features), GeneratedRows(rows, features))


def list_cells(quick: bool) -> Iterator[tuple[Case, int]]:
    """Yields tables and sizes, one axis after the other."""
    if quick:
        yield make_table("by rows", 10_000, 5), 10
        return
    for rows in BY_ROWS:
        yield make_table("by rows", rows, FEATURES), POINTS
    for features in BY_FEATURES:
        yield make_table("by features", ROWS, features), POINTS
    for points in BY_POINTS:
        yield make_table("by points", ROWS, FEATURES), points


def plan_work(quick: bool) -> Iterator[Job | Record]:
    """Yields the runs; large cells have one seed."""
    for case, points in list_cells(quick):
        rows = case.facts.slots
        large = rows >= MANY_ROWS or case.problem.model.dimension > MANY_FEATURES
        paper = Mechanism(NOISE, min(1.0, BATCH / rows), ITERATIONS)
        for seed in range(1 if quick or large else SEEDS):
            yield Job(case, "dp-psvi", points, seed, mechanism=paper, limit_seconds=LIMIT_SECONDS)
            yield Job(case, "dp-psvi-surrogate", points, seed, epsilon=EPSILON, limit_seconds=LIMIT_SECONDS)


EXPERIMENT = Experiment(
    "scaling",
    "Scaling",
    f"N = {ROWS:,} rows, {FEATURES} features, M = {POINTS}; each table varies one of these. Logistic regression, with "
    f"rows that are generated during the run. dp-psvi: T = {ITERATIONS}, batch {BATCH:,}, S = 100, σ = {NOISE:g}; "
    "dp-psvi-surrogate at its defaults, "
    f"ε = {EPSILON:g}, which reads the whole table for each query. Discrete Gaussian noise, one core. Time is that "
    "of the whole run, without the generation of rows. Memory is the growth of the process. Folded rows are kept in "
    f"memory if they fit into {RESIDENT_BYTES >> 20} MiB. Otherwise they are read again for every query, which takes "
    "less memory and more time: so the curve of dp-psvi-surrogate by rows is steeper from there on. "
    f"A run was stopped after {LIMIT_SECONDS} s of "
    f"processor time. Cells have {SEEDS} runs, and 1 from {MANY_ROWS:,} rows or {MANY_FEATURES} features on.",
    plan_work,
    (Quantity(SECONDS.name, SECONDS.label), Quantity(MEMORY.name, MEMORY.label)),
    {"by rows": "rows", "by features": "parameters", "by points": SIZE},
)
