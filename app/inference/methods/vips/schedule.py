"""How a run of ``vips`` divides its budget among its queries.

A run asks at most three kinds of queries: a histogram of lengths, from which the radius of the rows follows; the fixed
statistics, once, of all rows; and the moving statistics, once for each iteration.
"""

import math
from dataclasses import dataclass
from typing import Final

from app.inference.core.plan import Mechanism, PlannedQuery
from app.inference.core.statistics import ConjugateModel
from app.inference.methods.private import make_event
from app.inference.private_zone.queries import LengthHistogram
from app.inference.private_zone.queries.lengths import BINS
from app.privacy.events import GaussianEvent

LENGTHS_SHARE: Final = 0.05
FIXED_SHARE: Final = 0.3
"""Shares of the budget, as shares of the precision ``1 / sigma^2`` of one Gaussian with the same price."""


@dataclass(frozen=True, slots=True)
class Schedule:
    """The noise multipliers of the queries; None: the run has no such query."""

    lengths: float | None
    fixed: float | None
    moving: Mechanism | None

    @property
    def opening(self) -> int:
        """The number of queries before the iterations."""
        return (self.lengths is not None) + (self.fixed is not None)


def make_schedule(model: ConjugateModel, mechanism: Mechanism) -> Schedule:
    """Divide the budget of a run whose repeated query has ``mechanism``.

    ``sigma / (q sqrt(T))`` is the noise multiplier of one Gaussian that costs as much as the T repeated queries:
    exactly at q = 1, and nearly at a small q. The other queries have noise in proportion to it.
    """
    radius = model.largest_radius
    has_fixed, has_moving = (bool(model.list_blocks(radius, moving=moving)) for moving in (False, True))
    shares = {"lengths": LENGTHS_SHARE * (model.tail > 0), "fixed": FIXED_SHARE * has_fixed}
    if not has_moving:
        return Schedule(None, mechanism.noise_multiplier, None)
    rest = 1 - sum(shares.values())
    whole = mechanism.noise_multiplier / (mechanism.sampling_rate * math.sqrt(mechanism.iterations)) * math.sqrt(rest)
    lengths, fixed = (whole / math.sqrt(share) if share else None for share in shares.values())
    return Schedule(lengths, fixed, mechanism)


def plan_queries(model: ConjugateModel, schedule: Schedule) -> tuple[PlannedQuery, ...]:
    """List the queries in order."""

    def count_values(*, moving: bool) -> int:
        return sum(block.length for block in model.list_blocks(model.largest_radius, moving=moving))

    queries = []
    if schedule.lengths is not None:
        queries.append(PlannedQuery(LengthHistogram.kind, BINS, GaussianEvent(schedule.lengths)))
    if schedule.fixed is not None:
        queries.append(PlannedQuery(model.kind, count_values(moving=False), GaussianEvent(schedule.fixed)))
    if schedule.moving is not None:
        event, count = make_event(schedule.moving), schedule.moving.iterations
        queries.append(PlannedQuery(model.kind, count_values(moving=True), event, count))
    return tuple(queries)
