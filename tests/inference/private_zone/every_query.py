"""Queries of every kind for a model and its design."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from app.inference.core.design import Design
from app.inference.core.grouping import GroupedModel
from app.inference.core.model import Model
from app.inference.core.query import Query
from app.inference.core.statistics import Statistics, compute_units
from app.inference.private_zone.mechanisms import BadQuery
from app.inference.private_zone.queries import (
    BoundedScoreSum,
    ClippedScoreSum,
    CutScoreSum,
    ExcessSum,
    GroupPotentialSum,
    InformationSum,
    LengthHistogram,
    MeanSum,
    MomentSum,
    PotentialSum,
    ResidualHistogram,
    RobustInformationSum,
    RobustPotentialSum,
    RobustScoreSum,
    StatisticSum,
    TailSum,
)

EACH = 3
"""The most rows of a unit in tests."""


def make_queries(model: Any, design: Any) -> Iterator[Query]:
    """Make queries of every kind that ``design`` and ``model`` allow, at arbitrary parameters."""
    if isinstance(model, GroupedModel):
        yield from _sum_groups(model, design)
        return
    yield from _sum_statistics(model, design) if hasattr(model, "list_blocks") else _sum_rows(model, design)


def _sum_groups(model: GroupedModel, design: Any) -> Iterator[Query]:
    draws = 0.5 * np.random.default_rng(6).standard_normal((4, model.model.dimension))
    for beta in (0.0, 0.3):
        query = GroupPotentialSum(draws, 1.0, model.groups, beta)
        query.check(model, design)
        yield query


def _sum_statistics(model: Statistics, design: Design) -> Iterator[Query]:
    belief = 0.3 * np.random.default_rng(6).standard_normal(model.belief_shape)
    for moving in (False, True):
        if blocks := model.list_blocks(0.8, moving=moving):
            query = StatisticSum(belief, compute_units(blocks, EACH), 0.8, moving)
            query.check(model, design)
            yield query


def _sum_rows(model: Model, design: Design) -> Iterator[Query]:
    rng, d, p = np.random.default_rng(6), model.dimension, design.width
    theta, transform = 0.3 * rng.standard_normal(d), np.tril(rng.standard_normal((d, d)))
    draws = theta + 0.2 * rng.standard_normal((4, d))
    shape: dict[str, Any] = {"scale": 1.0, "width": p, "intercept": design.intercept}
    deviation = np.full(max(p - 1, 0), 0.5)
    for query in (
        PotentialSum(draws, 1.0),
        PotentialSum(np.concatenate([draws, 2 * theta - draws]), 1.0, antithetic=True),
        RobustPotentialSum(draws, 1.0, beta=0.3),
        RobustPotentialSum(np.concatenate([draws, 2 * theta - draws]), 1.0, antithetic=True, beta=0.3),
        RobustScoreSum(theta, transform, 1.0, beta=0.3),
        RobustInformationSum(theta, transform, 1.0, beta=0.3),
        BoundedScoreSum(theta, transform, 1.0),
        ClippedScoreSum(theta, transform, 1.0),
        CutScoreSum(theta, transform, 1.0, 2.0),
        ResidualHistogram(theta),
        ExcessSum(theta, 1.5, scale=1.0, centre=0.1, spread=0.5, squares=0.0, clip=2.0),
        ExcessSum(theta, 1.5, scale=1.0, centre=0.1, spread=0.5, squares=0.3, clip=2.0),
        InformationSum(theta, transform, 1.0),
        MomentSum(**shape, clip=2.0),
        MomentSum(**shape, clip=2.0, centre=np.full(p - design.intercept, 0.25)),
        MeanSum(**shape, clip=2.0),
        MeanSum(**shape, clip=2.0, weight=3.0),
        LengthHistogram(**shape, largest=9.0, squares=True),
        TailSum(**shape, deviation=deviation, clip=1.0),
    ):
        try:
            query.check(model, design)
        except BadQuery:
            continue
        yield query
