"""Dependence of run time on the number of rows: ``make presence-bench``.

Encodes a table and runs every kind of query of every family, also with terms, and sums of statistics. No slot, a random
half of the slots, or every slot of the table holds a row. The three tables take turns, so that other load slows all of
them, and processor times are compared turn by turn. A ratio other than 1 is a side channel (W14).
"""

import os

os.environ |= {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}

import argparse
import csv
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, cast

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table

from app.inference.conjugate import make_conjugate_problem
from app.inference.core.design import Design
from app.inference.core.designs import Feature, Fourier, Interaction, Polynomial, Spline
from app.inference.core.facts import Column, DeclaredFacts
from app.inference.core.model import Array32, Model, RowModel
from app.inference.core.plan import ModelSpec
from app.inference.core.problems import make_problem
from app.inference.core.query import Query
from app.inference.core.row_source import PRESENT
from app.inference.core.statistics import DocumentModel, RowEncoder, compute_units
from app.inference.private_zone.mechanisms import BadQuery
from app.inference.private_zone.partition import gather
from app.inference.private_zone.queries import (
    BoundedScoreSum,
    ClippedScoreSum,
    CutScoreSum,
    ExcessSum,
    InformationSum,
    LengthHistogram,
    MeanSum,
    MomentSum,
    PotentialSum,
    ResidualHistogram,
    StatisticSum,
    TailSum,
    TopicSum,
)

SHARES: Final = {"empty": 0.0, "half": 0.5, "full": 1.0}
FEATURES: Final = 40
ENCODED_SLOTS: Final = 524_288
QUERY_SLOTS: Final = 65_536
DRAWS: Final = 64
DOCUMENTS, LENGTH, WORDS, TOPICS = 4_096, 32, 500, 10
TERMS: Final[tuple[Feature, ...]] = (
    "b",
    Spline("x0", 6),
    Polynomial("x1", 4),
    Interaction((Spline("x2", 4), "c", "x3")),
    Fourier(("x4", "x5"), 20, 1.0, 1),
)
TARGETS: Final = {
    "logistic-regression": Column("target", "binary"),
    "probit-regression": Column("target", "binary"),
    "linear-regression": Column("target", "real", 0.0, 10.0),
    "student-t-regression": Column("target", "real", 0.0, 11.0),
    "poisson-regression": Column("target", "integer", 0.0, 20.0),
    "negative-binomial-regression": Column("target", "integer", 0.0, 21.0),
    "multinomial-logistic": Column("target", "categorical", categories=("a", "b", "c")),
    "gaussian-mean": None,
}
"""The target of each family. All are different, because :func:`declare` finds the family by its target."""


@dataclass(frozen=True, slots=True)
class Figure:
    """Median milliseconds on each of the three tables, with median ratios."""

    family: str
    work: str
    empty: float
    half: float
    full: float
    ratios: tuple[float, float]
    """Ratios of the empty and of the half table to the full one."""


class Rows:
    """A table in memory with rows in a random share of its slots."""

    rows_per_slot = 1

    def __init__(self, columns: tuple[Column, ...], slots: int, share: float) -> None:
        rng = np.random.default_rng(1)
        self.slots = slots
        present = rng.random(slots) < share
        self.table: dict[str, NDArray[Any]] = {column.name: _values(rng, column, slots) for column in columns}
        for values in self.table.values():
            values[~present] = 0
        self.table[PRESENT] = present.astype(np.uint8)

    def gather(self, indices: NDArray[np.int64]) -> Mapping[str, NDArray[Any]]:
        """The rows at ``indices``, which are consecutive."""
        return {name: values[indices[0] : indices[-1] + 1] for name, values in self.table.items()}


def _values(rng: np.random.Generator, column: Column, slots: int) -> NDArray[Any]:
    match column.type:
        case "categorical":
            return rng.integers(0, len(column.categories), slots).astype(np.uint16)
        case "binary":
            return rng.integers(0, 2, slots).astype(np.float64)
        case "integer":
            return rng.integers(int(column.lower or 0), int(column.upper or 0) + 1, slots).astype(np.float64)
        case "real":
            return rng.uniform(column.lower or 0, column.upper or 0, slots)


def declare(target: Column | None, slots: int) -> tuple[ModelSpec, DeclaredFacts]:
    """A model with :data:`FEATURES` features, and the declaration of its table with ``slots``."""
    features = [Column(f"x{i}", "real", -1.0, 3.0) for i in range(FEATURES)]
    if target is not None:
        features[-2:] = [Column("b", "binary"), Column("c", "categorical", categories=("p", "q", "r"))]
    columns = (*features, target) if target is not None else tuple(features)
    family = next(name for name, column in TARGETS.items() if column == target)
    spec = ModelSpec(family, tuple(column.name for column in features), None if target is None else target.name)
    return spec, DeclaredFacts(columns, slots, {"kind": "row"}, "private", 1e-6)


