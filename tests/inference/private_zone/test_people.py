"""Units of several rows: the sensitivity to one person equals that to one row."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from app.inference.core.model import Array64
from app.inference.core.plan import ModelSpec, PlannedQuery
from app.inference.core.problems import make_problem
from app.inference.core.query import Integers, Query
from app.inference.private_zone.mechanisms import GRID
from app.inference.private_zone.oracle import ClippedGaussianOracle
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
    RobustInformationSum,
    RobustPotentialSum,
    RobustScoreSum,
    TailSum,
)
from app.inference.private_zone.rng import make_sampling_generator
from app.privacy.events import GaussianEvent
from support.table import Table
from tests.inference.support import SPEC, WIDTH, facts, plan, table

SLOTS, MOST = 30, 3
PEOPLE = replace(facts(SLOTS), unit={"kind": "column", "column": "person", "max_rows": MOST})
RNG = np.random.default_rng(9)
THETA, METRIC = RNG.standard_normal(WIDTH), np.eye(WIDTH) * 2
SMALL = 1e-3  # so small a clip that every unit is at its bound
QUERIES: list[Query] = [
    PotentialSum(RNG.standard_normal((5, WIDTH)), SMALL),
    RobustPotentialSum(RNG.standard_normal((5, WIDTH)), SMALL, beta=0.3),
    RobustScoreSum(THETA, METRIC, SMALL, beta=0.3),
    RobustInformationSum(THETA, METRIC, SMALL, beta=0.3),
    BoundedScoreSum(THETA, METRIC, SMALL),
    ClippedScoreSum(THETA, METRIC, SMALL),
    InformationSum(THETA, METRIC, SMALL),
    MomentSum(1.0, WIDTH, intercept=True, clip=SMALL, centre=np.full(WIDTH - 1, 0.25)),
    MeanSum(1.0, WIDTH, intercept=True, clip=SMALL),
    MomentSum(1.0, WIDTH, intercept=True, clip=SMALL, weight=4.0),
    TailSum(1.0, WIDTH, intercept=True, deviation=np.full(WIDTH - 1, 0.5), clip=SMALL),
    LengthHistogram(1.0, WIDTH, intercept=True, largest=MOST**2 * WIDTH, squares=False),
]

OF_RESIDUALS: list[Query] = [
    CutScoreSum(THETA[1:], METRIC[1:, 1:], SMALL, cut=2.0),
    ExcessSum(THETA[1:], 0.01, scale=1.0, centre=0.0, spread=1.0, squares=0.5, clip=SMALL),
    ResidualHistogram(THETA[1:]),
]
OF_HOURS = ModelSpec("linear-regression", ("age", "colour", "smoker"), "hours", noise_scale=0.05)


class Exact:
    """Records the exact sums and scales and adds no noise."""

    def __init__(self) -> None:
        self.sum: Integers = np.empty(0, np.int64)
        self.scale: float | Array64 = 0.0

    def perturb(self, sums: Integers, scale: float | Array64) -> Integers:
        self.sum, self.scale = sums, scale
        return sums


def asked(source: Table, query: Query) -> Exact:
    """Record the sum that the oracle perturbs for ``query`` on a table of people."""
    noise = Exact()
    planned = replace(plan(SLOTS), queries=(PlannedQuery(query.kind, query.length, GaussianEvent(1.0)),))
    planned = replace(planned, model=OF_HOURS if query in OF_RESIDUALS else SPEC)
    model = make_problem(planned.model, PEOPLE).model
    ClippedGaussianOracle(model, planned, PEOPLE, source, noise=noise, sampling=make_sampling_generator()).ask(query)
    return noise


def visits(absent: NDArray[np.int64]) -> Table:
    """Make a table of people of up to three rows each; people in ``absent`` are null."""
    columns = dict(table(SLOTS * MOST).columns)
    present = np.arange(SLOTS * MOST) % MOST <= np.arange(SLOTS * MOST) // MOST % MOST
    present[(absent[:, None] * MOST + np.arange(MOST)).ravel()] = False
    gone: dict[str, NDArray[Any]] = {name: np.where(present, values, 0) for name, values in columns.items()}
    return Table(gone | {"_present": present.astype(np.uint8)}, MOST)


@pytest.mark.parametrize("query", [*QUERIES, *OF_RESIDUALS], ids=lambda query: query.kind)
def test_w5_one_person_moves_the_sum_by_the_grids_radius_at_most(query: Query) -> None:
    """W5: all three rows of a person together, in exact integers, in the norm in which the noise is isotropic."""
    whole = asked(visits(np.empty(0, np.int64)), query)
    moved = []
    for person in range(SLOTS):
        without = asked(visits(np.array([person])), query)
        squares = [int(each) ** 2 for each in whole.sum - without.sum]
        weights = [round((GRID / scale) ** 2) for scale in np.broadcast_to(whole.scale, len(squares))]
        moved.append(sum(square * weight for square, weight in zip(squares, weights, strict=True)))
    assert max(moved) <= GRID**2
    assert max(moved) > 0.9 * GRID**2  # with so small a clip a person is at the bound