def list_queries(model: Model, design: Design) -> Iterator[Query]:
    """One query of every kind that the model supports."""
    rng, p, d = np.random.default_rng(2), design.width, model.dimension
    theta, transform = 0.2 * rng.standard_normal(d), np.eye(d)
    deviations = 0.1 * rng.standard_normal((DRAWS // 2, d))
    shape: dict[str, Any] = {"scale": 1.0, "width": p, "intercept": design.intercept}
    kinds: list[Query] = [
        PotentialSum(np.concatenate([theta + deviations, theta - deviations]), 1.0, antithetic=True),
        PotentialSum(theta + rng.standard_normal((DRAWS, d)), 1.0),
        BoundedScoreSum(theta, transform, 1.0),
        ClippedScoreSum(theta, transform, 1.0),
        InformationSum(theta, transform, 1.0),
        MomentSum(**shape, clip=5.0),
        MeanSum(**shape, clip=5.0),
        LengthHistogram(**shape, largest=80.0, squares=True),
        CutScoreSum(theta, transform, 1.0, 2.0),
        ResidualHistogram(theta),
        ExcessSum(theta, 1.5, scale=1.0, centre=0.1, spread=0.5, squares=0.3, clip=2.0),
    ]
    if design.intercept:
        centre = np.zeros(p - 1)
        kinds.append(TailSum(**shape, centre=centre, deviation=np.full(p - 1, 0.5), clip=1.0))
    yield from (query for query in kinds if _fits(query, model, design))


def _fits(query: Query, model: Model, design: Design) -> bool:
    try:
        query.check(model, design)
    except BadQuery:
        return False
    return True


def compare(family: str, work: str, of_share: Mapping[str, Callable[[], object]], repeats: int) -> Figure:
    """The figure of ``repeats`` turns. Each turn uses all tables, in a rotating order."""
    seconds: dict[str, list[float]] = {name: [] for name in of_share}
    names = list(of_share)
    for turn in range(repeats):
        for name in names[turn % len(names) :] + names[: turn % len(names)]:
            start = time.process_time()
            of_share[name]()
            seconds[name].append(time.process_time() - start)
    times = {name: 1e3 * np.array(each) for name, each in seconds.items()}
    empty, half, full = (float(np.median(times[name])) for name in SHARES)
    ratios = float(np.median(times["empty"] / times["full"])), float(np.median(times["half"] / times["full"]))
    return Figure(family, work, empty, half, full, ratios)


def measure_figures(repeats: int) -> Iterator[Figure]:
    """The encoding of each family's table, then each query on it."""
    for family, target in TARGETS.items():
        spec, facts = declare(target, ENCODED_SLOTS)
        design = make_problem(spec, facts).design
        large = {name: Rows(facts.columns, ENCODED_SLOTS, share).table for name, share in SHARES.items()}
        encode = {name: _encode(design, table) for name, table in large.items()}
        yield compare(family, "encode", encode, max(repeats // 3, 3))
        del large, encode
        yield from _measure_queries(family, target, repeats)
    yield from measure_terms(repeats)
    yield from measure_statistics(repeats)
    yield from measure_topics(repeats)


def measure_terms(repeats: int) -> Iterator[Figure]:
    """The encoding of a design with terms, then each query on it."""
    spec, facts = declare(TARGETS["logistic-regression"], QUERY_SLOTS)
    spec = replace(spec, features=TERMS)
    design = make_problem(spec, facts).design
    tables = {name: Rows(facts.columns, QUERY_SLOTS, share).table for name, share in SHARES.items()}
    yield compare("terms", "encode", {name: _encode(design, table) for name, table in tables.items()}, repeats)
    yield from _measure_rows("terms", make_problem(spec, facts)[:2], facts, list_queries, repeats)


def measure_statistics(repeats: int) -> Iterator[Figure]:
    """The sums of statistics of variational inference."""
    for family in ("logistic-regression", "linear-regression", "gaussian"):
        spec, facts = declare(TARGETS.get(family), QUERY_SLOTS)
        problem = make_conjugate_problem(replace(spec, family=family), facts)
        yield from _measure_rows(f"vips, {family}", problem, facts, list_statistics, repeats)


def list_statistics(model: Any, _: object) -> Iterator[Query]:
    """The sums of fixed and of moving statistics that the model has."""
    belief = 0.3 * np.random.default_rng(2).standard_normal(model.belief_shape)
    for moving in (False, True):
        if blocks := model.list_blocks(model.largest_radius, moving=moving):
            yield StatisticSum(belief, compute_units(blocks, 1), model.largest_radius, moving)


def measure_topics(repeats: int) -> Iterator[Figure]:
    """The sum of words by topic. Documents are units of several rows."""
    word = Column("word", "categorical", categories=tuple(map(str, range(WORDS))))
    unit = {"kind": "column", "column": "document", "max_rows": LENGTH}
    facts = DeclaredFacts((Column("document", "integer", 0, 1e6), word), DOCUMENTS, unit, "private", 1e-6)
    spec = ModelSpec("latent-dirichlet-allocation", ("word",), None, topics=TOPICS)
    problem = make_conjugate_problem(spec, facts)
    model, design = cast(DocumentModel, problem.model), problem.design
    belief = np.random.default_rng(3).uniform(0.01, 1.0, (TOPICS, WORDS))
    query = TopicSum(belief, float(LENGTH))
    query.check(model, design)
    sources = {name: Rows((word,), DOCUMENTS * LENGTH, share) for name, share in SHARES.items()}
    reads = {name: _fold(model, design, source) for name, source in sources.items()}
    rows_of = {name: read() for name, read in reads.items()}
    asked = {name: _ask(query, model, *rows, each=LENGTH) for name, rows in rows_of.items()}
    yield compare("topics", "read", reads, repeats)
    yield compare("topics", query.kind, asked, repeats)


def _measure_queries(family: str, target: Column | None, repeats: int) -> Iterator[Figure]:
    spec, facts = declare(target, QUERY_SLOTS)
    yield from _measure_rows(family, make_problem(spec, facts)[:2], facts, list_queries, repeats)


def _measure_rows(
    family: str,
    problem: tuple[Any, Any],
    facts: DeclaredFacts,
    listing: Callable[[Any, Any], Iterator[Query]],
    repeats: int,
) -> Iterator[Figure]:
    """Reading and folding of rows, and each listed query."""
    model, design = problem
    sources = {name: Rows(facts.columns, QUERY_SLOTS, share) for name, share in SHARES.items()}
    fold = {name: _fold(model, design, source) for name, source in sources.items()}
    yield compare(family, "read", fold, repeats)
    rows_of = {name: read() for name, read in fold.items()}
    for query in listing(model, design):
        work = query.kind + (", pairs" if isinstance(query, PotentialSum) and query.antithetic else "")
        work += ", moving" if isinstance(query, StatisticSum) and query.moving else ""
        yield compare(family, work, {name: _ask(query, model, *rows) for name, rows in rows_of.items()}, repeats)


def _encode(design: RowEncoder, table: Mapping[str, NDArray[Any]]) -> Callable[[], object]:
    return lambda: design.encode(table)


def _fold(model: RowModel, design: RowEncoder, source: Rows) -> Callable[[], tuple[Array32, NDArray[np.bool_]]]:
    return lambda: gather(model, design, source, range(source.slots))


def _ask(
    query: Query, model: RowModel, rows: Array32, present: NDArray[np.bool_], *, each: int = 1
) -> Callable[[], object]:
    return lambda: query.sum(model, rows, present, each)


def make_page(results: list[Figure]) -> Table:
    """A table of milliseconds, and of ratios to the full table."""
    table = Table(title="Processor time by the share of slots that hold a row")
    for name in ("family", "work", "empty ms", "half ms", "full ms", "empty / full", "half / full"):
        table.add_column(name, justify="right" if name[-1] in "sl" and name != "family" else "left")
    for each in results:
        times = (f"{value:.2f}" for value in (each.empty, each.half, each.full))
        table.add_row(each.family, each.work, *times, *(f"{ratio:.3f}" for ratio in each.ratios))
    return table


def main() -> None:
    """Prints the figures. With ``--csv`` also writes them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=21)
    parser.add_argument("--csv", type=Path, help="the CSV file to write")
    options = parser.parse_args()
    results = list(measure_figures(options.repeats))
    Console(width=110).print(make_page(results))
    if options.csv:
        with options.csv.open("w", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(["family", "work", "empty_ms", "half_ms", "full_ms", "empty_ratio", "half_ratio"])
            for each in results:
                times = (each.empty, each.half, each.full, *each.ratios)
                writer.writerow([each.family, each.work, *(f"{value:.4g}" for value in times)])


if __name__ == "__main__":
    main()
